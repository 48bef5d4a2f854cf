"""A run without traces."""

from pathlib import Path

import pytest
from tests.trace.runs import context, number

from ridgeline.core.errors import InputError
from ridgeline.trace.audit import audit
from ridgeline.trace.context import RunContext, read_context
from ridgeline.trace.incident import buckets_total, cause_of, ends_of, incident

CAUSE = {
    "name": "late gather", "seconds": {"exposed_comm": 0.85}, "code": "T151", "lever": "compiler", "confirm": "2h",
    "fix": "Prefetch.", "risks": ["other"], "effort_dollars": 500.0,
}  # fmt: skip


def test_a_cause_keeps_every_field() -> None:
    (row,) = context(cause=[CAUSE]).file.cause
    found = cause_of(row)
    assert (found.name, found.total_s, found.code, found.lever) == ("late gather", 0.85, "T151", "compiler")
    assert (found.confirm_s, found.fix, found.risks, found.effort_dollars) == (7200, "Prefetch.", ("other",), 500)


def test_buckets_add_up(repo: Path) -> None:
    assert number(buckets_total(read_context(repo / "examples" / "incident"))) == 15


def test_a_run_without_step_or_buckets_is_refused() -> None:
    with pytest.raises(InputError, match=r"\$\.observed\.step"):
        incident(RunContext())
    with pytest.raises(InputError, match=r"\$\.buckets"):
        incident(context())
    with pytest.raises(InputError, match=r"\$\.buckets"):
        buckets_total(context())


def test_a_cause_in_an_unknown_bucket_is_refused() -> None:
    of = context(buckets={"compute": 9.0, "exposed_comm": 3.6}, cause=[{"name": "a", "seconds": {"exposed": 1.0}}])
    with pytest.raises(InputError, match="did you mean exposed_comm"):
        incident(of)


def test_the_traced_step_stands_in_for_an_observed_one() -> None:
    of = context(without=("observed",))
    with pytest.raises(InputError, match="observed step time"):
        ends_of(of, audit(of))
    step = context().step
    assert ends_of(of, audit(of), step).step is step
