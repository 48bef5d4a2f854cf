"""P213: checkpoints against their cadence."""

import pytest
from tests.plan.reviews import facts, finding, number

from ridgeline.arithmetic.params import counts


def table(every: str, bandwidth: str | None = "10GB/s", **rest: object) -> dict[str, object]:
    return {"every": every, **({"bandwidth": bandwidth} if bandwidth else {}), **rest}


def test_bytes_are_weights_master_and_moments() -> None:
    of = facts(checkpoint=table("1h"))
    found = finding(of, "P213")
    total = sum(stored for stored, _ in counts(of.spec).values())
    assert number(found.cites[0]) == pytest.approx(14 * total)
    assert number(found.value) == pytest.approx(100 * 14 * total / 10e9 / 3600)
    assert str(found.verdict) == "pass"


def test_a_short_cadence_costs_a_share_of_every_step() -> None:
    of = facts(checkpoint=table("5min"))
    found = finding(of, "P213")
    assert str(found.verdict) == "warn"
    assert number(found.cost.seconds) == pytest.approx(number(of.step) * number(found.value) / 100)


def test_writing_beside_training_is_free_until_it_does_not_end() -> None:
    assert str(finding(facts(checkpoint=table("5min", blocking=False)), "P213").verdict) == "pass"
    found = finding(facts(checkpoint=table("5s", blocking=False)), "P213")
    assert str(found.verdict) == "fail"


def test_unknown_names_the_bandwidth_that_is_needed() -> None:
    found = finding(facts(checkpoint=table("10min", None)), "P213")
    assert str(found.verdict) == "unknown"
    needed = found.cites[-1]
    assert number(needed) == pytest.approx(number(found.cites[0]) / (600 * 0.02))


def test_unknown_without_a_cadence() -> None:
    assert str(finding(facts(), "P213").verdict) == "unknown"
