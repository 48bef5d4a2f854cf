"""T405: links that move less than their neighbours'."""

import pytest
from tests.trace.charts import of_devices
from tests.trace.runs import finding, number

RATES: list[float] = [300e3, 290e3, 150e3, 305e3]


def test_a_slow_link_warns() -> None:
    found = finding(of_devices(nvlink_rx_mb_s=RATES), "T405")
    assert str(found.verdict) == "warn"
    assert number(found.value) == pytest.approx(150 / 295 * 100)
    assert found.sentence.startswith("rank2: nvlink rx moves 150,000 MB/s")


def test_a_slow_link_on_a_chip_that_is_held_back_too() -> None:
    found = finding(of_devices(nvlink_rx_mb_s=RATES, sm_clock_mhz=[1980, 1980, 1500, 1980]), "T405")
    assert str(found.verdict) == "warn"


def test_even_links_pass() -> None:
    assert str(finding(of_devices(nvlink_rx_mb_s=[300e3] * 4), "T405").verdict) == "pass"


def test_nothing_is_said_without_rates() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        finding(of_devices(), "T405")
