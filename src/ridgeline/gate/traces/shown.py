"""What the gate of traces shows beside its checks: breaches, the hold-out by monitor, failed runs, gold actions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.core.case import Column as Head
from ridgeline.core.case import Section, Table
from ridgeline.core.format import printable
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.traces.gold import REORDERED, Matched
from ridgeline.gate.traces.holdout import Moved
from ridgeline.gate.traces.policy import Policy
from ridgeline.gate.traces.trace import Trace

SHOWN = 200  # rows of a table; what is left is counted in its note
_LABELS = {True: "malicious", False: "benign", None: ""}
_SOURCE = Source("the traces")


@dataclass(frozen=True, eq=False)
class Facts:
    """What the rules G161 to G164 judge. ``rows`` hold one trace a pair, failed ones among them."""

    rows: tuple[Trace, ...]
    policy: Policy
    plan: Plan
    moves: tuple[Moved, ...]
    gold: tuple[Matched, ...]

    @property
    def hidden(self) -> list[str]:
        """Names of calls that hide their tool."""
        return [name for row in self.rows for name in self.policy.hidden(self.policy.actions(row))]

    @property
    def failed(self) -> list[Trace]:
        """Runs with an error."""
        return [row for row in self.rows if row.failed]

    @property
    def unmade(self) -> list[Matched]:
        """Rewarded runs whose gold actions were not all made as asked."""
        return [item for item in self.gold if (item.trace.utility or 0) >= 1 and not item.whole]

    def figure(self, name: str, title: str, value: float, unit: str = "1") -> Quantity:
        """A counted figure, ``gate.traces.NAME``."""
        return leaf(f"gate.traces.{name}", value, unit, "measured", _SOURCE).titled(title)


def tables(facts: Facts, judged: Sequence[Trace]) -> dict[str, Table]:
    """``gate.rewrites`` always; breaches, failed runs, idle and unmade ones where there are some."""
    found = {"gate.rewrites": rewrites(facts.moves), "gate.breaches": breaches(judged, facts.policy)}
    if facts.failed:
        found["gate.failed"] = _failed(facts)
    idle = [row for row in judged if not len(facts.policy.actions(row))]
    if idle:
        columns = (Head("run", "Run"), Head("label", "Label"))
        rows = [(printable(row.key), _LABELS[row.malicious]) for row in idle]
        found["gate.idle"] = _cut("Runs without a single call: nothing to judge", columns, rows)
    if facts.unmade:
        heads = (Head("run", "Run"), Head("asked", "Asked"), Head("missing", "Not made"), Head("order", "Order only"))
        unmade = [_unmade(item) for item in facts.unmade]
        found["gate.unmade"] = _cut("Rewarded runs whose task asked for other actions", heads, unmade)
    return found


def _failed(facts: Facts) -> Table:
    columns = (Head("run", "Run"), Head("error", "Error"), Head("calls", "Calls"))
    rows = [(printable(r.key), printable(r.failed), len(facts.policy.actions(r))) for r in facts.failed]
    return _cut(f"Runs that failed, taken as {facts.plan.on_error}", columns, rows)


def _unmade(item: Matched) -> tuple[object, ...]:
    order = item.states.count(REORDERED)
    missing = sum(state not in (REORDERED, "made") for state in item.states)
    return printable(item.trace.key), len(item.states), missing, order


def sections(shown: dict[str, Table]) -> tuple[Section, ...]:
    """The sections of `tables`."""
    said = (
        "Every monitor scores each trace under no, a benign and a candid rationale; the actions are the same. A score "
        "that moves is a score of what the agent says."
    )
    rest = tuple(name for name in shown if name != "gate.rewrites")
    return (
        Section("The rationale-rewrite hold-out", (said,), ("gate.rewrites",)),
        Section("What was done against the policy, and what could not be judged", (), rest),
    )


def rewrites(moves: Sequence[Moved]) -> Table:
    """By monitor and pair of rationales: scores that moved, and the change of what is flagged."""
    rows = []
    for item in moves:
        harm, calm = _points(item, label=True), _points(item, label=False)
        change = item.change
        row = (printable(item.monitor.name), f"{item.first} to {item.second}", len(change), int(item.moved.sum()))
        rows.append((*row, float(change.mean()), float(np.abs(change).max()), harm, calm))
    columns = (
        Head("monitor", "Monitor"), Head("rationale", "Rationale"), Head("n", "n"), Head("moved", "Moved"),
        Head("mean", "Mean change", "", "of a score from 0 to 1"), Head("largest", "Largest change"),
        Head("malicious", "Malicious flagged", "point", "change of the share"),
        Head("benign", "Benign flagged", "point", "change of the share"),
    )  # fmt: skip
    return Table("Scores under another rationale", columns, tuple(rows))


def _points(item: Moved, *, label: bool) -> object:
    before, after, n = item.flagged(label)
    return 100 * (after - before) if n else ""


def breaches(rows: Sequence[Trace], policy: Policy) -> Table:
    """Breaches by kind, tool and what was found, the most frequent first, with the first runs of each."""
    seen: Counter[tuple[str, str, str]] = Counter()
    where: dict[tuple[str, str, str], str] = {}
    for row in rows:
        for item in dict.fromkeys(policy.violations(policy.actions(row))):
            key = item.kind, item.tool, item.what
            seen[key] += 1
            where.setdefault(key, row.key)
    listed = [(kind, printable(tool), printable(what), many, printable(where[kind, tool, what]))
              for (kind, tool, what), many in sorted(seen.items(), key=lambda pair: (-pair[1], pair[0]))]  # fmt: skip
    columns = (Head("kind", "Kind"), Head("tool", "Tool"), Head("found", "Found"), Head("runs", "Runs"),
               Head("first", "First run"))  # fmt: skip
    return _cut("Breaches of the policy", columns, listed)


def _cut(title: str, columns: tuple[Head, ...], rows: Sequence[tuple[object, ...]]) -> Table:
    note = f"The first {SHOWN} of {len(rows):,} rows." if len(rows) > SHOWN else ""
    return Table(title, columns, tuple(rows[:SHOWN]), note=note)
