"""`regression`: several suites or tasks at once, none of which may lose more than its margin."""

from collections.abc import Sequence

import numpy as np

from ridgeline.core.case import Column as Head
from ridgeline.core.case import Section, Table
from ridgeline.core.format import printable
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import Check
from ridgeline.gate.evidence.findings import evidence_checks, evidence_findings
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.gate import Gate
from ridgeline.gate.judging.described import described, ids_of, sections
from ridgeline.gate.judging.paired import Column, broken, by_slices, by_task, columns, enough_slices, finished, overall
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.quantiles import normal
from ridgeline.gate.statistics.slices import LOWEST, regressed

MACRO = "mean over tasks, normal"
GATE = Gate("regression", "Regression over tasks", "A suite average that stays while one of its tasks is lost.")


def decide(pairs: Pairs, plan: Plan) -> Decided:
    """Ship where every task excludes its margin, and all examples together theirs; list the tasks that regressed.

    Raises `InputError` for a metric or task that the runs do not have.
    """
    plan = by_task(pairs, plan)
    judged = columns(pairs, plan)
    tables = described(judged)
    lost = lost_table(judged)
    if lost.rows:
        tables = {"gate.regressed": lost, **tables}
    return Decided(
        GATE,
        f"{pairs.candidate.run} against {pairs.baseline.run}",
        (
            *(check for item in judged for check in _checks(item)),
            *finished(pairs, plan),
            *enough_slices(judged),
            *evidence_checks(pairs, plan),
        ),
        inputs=(*pairs.baseline.inputs, *pairs.candidate.inputs),
        lost=(*pairs.baseline.lost, *pairs.candidate.lost),
        findings=evidence_findings(pairs, plan),
        sections=(_claims(lost), *sections(tables)),
        tables=tables,
        ids=ids_of(pairs),
    )


def _checks(item: Column) -> list[Check]:
    tasks = [check for check in by_slices(item) if check.required and check.name != LOWEST]
    return [overall(item), *broken(item), *tasks, *([macro(item)] if len(tasks) > 1 else [])]


def macro(item: Column) -> Check:
    """The mean over tasks, each counted once, described: what suites are ranked by."""
    parts = [item.difference[at] for at in item.rows.values() if len(at) > 1]
    if not parts:
        nothing = Interval(0.0, -np.inf, np.inf, 0, item.plan.alpha, MACRO, degenerate="no task of two pairs")
        return Check("mean over tasks", item.name, nothing, item.plan.margin, item.unit, required=False)
    mean = float(np.mean([part.mean() for part in parts]))
    error = float(np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts))) / len(parts)
    half = normal(item.plan.alpha) * error
    why = "" if error > 0 else "all differences are equal: no variance to judge by"
    n = sum(map(len, parts))
    interval = Interval(mean, mean - half, mean + half, n, item.plan.alpha, MACRO, degenerate=why)
    note = f"{len(parts)} tasks count alike; clusters are not in its interval" if item.groups is not None else ""
    note = note or f"{len(parts)} tasks count alike"
    return Check("mean over tasks", item.name, interval, item.plan.margin, item.unit, required=False, note=note)


def lost_table(judged: Sequence[Column]) -> Table:
    """Tasks that lost for certain, after Holm's correction over all tasks of a metric; none with clusters."""
    rows = []
    for item in judged:
        if item.names is None or item.groups is not None:
            continue
        for name, p in sorted(regressed(item.base, item.cand, item.names, item.plan.alpha).items(), key=lambda x: x[1]):
            at = item.rows[name]
            scale = 100.0 if item.unit == "%" else 1.0
            unit = {"%": "points", "1": ""}.get(item.unit, item.unit)
            change = scale * float(item.difference[at].mean())
            rows.append((printable(name), printable(item.name), change, unit, f"{p:.2g}", len(at)))
    heads = (
        Head("task", "Task"), Head("metric", "Metric"), Head("delta", "Change"), Head("unit", "Unit"),
        Head("p", "p", "", "one-sided, corrected by Holm"), Head("n", "n"),
    )  # fmt: skip
    return Table("Tasks that regressed", heads, tuple(rows))


def _claims(lost: Table) -> Section:
    if not lost.rows:
        return Section("Tasks that regressed", ("No task lost for certain, after Holm's correction.",))
    said = "Each of these lost something for certain, all of them at the level of the plan: a claim apart from margins."
    return Section("Tasks that regressed", (said,), ("gate.regressed",))
