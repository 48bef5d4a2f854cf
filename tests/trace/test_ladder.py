"""What fixes are worth, and when to stop."""

from typing import Any

import pytest
from tests.trace.runs import context, number

from ridgeline.core.case import Case
from ridgeline.trace.bridge import Bridge
from ridgeline.trace.context import RunContext
from ridgeline.trace.incident import incident
from ridgeline.trace.ladder import rungs, stop_at, value

BUCKETS = {"compute": 9.0, "exposed_comm": 3.6, "host_gap": 1.5, "late_gap": 0.9}


def made(*efforts: float | None, **tables: Any) -> tuple[Bridge, RunContext]:
    levers = ("kernel", "flag", "flag")
    rows = [
        {"name": f"c{i}", "seconds": {bucket: 1.0}, "lever": lever, "effort_dollars": effort}
        for i, (bucket, lever, effort) in enumerate(zip(BUCKETS, levers, efforts or (None,) * 3, strict=False))
    ]
    plain = [{key: item for key, item in row.items() if item is not None} for row in rows]
    of = context(buckets=BUCKETS, cause=plain, **tables)
    return incident(of), of


def test_value_of_the_whole() -> None:
    found = value(*made())
    assert number(found.share) == pytest.approx(20)
    assert number(found.chip_days) == pytest.approx(0.2 * 7680)
    assert number(found.dollars) == pytest.approx(0.2 * 7680 * 24 * 2.7)
    work = 7680 * number(context().mfu)
    assert number(found.point) == pytest.approx(work * (1 / 50 - 1 / 51))
    assert number(found.point_dollars) == pytest.approx(number(found.point) * 24 * 2.7)


def test_rungs_cheapest_first_and_they_sum_to_the_whole() -> None:
    found, of = made()
    ladder = rungs(found, of)
    assert [rung.lever for rung in ladder] == ["flag", "kernel"]
    assert sum(number(rung.chip_days) for rung in ladder) == pytest.approx(number(value(found, of).chip_days))
    gain = number(found.reached) - number(found.observed)
    assert sum(number(rung.points) for rung in ladder) == pytest.approx(gain)


def test_stop_where_the_effort_is_more_than_a_month_returns() -> None:
    found, of = made(1e6, 10.0, 10.0)
    ladder = rungs(found, of)
    assert [rung.pays for rung in ladder] == [True, False]
    last = stop_at(ladder)
    assert last is not None
    assert last.lever == "kernel"


def test_an_effort_that_nobody_named_is_not_judged() -> None:
    ladder = rungs(*made())
    assert [rung.pays for rung in ladder] == [None, None]
    assert stop_at(ladder) is None


def test_without_a_month_or_a_price() -> None:
    found = value(*made(machine={"days_per_month": None}))
    assert (found.chip_days, found.dollars, found.point) == (None, None, None)
    assert number(found.share) == pytest.approx(20)


def test_all_of_it_fits_into_one_case() -> None:
    found, of = made(1.0, 2.0, 3.0)
    case = Case("trace", "test")
    for item in (value(found, of), *rungs(found, of)):
        case.add(*(q for q in vars(item).values() if hasattr(q, "walk")))
    assert {"value.point", "value.point.dollars", "ladder.flag.dollars"} <= set(case.quantities)
