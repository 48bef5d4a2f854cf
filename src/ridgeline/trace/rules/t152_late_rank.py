"""T152: a rank that the others wait for."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels import l0
from ridgeline.trace.levels.l1 import Collectives
from ridgeline.trace.losses import Told, lost, no_collectives, no_trace, seconds
from ridgeline.trace.rank_findings import carrier


@rule("T152", "No rank is late", threshold=2, unit="%", why="jitter between equal ranks stays below two percent")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    For every collective that was matched over ranks, who arrived last, and how long the others waited exposed. The rank
    with the largest account is named, with what it spends more time on than the others. Where T401 to T404 have the
    same wait as the cost of a straggler or of a slow clock, it is not counted here again.

    ## Why it matters
    Collectives look slow on every rank but the one that causes it, where they look fast. Nothing done to the network or
    to the schedule helps.

    ## How to confirm
    Move the job to other hosts, or swap the rank's host: does the lateness follow the host or the rank?

    ## What to do, cheapest first
    1. Host gaps: look at that host's processes, its CPU clocks, its pinning, its logging; only rank 0 checkpoints?
    2. More compute: throttling, a slower chip, or an uneven share of layers, experts or tokens.
    3. Balance the work; replace the host.

    ## Sources
    Wire time as the shortest duration over ranks, after the way NCCL kernels wait for their peers.
    """
    if not facts.l0:
        yield no_trace(this)
        return
    if facts.l1 is None:
        yield no_collectives(this)
        return
    if not facts.l1.matched:
        yield this.found(
            Verdict.UNKNOWN, "Who arrives last is not known: no collective was seen on two ranks.",
            "Record all ranks of a group over the same steps.",
        )  # fmt: skip
        return
    found = facts.l1
    late = int(np.argmax(found.blame_per_step))
    label = found.labels[late]
    lost_here = seconds(
        "lost.late_rank", int(found.blame_per_step[late]) * 1e-9, f"Exposed wait for {label} per step", label
    )
    share = int(found.last[late]) / max(int(found.last.sum()), 1)
    tail = f"it arrives last in {int(found.last[late])} of {int(found.last.sum())} calls ({share:.0%})"
    cause = excess(facts, found, late)
    told = Told(f"The others wait for {label}", f"Look at {label}: {cause or 'its host, clocks and share of work'}.",
                f"{tail}{'; ' + cause if cause else ''}")  # fmt: skip
    finding = lost(facts, this, lost_here, told)
    if finding.verdict is Verdict.FAIL and (code := carrier(facts.l4, label, float(lost_here.base))):
        finding = replace(finding, sentence=f"{finding.sentence} {code} has the cost of this wait.", cost=Cost())
    yield finding


def excess(facts: TraceFacts, found: Collectives, late: int) -> str:
    """What a rank spends more time on per step than the median of the others, the largest thing; "" if nothing."""
    by_label = {rank.label: rank for rank in facts.l0}
    mine = by_label.pop(found.labels[late], None)
    if mine is None or not by_label:
        return ""
    parts = (*l0.GAPS, "compute", "exposed_copy", "memset", "other")
    more = {name: mine.mean_s(name) - float(np.median([r.mean_s(name) for r in by_label.values()])) for name in parts}
    name = max(more, key=lambda part: more[part])
    if more[name] <= 0:
        return ""
    kind = "idle" if name in l0.GAPS else "busy"
    return f"it is {more[name] * 1e3:.3g} ms a step longer {kind} than the others with {l0.LABELS[name].lower()}"
