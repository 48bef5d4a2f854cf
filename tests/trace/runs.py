"""Runs for the tests of the audit and the bridge: the incident of the worked numbers, changed where given."""

from collections.abc import Mapping
from typing import Any

from ridgeline.core.case import Case
from ridgeline.core.finding import Finding, RuleConfig
from ridgeline.core.plugins import rules
from ridgeline.core.quantity import Quantity
from ridgeline.core.specs import build
from ridgeline.trace.audit import audit
from ridgeline.trace.context import RunContext, RunFile, context_of
from ridgeline.trace.facts import TraceFacts

INCIDENT: Mapping[str, Any] = {
    "model": {"params": "70B"},
    "machine": {"chips": "256xTPU v6e", "days_per_month": 30, "dollars_per_chip_hour": 2.7},
    "batch": {"sequences": 256, "sequence": "8k"},
    "mfu": {"expected": 0.5, "reported": 0.25, "convention": "6n", "peak": 918e12, "with_stalls": True},
    "observed": {"step": "15s", "profiled": "15.2s"},
    "comparable": {"tokens_per_second_per_chip": 1100.0},
}


def context(without: tuple[str, ...] = (), **tables: Any) -> RunContext:
    """The incident with a plain number of parameters; ``tables`` are merged over its own.

    A value of None takes a key away, ``without`` a whole table.
    """
    merged = {key: table for key, table in INCIDENT.items() if key not in without}
    for key, table in tables.items():
        if isinstance(table, Mapping):
            table = {name: value for name, value in {**merged.get(key, {}), **table}.items() if value is not None}
        merged[key] = table
    return context_of(build(RunFile, merged))


def facts(of: RunContext, **levels: Any) -> TraceFacts:
    """Facts with the audit done."""
    return TraceFacts(of, audit=audit(of), **levels)


def finding(of: TraceFacts, code: str, threshold: float | None = None) -> Finding:
    """The one finding of a rule; its sentence and cost are checked to be writable into a case."""
    config = RuleConfig(thresholds={} if threshold is None else {code: threshold})
    (item,) = config.apply(rules().values(), code)
    (found,) = item.check(of, item)
    case = Case("trace", "test")
    case.add_findings([found])
    assert "{" not in case.to_json()["findings"][0]["sentence"]
    return found


def number(quantity: Quantity | None) -> float:
    """The value of a plain quantity that must be there."""
    assert quantity is not None
    return float(quantity.value)
