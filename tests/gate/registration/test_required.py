"""The pairs that a plan needs, from an assumption or a pilot."""

from datetime import UTC, datetime

import numpy as np
import pytest
from tests.gate.runs import flipped, pairs

from ridgeline.core.specs import build
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.registration.record import Data, signed
from ridgeline.gate.registration.required import Registering, case_of, register

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def asked(**said: object) -> Registering:
    plan = build(Plan, {"gate": "precision", "slices": "slice", **said})
    there = {"overall": 1500, "a": 1000, "b": 500}
    return Registering(plan, (Data("a.csv", "ids", "aa", 1500),), WHEN, "1", None, there)


@pytest.mark.parametrize(
    ("margin", "variance", "n"), [(0.01, 0.04, 2474), (0.02, 0.10, 1546), (0.005, 0.02, 4947), (0.02, 0.20, 3092)]
)
def test_the_numbers_of_the_reference(margin: float, variance: float, n: int) -> None:
    first = register(asked(margin=margin, variance=variance)).required[0]
    assert (first.check, first.source, first.there) == ("overall", "assumed", 1500)
    assert first.n == pytest.approx(n, abs=1)


def test_slices_have_their_own_row() -> None:
    found = register(asked(variance=0.04, margins={"b": "10%"})).required
    assert [(item.check, item.margin, item.there) for item in found] == [
        ("overall", 0.01, 1500), ("each slice", 0.03, 500), ("b", 0.1, 500),
    ]  # fmt: skip


def test_a_pilot_gives_the_upper_bound_of_its_variance() -> None:
    base, cand = flipped(400, 8, 8)
    plan = asked().plan
    runs = pairs({"acc": base}, {"acc": cand}, slice=["a"] * 300 + ["b"] * 100)
    found = register(Registering(plan, (), WHEN, "1", runs)).required
    assert [item.check for item in found] == ["overall", "a", "b"]
    assert 0.04 < found[0].variance < 0.06
    assert found[0].source == "pilot"
    assert np.isfinite([item.n for item in found]).all()


def test_the_case_says_what_is_missing() -> None:
    record = register(asked(variance=0.04))
    case = case_of(record, (), "gate.registration.json", "ridgeline gate register gate.toml")
    assert case.decision == f"REGISTERED: the gate precision, 2026-03-04 05:06 UTC, sha256 {signed(record)[:12]}."
    assert case.because.startswith(
        "1 of 2 checks have too few examples for a power of 80%; overall has 1,500 of 2,474."
    )
    assert "--registration gate.registration.json" in case.because
    bare = case_of(register(asked()), (), "x.json", "")
    assert "No variance was given" in bare.sections[0].paragraphs[0]
