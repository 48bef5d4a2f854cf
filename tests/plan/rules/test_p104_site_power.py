"""P104: the power of the site."""

from pathlib import Path

import pytest
from tests.plan.studies import finding, number, plan


def test_unknown_without_a_limit_but_with_the_draw() -> None:
    found = finding(plan({"pue": 1.2}), "P104")
    assert str(found.verdict) == "unknown"
    draw = next(q for q in found.cites if q.name == "site.power")
    assert number(draw, "MW") == pytest.approx(1000 * 700 * 1.2 / 1e6)


@pytest.mark.parametrize(("limit", "verdict"), [(2.0, "pass"), (0.94, "pass"), (0.93, "fail"), (0.5, "fail")])
def test_ninety_percent_of_the_feed(limit: float, verdict: str) -> None:
    found = finding(plan({"pue": 1.2, "site_power_mw": limit}), "P104")
    assert str(found.verdict) == verdict
    assert number(found.value) == pytest.approx(100 * 0.84 / limit)


def test_the_threshold_moves_the_verdict() -> None:
    made = plan({"pue": 1.2, "site_power_mw": 1.0})
    assert [str(finding(made, "P104", limit).verdict) for limit in (85, 83)] == ["pass", "fail"]


def test_unknown_without_the_power_of_the_chip(tmp_path: Path) -> None:
    file = tmp_path / "chip.toml"
    file.write_text('name = "Chip"\npeak.bf16 = 1e15\nhbm.bytes = 64e9\n')
    made = plan({"chips": f"64x{file}", "site_power_mw": 1.0})
    assert (made.money.energy, made.money.electricity) == (None, None)
    found = finding(made, "P104")
    assert str(found.verdict) == "unknown"
    assert "No source states the power of Chip" in found.sentence
