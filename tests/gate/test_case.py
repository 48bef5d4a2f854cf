"""A decision as a case: names, units, sentences, the table and the forest."""

import json
from math import inf
from typing import Any

import pytest

from ridgeline.core.case import Case
from ridgeline.core.format import show
from ridgeline.core.lost import Loss
from ridgeline.gate.case import Decided, case_of, figures, name_of
from ridgeline.gate.decision import Check
from ridgeline.gate.gate import Gate
from ridgeline.gate.statistics.interval import Interval

GATE = Gate("trial-run", "A trial", "A loss that nobody sees.")


def check(name: str, low: float, high: float, **more: Any) -> Check:
    interval = Interval((low + high) / 2, low, high, more.pop("n", 400), 0.05, "test", None, more.pop("degenerate", ""))
    values = {"metric": "accuracy", "margin": 0.01, "unit": "%", **more}
    return Check(name, interval=interval, **values)


def case(*checks: Check, **more: Any) -> Case:
    return case_of(Decided(GATE, "b against a", checks, **more), command="ridgeline gate trial-run")


def told(found: Case) -> tuple[str, str]:
    return found.text(found.decision), found.text(found.because)


def test_names_are_stable() -> None:
    assert name_of(GATE, check("Low resource (sw)", 0, 1), "low") == "gate.trial_run.low_resource_sw.accuracy.low"
    assert name_of(GATE, check("中", 0, 1), "n") == "gate.trial_run.unnamed.accuracy.n"
    found = case(check("overall", -0.004, 0.006, needed=7, detectable=0.02))
    assert set(found.quantities) >= {f"gate.trial_run.overall.accuracy.{end}" for end in (
        "delta", "low", "high", "margin", "n", "needed", "detectable")}  # fmt: skip


def test_shares_are_read_in_points_and_ratios_in_percent() -> None:
    points = figures(GATE, check("overall", -0.004, 0.006))
    assert points["low"].value == pytest.approx(-0.4)
    assert points["low"].unit == "point"
    assert show(points["margin"]) == "1.00 point"
    assert float(points["low"].base) == pytest.approx(-0.004)
    ratio = figures(GATE, check("overall", -0.04, 0.06, unit="ratio", margin=0.05))
    assert show(ratio["margin"]) == "5.00%"
    assert show(figures(GATE, check("overall", -0.004, 0.006, unit="nat"))["low"]) == "-0.0040 nat"


def test_ship_says_down_to_which_margin() -> None:
    decision, because = told(case(check("overall", -0.004, 0.006), check("code", -0.02, 0.03, margin=0.03)))
    assert decision == (
        "SHIP: accuracy changes by 0.100 points (90% interval -0.400 points to 0.600 points) against a margin of "
        "1.00 point, n = 400; 2 of 2 checks are inside their margins."
    )
    assert because == "It holds for any margin of 2.00 points or more in code: accuracy."


def test_no_ship_names_the_worst_slice() -> None:
    decision, because = told(case(check("overall", -0.004, 0.006), check("code", -0.2, -0.1, margin=0.03)))
    assert decision.startswith("NO-SHIP: accuracy changes by 0.100 points")
    assert "worst code: accuracy changes by -15.0 points" in decision
    assert because == "More examples would not change it: code: accuracy loses 10.0 points or more."


def test_inconclusive_says_how_many_more() -> None:
    decision, because = told(case(check("overall", -0.04, 0.03, needed=1234), check("code", -0.05, 0.05, needed=5678)))
    assert decision.startswith("INCONCLUSIVE: accuracy changes by")
    assert because == "5,678 more pairs of code would decide, if there is no difference."


def test_no_evidence_is_said_with_its_reason() -> None:
    decision, because = told(case(check("overall", 0.0, 0.0, degenerate="one group")))
    assert decision == "INCONCLUSIVE: accuracy is no evidence (one group), n = 400."
    assert because == "No number of pairs decides accuracy: one group."


def test_nothing_to_decide_on() -> None:
    found = case()
    assert found.decision == "INCONCLUSIVE: there is nothing to decide on."
    assert found.tables == {}


def test_the_table_has_the_worst_first_and_the_described_last() -> None:
    found = case(check("a", -0.004, 0.006), check("b", -0.2, 0.1), check("c", -0.9, -0.8, required=False))
    table = found.tables["gate.checks"]
    assert [row[0] for row in table.rows] == ["b", "a", "c"]
    assert [row[1] for row in table.rows] == ["INCONCLUSIVE", "SHIP", "described"]
    assert table.columns[2].unit == "point"


def test_several_units_are_named_in_each_row() -> None:
    found = case(check("a", -0.004, 0.006), check("a", -0.2, 0.1, unit="nat", metric="log_loss"))
    names = [column.name for column in found.tables["gate.checks"].columns]
    assert names[:4] == ["check", "metric", "unit", "outcome"]
    assert {row[2] for row in found.tables["gate.checks"].rows} == {"points", "nat"}


def test_unbounded_ends_are_left_out_of_the_numbers() -> None:
    found = case(check("overall", -inf, inf, degenerate="fewer than two pairs", n=1))
    assert "gate.trial_run.overall.accuracy.low" not in found.quantities
    assert "gate.forest" not in found.charts
    assert found.dumps()


def test_the_forest_is_in_margins_where_they_differ() -> None:
    shared = case(check("a", -0.004, 0.006), check("b", -0.2, 0.1)).charts["gate.forest"]
    assert "point" in str(shared.spec)
    apart = case(check("a", -0.004, 0.006), check("b", -0.2, 0.1, margin=0.05)).charts["gate.forest"]
    assert "Change, in margins" in str(apart.spec)
    assert "Change, in margins" not in str(shared.spec)
    drawn = {row["check"]: row["low"] for row in apart.spec["data"]["values"]}
    assert drawn == {"a": pytest.approx(-0.4), "b": pytest.approx(-4)}


def test_names_from_files_cite_nothing_and_move_no_cursor() -> None:
    found = case(check("{gate.x}\x1b[31m", -0.3, -0.2), check("overall", -0.004, 0.006))
    text = found.dumps() + found.text(found.decision)
    assert "\x1b" not in text
    assert "(gate.x)" in found.text(found.decision)


def test_what_was_lost_is_listed_once() -> None:
    assert case(check("overall", 0, 1), lost=(Loss("rows", 3, "a.csv"), Loss("rows", 3, "a.csv"))).lost == [
        "3 rows (a.csv)"
    ]


def test_an_outcome_has_one_colour_in_every_forest_plot() -> None:
    for found in (case(check("a", 0.0, 0.1)), case(check("a", -0.9, -0.8), check("b", 0.0, 0.1))):
        text = json.dumps(found.charts["gate.forest"].spec)
        assert '"domain": ["NO-SHIP", "INCONCLUSIVE", "SHIP", "described"]' in text
        assert '"values": ["NO-SHIP", "INCONCLUSIVE", "SHIP", "described"]' not in text
