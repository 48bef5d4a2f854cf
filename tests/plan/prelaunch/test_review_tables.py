"""Tables and charts of a review."""

import pytest
from tests.plan.reviews import against, facts, incident, number

from ridgeline.core.case import Case, Table
from ridgeline.core.quantity import Quantity
from ridgeline.plan.prelaunch import review_tables as tables
from ridgeline.plan.prelaunch.pilot import pilot
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


def memory_of(of: ReviewFacts) -> dict[str, float]:
    """Bytes of every stage, all parts."""
    case = Case("review", "test")
    case.add(of.memory)
    tables.memory(case, of)
    total: dict[str, float] = {}
    for stage, _, size in case.tables["review.memory"].rows:
        assert isinstance(size, Quantity)
        total[stage] = total.get(stage, 0.0) + float(size.base)
    return total


def test_one_stage_is_the_fullest_chip() -> None:
    of = facts()
    assert memory_of(of) == {"stage 1": pytest.approx(number(of.memory))}


def test_stages_hold_less_towards_the_last_under_1f1b() -> None:
    of = facts({"pp": 4, "zero": 0}, sequences=128)
    sizes = list(memory_of(of).values())
    assert len(sizes) == 4
    assert sizes[0] == pytest.approx(number(of.memory))
    assert sizes[0] > sizes[1] > sizes[2]


def test_dualpipe_holds_as_much_everywhere() -> None:
    of = facts({"pp": 4, "zero": 0, "schedule": "dualpipe"}, sequences=256)
    sizes = list(memory_of(of).values())
    assert sizes[0] == pytest.approx(sizes[1]) == pytest.approx(sizes[2])


def test_the_bars_of_the_step_add_up() -> None:
    of, case = facts(), Case("review", "test")
    case.add(of.step)
    tables.step(case, of)
    rows = case.tables["review.step"].rows
    assert sum(float(row[2].value) for row in rows) == pytest.approx(number(of.step))
    assert sum(float(row[3].value) for row in rows) == pytest.approx(100)
    assert {row[1] for row in rows} <= {"compute", "communication", "host", "idle"}


def test_the_slowest_matmul_is_marked() -> None:
    case = Case("review", "test")
    tables.shapes(case, facts())
    table = case.tables["review.matmuls"]
    assert table.highlight is not None
    assert table.rows[table.highlight][4] == min(row[4] for row in table.rows)
    assert sum(row[5] for row in table.rows) == pytest.approx(100)


def test_expectation_beside_claim_and_comparable() -> None:
    of = against(incident(claim={"mfu": "50%", "provenance": "comparable"}))
    case = Case("review", "test")
    case.add(of.flops)
    tables.expectation(case, of)
    table: Table = case.tables["review.expectation"]
    assert [row[0] for row in table.rows] == [
        "Expected by the design", "Claimed", "Promised by the comparable run", "The same by the step model",
        "Large matmuls alone",
    ]  # fmt: skip
    assert table.highlight == 0


def test_pilot_table_is_by_risk() -> None:
    small = pilot(facts())
    assert small is not None
    table = tables.pilot_table(small)
    risks = [float(row[5].value) for row in table.rows]
    assert risks == sorted(risks, reverse=True)
