"""From findings to causes of the bridge: the bucket of each rule's seconds, and where two rules see the same time.

Findings overlap: a gather outside the plan is also a gather that could be hidden, and a late rank is seen by two
levels. Each kind of work gets an axis of its own, on which a finding's seconds are intervals: exposed time of every
collective call (its wait first, then its wire time), and device time of every operation (what it loses at its end).
`attribute` then gives each of them once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.finding import Finding
from ridgeline.trace.attribution import WIDEST, Cause
from ridgeline.trace.audit import audit
from ridgeline.trace.bridge import Bridge, bridge
from ridgeline.trace.context import Lever
from ridgeline.trace.events import NONE, Mask
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.incident import cause_of, ends_of
from ridgeline.trace.intervals import EMPTY, Spans, either, union
from ridgeline.trace.levels import l0, l2_losses
from ridgeline.trace.levels.l1 import Collectives, Row, Verdict
from ridgeline.trace.levels.l2 import Operations
from ridgeline.trace.losses import rows_judged
from ridgeline.trace.rules import t155_unexpected, t156_slow_hop, t157_behind_custom_call

STALLS = "stalls"  # the observed step less the traced one: what happens between traced steps
TYPICAL = "typical"  # of a run without traces: a step without stalls
MINUTE = 60.0
GROUPS: Mapping[str, tuple[str, ...]] = {
    "host_gap": ("input_gap", "sync_gap", "gc_gap"),
    "late_gap": ("framework_gap", "launch_gap", "queue_gap"),
}
# Where a bucket is looked for in a run without traces, whose buckets are coarser.
COARSER: Mapping[str, tuple[str, ...]] = {
    **{gap: (group, STALLS) for group, gaps in GROUPS.items() for gap in gaps},
    STALLS: ("host_gap",),
    "compute": (TYPICAL,),
    "exposed_comm": (TYPICAL,),
}
_OnCalls = Callable[[TraceFacts, Collectives, Finding], Spans]


@dataclass(frozen=True)
class Net:
    """What a rule catches. ``buckets`` in the order in which its seconds fill them; ``breadth`` 0 for one thing, higher
    for a net that also holds what narrower ones catch; ``confirm_min``: minutes to confirm, judged from the rule's
    page; ``risks``: codes whose seconds the fix may change."""

    buckets: tuple[str, ...]
    lever: Lever
    confirm_min: float
    breadth: int = 0
    risks: tuple[str, ...] = ()


_COMM, _COMPUTE = ("exposed_comm",), ("compute",)
_HOST = ("T152", "T401", "T154")  # who is late, and what hides, move with the host's gaps
# T203 is not here: what the tile pads is in the corrected expectation.
NETS: Mapping[str, Net] = {
    "T101": Net(("input_gap",), "flag", 15, 1, _HOST),
    "T102": Net(("launch_gap", "framework_gap"), "compiler", 60, 1, _HOST),
    "T103": Net(("sync_gap",), "model", 30, 1, _HOST),
    "T104": Net(("gc_gap",), "flag", 15, 1, _HOST),
    "T105": Net(("exposed_copy",), "flag", 30, 1),
    "T106": Net(("queue_gap",), "compiler", 60, 1),
    "T110": Net(("unknown_gap",), "flag", 30, 1),
    "T151": Net(_COMM, "flag", 60, WIDEST),
    "T152": Net(_COMM, "flag", 60, 1, ("T153", "T154")),
    "T153": Net(_COMM, "hardware", 60, 2),
    "T154": Net(_COMM, "compiler", 30, 2),
    "T155": Net(_COMM, "flag", 30, 0),
    "T156": Net(_COMM, "flag", 60, 1),
    "T157": Net(_COMM, "compiler", 60, 1),
    "T158": Net(_COMM, "model", 30, 2),
    "T201": Net(_COMPUTE, "kernel", 240, 2),
    "T202": Net(_COMPUTE, "model", 60, 1),
    "T204": Net(_COMPUTE, "model", 30, 0),
    "T205": Net(_COMPUTE, "compiler", 60, 0),
    "T206": Net(_COMPUTE, "flag", 15, 0, ("T154", "T205")),
    "T207": Net(_COMPUTE, "flag", 15, 0),
    "T208": Net(("launch_gap", "framework_gap"), "compiler", 60, 0, ("T102",)),
    "T209": Net(_COMPUTE, "model", 60, 0),
    "T210": Net(_COMM, "flag", 30, 1),
    "T211": Net(_COMM, "compiler", 60, 1),
    "T212": Net(_COMPUTE, "flag", 30, 1),
    "T213": Net(_COMPUTE, "kernel", 240, 2),
    "T301": Net((STALLS, "input_gap"), "flag", 60, 0),
    "T302": Net((STALLS, "gc_gap"), "flag", 15, 0),
    "T303": Net((STALLS,), "flag", 60, 0),
    "T304": Net((STALLS,), "flag", 15, 0),
    "T305": Net((STALLS,), "flag", 180, 0),
    "T306": Net((STALLS,), "hardware", 240, 1),
    "T307": Net((STALLS,), "flag", 240, 1),
    "T401": Net((*_COMM, STALLS), "hardware", 60, 0),
    "T402": Net((*_COMM, *_COMPUTE), "hardware", 30, 0, ("T152", "T401")),
    "T403": Net((*_COMM, *_COMPUTE), "hardware", 30, 0, ("T152", "T401")),
    "T404": Net((*_COMM, *_COMPUTE), "hardware", 30, 0, ("T152", "T401")),
}

ROUNDED = 0.02  # of the step: what buckets written by hand may lie above it
LATE = ("T152", "T401", "T402", "T403", "T404")  # all ranks but one wait

# Estimated from a compiler's text -> what sees the same loss in a trace, and measures it.
MEASURED_BY: Mapping[str, str] = {"T210": "T155", "T211": "T157", "T212": "T206"}


def bridge_of(facts: TraceFacts, findings: Sequence[Finding]) -> Bridge:
    """The bridge of a run from its traces, or from its run file where there are none.

    ``findings`` are those of levels 0 to 4. Causes of the run file are added; one with a rule's code stands for that
    rule's findings. Raises `InputError` where there
    is neither a step time nor a bucket.
    """
    found = facts.audit or audit(facts.context)
    buckets = buckets_of(facts)
    if not buckets:
        hint = "give traces, a step log, or [buckets] in run.toml"
        raise InputError.expected("seconds by bucket", None, where="the run", hint=hint)
    ends = ends_of(facts.context, found, facts.step)
    if sum(buckets.values()) > (1 + ROUNDED) * float(ends.step.base):
        expected = f"buckets that fill the step of {ends.step.base:g} s"
        raise InputError.expected(expected, f"{sum(buckets.values()):g} s", where="$.buckets")
    own = [_in_buckets(cause_of(row), buckets) for row in facts.context.file.cause]
    named = {cause.code for cause in own if cause.code}
    more = causes_of(facts, [finding for finding in findings if finding.code not in named])
    return bridge(ends, buckets, [*own, *more])


def _in_buckets(cause: Cause, buckets: Mapping[str, float]) -> Cause:
    """A cause of the run file with a group of gaps (``host_gap``, ``late_gap``) divided into those of L0."""
    seconds: dict[str, float] = {}
    for bucket, amount in cause.seconds.items():
        parts = GROUPS.get(bucket, ()) if bucket not in buckets else ()
        for name, part in (_filled(amount, parts, buckets) if parts else {bucket: amount}).items():
            seconds[name] = seconds.get(name, 0.0) + part
    return replace(cause, seconds=seconds)


def buckets_of(facts: TraceFacts) -> dict[str, float]:
    """Seconds per step by bucket: the mean over ranks of L0, and `STALLS` up to the step that is paid for.

    Without traces the run file's buckets, else the strip chart's typical step and its stalls.
    """
    if facts.l0:
        scale = unprofiled(facts)
        means = {name: float(np.mean([rank.mean_s(name) for rank in facts.l0])) * scale for name in l0.BUCKETS}
        step = float(facts.step.base) if facts.step is not None else 0.0
        return means | {STALLS: max(0.0, step - sum(means.values()))}
    if facts.context.file.buckets:
        return dict(facts.context.file.buckets)
    if facts.l3 is not None:
        return {TYPICAL: facts.l3.typical_s, STALLS: max(0.0, facts.l3.mean_s - facts.l3.typical_s)}
    return {}


def unprofiled(facts: TraceFacts) -> float:
    """What a second of the trace is in the run: below one where the profiler makes steps longer.

    The trace then says how a step divides, and the step log how long it is.
    """
    if not facts.l0 or facts.step is None:
        return 1.0
    traced = float(np.mean([rank.mean_s("span") for rank in facts.l0]))
    return min(1.0, float(facts.step.base) / traced) if traced > 0 else 1.0


def causes_of(facts: TraceFacts, findings: Iterable[Finding]) -> list[Cause]:
    """The findings that lose seconds, as causes with the time that they stand for."""
    known = [f for f in findings if f.cost.seconds is not None and f.code in NETS]
    codes = {f.code for f in known}
    late = {_late_label(facts.l1, f) for f in known if f.code in LATE[1:]} if facts.l1 is not None else set()
    lost = [f for f in known if MEASURED_BY.get(f.code) not in codes]
    # T152 knows calls alone, its neighbours the rank's own time as well
    lost = [f for f in lost if f.code != "T152" or facts.l1 is None or _late_label(facts.l1, f) not in late]
    names = _names(lost)
    free, scale = buckets_of(facts), unprofiled(facts)
    causes = [_cause(facts, finding, name, free, scale) for finding, name in zip(lost, names, strict=True)]
    by_code: dict[str, list[str]] = {}
    for cause in causes:
        by_code.setdefault(cause.code, []).append(cause.name)
    return [replace(c, risks=tuple(n for code in NETS[c.code].risks for n in by_code.get(code, []))) for c in causes]


def _names(findings: Sequence[Finding]) -> list[str]:
    """What people read: the label of the seconds; with the code and a number where two are alike."""
    names: list[str] = []
    for finding in findings:
        assert finding.cost.seconds is not None
        label = (finding.cost.seconds.label or finding.title).removesuffix(" per step").removesuffix(",")
        if NETS[finding.code].breadth == WIDEST:
            label = f"Other {label[:1].lower()}{label[1:]}"
        name, number = label, 1
        while name in names:
            number += 1
            name = f"{label} ({finding.code}, {number})"
        names.append(name)
    return names


def _cause(facts: TraceFacts, finding: Finding, name: str, free: Mapping[str, float], scale: float) -> Cause:
    net = NETS[finding.code]
    assert finding.cost.seconds is not None
    amount = float(finding.cost.seconds.base) * (1.0 if STALLS in net.buckets else scale)
    seconds = _waited(facts, finding, amount, free) or _filled(amount, net.buckets, free)
    spans = {bucket: found for bucket, found in _spans(facts, finding).items() if bucket in seconds and found.total}
    confirm_s = net.confirm_min * MINUTE
    return Cause(
        name, seconds, finding.code, net.lever, confirm_s, finding.fix, spans=spans, breadth=net.breadth
    )  # fmt: skip


def _waited(facts: TraceFacts, finding: Finding, amount: float, free: Mapping[str, float]) -> dict[str, float]:
    """A wait for one rank as means over ranks: the others are exposed, itself is late in its own largest bucket."""
    spread = facts.l4
    if finding.code not in LATE or facts.l1 is None or spread is None or spread.basis != "collectives":
        return {}
    label = _late_label(facts.l1, finding)
    excess = next((rank.excess for rank in spread.ranks if rank.label == label), {})
    where = max((name for name in excess if name in free), key=lambda name: excess[name], default="")
    if not where or "exposed_comm" not in free:
        return {}
    own = amount / len(spread.ranks)
    return {"exposed_comm": amount - own, where: own}


def _late_label(found: Collectives, finding: Finding) -> str:
    """The rank that a finding on waits names."""
    assert finding.cost.seconds is not None
    named = finding.cost.seconds.name.partition(".")[0]  # rank3.late_cost
    return named if named in found.labels else found.labels[int(np.argmax(found.blame_per_step))]


def _filled(amount: float, buckets: Sequence[str], free: Mapping[str, float]) -> dict[str, float]:
    """An amount over buckets in order, each up to what it holds; the first one there takes what fits nowhere."""
    there = [name for name in buckets if name in free]
    there = there or [other for name in buckets for other in COARSER.get(name, ()) if other in free]
    there = list(dict.fromkeys(there)) or [max(free, key=lambda name: free[name])]
    found: dict[str, float] = {}
    for name in there:
        found[name] = min(amount, free[name])
        amount -= found[name]
    found[there[0]] += amount
    return {name: value for name, value in found.items() if value > 0} or {there[0]: 0.0}


def _spans(facts: TraceFacts, finding: Finding) -> dict[str, Spans]:
    """A finding's time on the axis of its level, by the bucket that the axis divides."""
    if facts.l1 is not None and finding.code in _CALLS:
        return {"exposed_comm": _CALLS[finding.code](facts, facts.l1, finding)}
    if facts.l2 is not None and finding.code in _OPERATIONS:
        return {"compute": _on_operations(facts.l2, _OPERATIONS[finding.code](facts.l2))}
    return {}


def _calls(found: Collectives, mask: Mask, *, wait: bool = True, wire: bool = True) -> Spans:
    """Exposed time of the masked calls of steady steps, calls laid end to end."""
    calls = found.instances
    start = np.r_[0, np.cumsum(calls.exposed)[:-1]].astype(np.int64)
    rows = np.flatnonzero(mask & (calls.steady == 1))
    waits = union(start[rows], calls.exposed_wait[rows]) if wait else EMPTY
    wired = calls.exposed[rows] - calls.exposed_wait[rows]
    wires = union(start[rows] + calls.exposed_wait[rows], wired) if wire else EMPTY
    return either(waits, wires)


def _of_rows(found: Collectives, rows: Sequence[Row]) -> Mask:
    wanted = {id(row) for row in rows}
    return np.array([id(row) in wanted for row in found.rows], dtype=np.bool_)[found.instances.row]


def _waiting(facts: TraceFacts, found: Collectives, finding: Finding) -> Spans:
    """Waits for the rank that the finding names: it starts last among the ranks of a call."""
    late = found.labels.index(_late_label(found, finding))
    calls = found.instances
    matched = np.flatnonzero(calls.match != NONE)
    by_start = matched[np.lexsort((calls.start[matched], calls.match[matched]))]
    last = by_start[np.r_[calls.match[by_start][1:] != calls.match[by_start][:-1], True]] if len(by_start) else by_start
    return _calls(found, np.isin(calls.match, calls.match[last[calls.rank[last] == late]]), wire=False)


def _judged(verdict: Verdict) -> _OnCalls:
    def spans(facts: TraceFacts, found: Collectives, finding: Finding) -> Spans:
        return _calls(found, _of_rows(found, rows_judged(facts, found, verdict)), wait=False)

    return spans


def _unexpected(facts: TraceFacts, found: Collectives, finding: Finding) -> Spans:
    rows = [row for row in found.rows if t155_unexpected.unexpected(row.key, facts.context)]
    return _calls(found, _of_rows(found, rows))


def _slow_hop(facts: TraceFacts, found: Collectives, finding: Finding) -> Spans:
    device = facts.context.device
    if device is None or device.devices_per_node is None or device.scale_up is None:
        return EMPTY
    node, link = int(device.devices_per_node.base), float(device.scale_up.bandwidth.base)
    return _calls(found, _of_rows(found, [row for row in found.rows if t156_slow_hop.slow_hop(row, node, link)]))


def _behind(facts: TraceFacts, found: Collectives, finding: Finding) -> Spans:
    """The calls of T157; its own sum needs no intervals."""
    calls, rule = found.instances, t157_behind_custom_call
    custom = np.array([bool(rule.CUSTOM.search(name)) for name in calls.names] + [False], dtype=np.bool_)
    gathers = [row for row in found.rows if row.key.kind in rule.GATHERS]
    stood = custom[calls.behind_name] & _of_rows(found, gathers) & (calls.behind > calls.wire)
    return _calls(found, stood, wait=False)


_CALLS: Mapping[str, _OnCalls] = {
    "T152": _waiting,
    "T401": _waiting,
    "T402": _waiting,
    "T403": _waiting,
    "T404": _waiting,
    "T153": _judged("bandwidth"),
    "T154": _judged("scheduling"),
    "T158": _judged("latency"),
    "T155": _unexpected,
    "T156": _slow_hop,
    "T157": _behind,
}


def _on_operations(ops: Operations, found: l2_losses.Lost) -> Spans:
    """What each operation loses, at the end of its device time, operations laid end to end."""
    lengths = np.array([row.device_ns for row in ops.rows], dtype=np.int64)
    ends = {id(row): end for row, end in zip(ops.rows, np.cumsum(lengths).tolist(), strict=True)}
    lost = np.array([round(min(ns, row.device_ns)) for row, ns in found.rows], dtype=np.int64)
    last = np.array([ends[id(row)] for row, _ in found.rows], dtype=np.int64)
    return union(last - lost, lost) if len(lost) else EMPTY


def _repeated(ops: Operations) -> l2_losses.Lost:
    return l2_losses.lost((row, float(row.device_ns)) for row in ops.rows if row.phase == "recompute")


def _slow_matmuls(ops: Operations) -> l2_losses.Lost:
    """At a reach of one: the intervals then hold those of every lower threshold."""
    return l2_losses.below_reach(l2_losses.compute_bound_matmuls(ops), 1.0)


_OPERATIONS: Mapping[str, Callable[[Operations], l2_losses.Lost]] = {
    "T201": _slow_matmuls,
    "T202": l2_losses.quantized,
    "T204": l2_losses.unaligned,
    "T206": _repeated,
    "T207": l2_losses.single_precision,
    "T209": l2_losses.score_matrices,
}
