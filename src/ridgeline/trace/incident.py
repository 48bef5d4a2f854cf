"""A run without traces: the bridge from what the user wrote down in ``run.toml``, and small sums of an incident.

Buckets and causes come from the file; `ridgeline.trace.causes` takes them from findings instead.
"""

from pathlib import Path

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.attribution import Cause
from ridgeline.trace.audit import Audit, audit
from ridgeline.trace.bridge import Bridge, Ends, bridge
from ridgeline.trace.context import CauseTable, RunContext


def incident(context: RunContext) -> Bridge:
    """The bridge of a run file with ``[buckets]`` and ``[[cause]]``.

    Raises `InputError` where there is no step time, no bucket, or buckets that are longer than the step.
    """
    if context.step is None:
        raise InputError.expected("the observed step time", None, where=_at(context, "$.observed.step"))
    buckets = context.file.buckets
    if not buckets:
        raise InputError.expected("seconds by bucket, or a trace", None, where=_at(context, "$.buckets"))
    return bridge(ends_of(context, audit(context)), buckets, [cause_of(row) for row in context.file.cause])


def ends_of(context: RunContext, found: Audit, step: Quantity | None = None) -> Ends:
    """Observed step, ideal and expectations; ``step`` where the file has none."""
    observed = context.step or step
    if observed is None:
        raise InputError.expected("the observed step time, or a trace with steps", None, where="$.observed.step")
    corrected = found.geometry.corrected if found.geometry else None
    return Ends(observed, context.ideal, context.expected, corrected)


def cause_of(row: CauseTable) -> Cause:
    """A ``[[cause]]`` of the run file."""
    return Cause(
        row.name, dict(row.seconds), row.code, row.lever, row.confirm, row.fix, row.risks,
        effort_dollars=row.effort_dollars,
    )  # fmt: skip


def buckets_total(context: RunContext) -> Quantity:
    """``buckets.total`` (s): the file's buckets added up, to be held against the step."""
    source = Source("given by the user", "buckets")
    parts = {
        name: leaf(f"buckets.{name}", value, "s", "specified", source).titled(name.replace("_", " "))
        for name, value in context.file.buckets.items()
    }
    if not parts:
        raise InputError.expected("seconds by bucket", None, where=_at(context, "$.buckets"))
    return derive("buckets.total", " + ".join(parts), "s", **parts).titled("Buckets, added up")


def _at(context: RunContext, place: str) -> str:
    return f"{Path(context.path)}: {place}" if context.path else place
