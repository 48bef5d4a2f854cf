"""P220: recomputation against memory."""

import pytest
from tests.plan.reviews import facts, finding, number

from ridgeline.plan.steps.layout import RECOMPUTES


def test_none_passes() -> None:
    assert str(finding(facts(), "P220").verdict) == "pass"


def test_full_where_none_fits_gives_points_back() -> None:
    of = facts({"recompute": "full"})
    found = finding(of, "P220")
    assert str(found.verdict) == "warn"
    lighter = next(name for name in RECOMPUTES if name in found.fix)
    better = facts({"recompute": lighter})
    assert number(found.value) == pytest.approx(number(better.mfu) - number(of.mfu))


def test_full_where_nothing_else_fits_passes() -> None:
    long = facts({"tp": 2, "recompute": "full", "micro_batch": 4}, seq=32768)
    found = finding(long, "P220")
    assert str(found.verdict) == "pass"
    assert "does not fit" in found.sentence
