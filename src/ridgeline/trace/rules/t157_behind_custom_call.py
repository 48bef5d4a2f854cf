"""T157: collectives that stand behind a custom call."""

import re
from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l1 import Collectives
from ridgeline.trace.losses import Told, lost, no_collectives, no_trace, seconds, shown

GATHERS = ("all_gather", "broadcast")  # of weights: their inputs are ready from the start of the step
CUSTOM = re.compile(r"custom.?call|pallas|mosaic|splash|triton|cutlass|flash|ragged|grouped", re.IGNORECASE)


@rule("T157", "No collective stands behind a custom call", threshold=1, unit="%",
      why="a scheduler that sees through the call would have started it before")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Exposed all-gathers and broadcasts that start as a custom kernel ends on the same stream, where the kernel ran
    longer than the transfer takes and the call had been launched before its end.

    ## Why it matters
    Compilers do not move collectives across a call that they cannot see into, and a stream runs in order: a transfer
    whose input was ready waits for a kernel that it does not need.

    ## How to confirm
    In the HLO or on the timeline: does the gather use anything that the kernel computes? If not, it was serialised.

    ## What to do, cheapest first
    1. Issue the gather before the call (explicit prefetch, optimization barriers, another stream).
    2. Mark the call as free of side effects; give the scheduler a cost estimate of it.
    3. Split the call.

    ## Sources
    Order of events on one stream. XLA's latency-hiding scheduler treats custom calls as opaque.
    """
    if not facts.l0:
        yield no_trace(this)
        return
    if facts.l1 is None:
        yield no_collectives(this)
        return
    per_step_s, kernel = behind_custom(facts.l1)
    total = seconds("lost.comm_behind", per_step_s, "Exposed gathers behind a custom call", "same stream")
    fix = "Issue the gather before the custom call, or on another stream."
    told = Told(
        "Gathers that stand behind a custom call run exposed for", fix, f"behind {shown(kernel)}" if kernel else ""
    )
    yield lost(facts, this, total, told)


def behind_custom(found: Collectives) -> tuple[float, str]:
    """Exposed seconds per steady step (mean over ranks) of such gathers, and the kernel that most stand behind."""
    calls = found.instances
    custom = np.array([bool(CUSTOM.search(name)) for name in calls.names] + [False], dtype=np.bool_)
    gathers = np.array([row.key.kind in GATHERS for row in found.rows], dtype=np.bool_)
    stood = custom[calls.behind_name] & gathers[calls.row] & (calls.behind > calls.wire) & (calls.steady == 1)
    exposed = (calls.exposed - calls.exposed_wait)[stood]
    if not len(exposed):
        return 0.0, ""
    by_rank = np.bincount(calls.rank[stood], weights=exposed, minlength=len(found.labels))
    by_name = np.bincount(calls.behind_name[stood], weights=exposed)
    return float((by_rank / found.steps).mean()) * 1e-9, calls.names[int(np.argmax(by_name))]
