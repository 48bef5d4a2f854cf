"""What the bridge says: the decision in each situation, bars that meet, and two runs side by side."""

from itertools import pairwise
from typing import Any

import pytest
from tests.trace.runs import context, facts
from tests.trace.traces import steady_rank

from ridgeline.core.case import Case
from ridgeline.trace.attribution import Cause
from ridgeline.trace.audit import audit
from ridgeline.trace.bridge import Bridge, bridge
from ridgeline.trace.bridge_case import (
    bar_table,
    bridge_because,
    bridge_decision,
    bridge_sections,
    compare_case,
    scale_case,
)
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.incident import ends_of

CAUSES = (
    Cause("late gather", {"exposed_comm": 3.64}, lever="flag", risks=("{odd} name",)),
    Cause("{odd} name", {"exposed_comm": 2.0}, lever="compiler", confirm_s=7200),
)


def made(causes: tuple[Cause, ...] = CAUSES, **tables: Any) -> tuple[Bridge, TraceFacts]:
    """The bridge of the incident with some causes."""
    of = context(**tables)
    found = bridge(ends_of(of, audit(of)), {"compute": 9.0, "exposed_comm": 6.0}, causes)
    return found, facts(of, bridge=found)


def text(found: Bridge, template: str) -> str:
    """A sentence with its numbers."""
    case = Case("trace", "x")
    case.add(*found.quantities)
    return case.text(template)


def test_the_decision_says_what_is_reached_and_what_is_left() -> None:
    found, _ = made()
    said = text(found, bridge_decision(found))
    assert said.startswith("50.0% was expected; 2 causes lead from 25.0% to 40.0% MFU, leaving unexplained 1.86 s")
    because = text(found, bridge_because(found))
    assert because.startswith("First: late gather, 3.64 s a step, worth 8.01% of peak.")
    assert "Measure (odd) name again after it." in because


def test_a_target_that_is_passed() -> None:
    found, _ = made(mfu={"expected": 0.3})
    assert "above the target" in text(found, bridge_decision(found))


def test_more_than_the_peak_is_refused_in_words() -> None:
    found, _ = made((), observed={"step": "3s"})
    assert "An MFU of 125% cannot be" in text(found, bridge_decision(found))


def test_without_an_ideal_it_is_in_seconds() -> None:
    found, _ = made(without=("model", "batch"))
    assert text(found, bridge_decision(found)) == (
        "Of the step of 15.0 s, 2 causes account for what lies above 9.36 s."
    )
    assert bar_table(found).columns[1].unit == "ms"


@pytest.mark.parametrize("without", [(), ("model", "batch")])
def test_bars_meet(without: tuple[str, ...]) -> None:
    rows = bar_table(made(without=without)[0]).rows
    bars = [(row[1], row[2]) for row in rows if row[3] != "level"]
    levels = [row[2] for row in rows if row[3] == "level"]
    first, last = (bars[0][0], bars[-1][1]) if not without else (bars[0][1], bars[-1][0])
    assert [first, last] == pytest.approx(levels)
    for one, two in pairwise(bars):
        assert (one[0], one[1])[not without] == pytest.approx((two[1], two[0])[not without])


def test_sections_hold_ladder_and_what_is_left() -> None:
    _, of = made()
    case = Case("trace", "x")
    bridge_part, ladder_part = bridge_sections(case, of)
    assert bridge_part.show == ("bridge.bars", "bridge.causes", "bridge.left")
    assert ladder_part.show == ("bridge.ladder",)
    assert "chip" in case.text(ladder_part.paragraphs[0])
    assert {row[0] for row in case.tables["bridge.ladder"].rows} == {"a flag", "the compiler"}
    assert list(bridge_sections(case, facts(context()))) == []


def run(comm: float, **tables: Any) -> TraceFacts:
    """A traced run whose step of 10 s has that much exposed communication."""
    return facts(context(**tables), l0=(steady_rank(10.0, exposed_comm=comm),))


def test_a_fix_that_moved_time() -> None:
    after = facts(context(), l0=(steady_rank(10.0, exposed_comm=1.0, sync_gap=1.5),))
    case = compare_case(run(3.0), after, ("before", "after"))
    rows = {row[0]: row[3] for row in case.tables["compare.buckets"].rows}
    assert float(rows["exposed comm"].value) == pytest.approx(-2)
    assert float(rows["sync gap"].value) == pytest.approx(1.5)
    assert "gave back 2.00 s a step, others grew by" in case.because


def test_a_larger_scale_and_the_next_one() -> None:
    small = run(1.0, machine={"chips": "16xTPU v6e"}, batch={"sequences": 16})
    large = run(4.0, machine={"chips": "256xTPU v6e"}, batch={"sequences": 256})
    case = scale_case(small, large, ("small", "large"))
    assert "exposed comm grows most" in case.decision
    assert case.because.startswith("Test 64 chips next")
