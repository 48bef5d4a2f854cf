"""The budget: section B through the plan, and which figures are assumptions."""

from pathlib import Path

import pytest
from tests.arithmetic.worked import printed
from tests.plan.studies import number, plan, study, worked_chips

from ridgeline.core.errors import InputError, UnknownDeviceError
from ridgeline.plan.budget import cluster


def test_budget_of_1000_h100_for_30_days() -> None:
    assert number(cluster(study()).compute, "FLOP") == printed("1.026e24")


def test_compute_is_chips_times_peak_times_mfu_times_seconds(tmp_path: Path) -> None:
    found = cluster(study({"chips": worked_chips(tmp_path, 7), "days": "36h", "mfu": 0.25})).compute
    assert number(found) == pytest.approx(7 * 990e12 * 0.25 * 36 * 3600, rel=1e-14)


def test_section_b_through_the_plan(tmp_path: Path) -> None:
    made = plan(
        {"chips": worked_chips(tmp_path), "dollars_per_chip_hour": 2.50, "pue": 1.2, "dollars_per_kwh": 0.12},
        candidates=["30e9"],
    )
    assert number(made.cluster.compute) == printed("1.026e24")
    assert number(made.optimum.params) == printed("92.5e9")
    assert number(made.optimum.tokens) == printed("1.85e12")
    share = made.state_share
    assert share is not None
    assert number(share.inputs["state"], "GB") == printed("1480")
    assert number(share.inputs["memory"], "GB") == pytest.approx(80_000)
    assert number(made.money.energy, "kWh") == pytest.approx(604_800)
    assert number(made.money.electricity) == pytest.approx(72_576)
    assert number(made.money.rent) == pytest.approx(1_800_000)
    assert number(made.money.per_1e21) == printed("1753.65")
    (deviation,) = made.candidates
    assert number(deviation.tokens) == pytest.approx(5.5e12, rel=0.04)
    assert number(deviation.weights, "GB") == pytest.approx(60)
    assert number(made.optimum.weights, "GB") == printed("185")


def test_energy_without_overhead() -> None:
    assert number(plan({"pue": 1}).money.energy, "MWh") == pytest.approx(504.0)


def test_what_the_study_leaves_out_is_assumed() -> None:
    given = cluster(study({"mfu": 0.35, "pue": 1.1, "dollars_per_kwh": 0.1, "dollars_per_chip_hour": 3}))
    left_out = cluster(study({"mfu": None}))
    for name in ("mfu", "pue", "electricity", "price"):
        assert getattr(given, name).kind == "specified"
        assert getattr(left_out, name).kind == "assumed"
    assert left_out.mfu.name == "planning.mfu"
    assert (given.mfu.value, given.pue.value) == (0.35, 1.1)


def test_a_device_without_a_price_has_none(tmp_path: Path) -> None:
    made = plan({"chips": worked_chips(tmp_path)})
    assert made.cluster.price is None
    assert (made.money.rent, made.money.per_1e21) == (None, None)
    assert made.money.energy is not None


def test_fp8_has_its_own_peak() -> None:
    assert number(cluster(study({"dtype": "fp8"})).compute) == pytest.approx(
        2 * number(cluster(study()).compute), rel=0.01
    )


def test_refusals() -> None:
    with pytest.raises(
        InputError, match=r"a published dense peak on V100-SXM2-16GB, got 'bf16', at \$\.budget\.dtype\nhint: fp16"
    ):
        cluster(study({"chips": "8xV100-SXM2-16GB"}))
    with pytest.raises(InputError, match=r"a known accelerator, got 'H1O0'.*\$\.budget\.chips") as caught:
        cluster(study({"chips": "8xH1O0"}))
    assert isinstance(caught.value.__cause__, UnknownDeviceError)
