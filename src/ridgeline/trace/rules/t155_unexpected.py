"""T155: collectives that the plan does not have."""

from collections.abc import Iterable
from itertools import combinations
from math import prod

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.collective_names import element_bytes
from ridgeline.trace.context import RunContext
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l1 import Key
from ridgeline.trace.losses import Told, listed, lost, no_collectives, no_trace, seconds


@rule("T155", "Every collective is in the plan", threshold=0.5, unit="%",
      why="what the plan does not need should not cost anything")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The kinds, group sizes and shapes of collectives against the parallel plan of run.toml: an all-to-all without
    expert or context parallelism, point-to-point without pipeline or context parallelism, a group whose size no set of
    mesh axes has, and a gather of logits (a multiple of the vocabulary that is no embedding table).

    ## Why it matters
    A compiler that is given inconsistent shardings inserts re-sharding, silently: the step works and is slower.

    ## How to confirm
    Search the HLO for the shape, or set a breakpoint on the call: which tensor is it, and who asked for it?

    ## What to do, cheapest first
    1. A sharding constraint on the tensor; equal specs on both sides of the layer.
    2. Vocabulary-parallel cross-entropy instead of gathered logits.
    3. Correct the plan if the collective is meant.

    ## Sources
    Shapes and groups in the trace; `[parallel]` in run.toml.
    """
    if not facts.l0:
        yield no_trace(this)
        return
    if facts.l1 is None:
        yield no_collectives(this)
        return
    if "parallel" not in facts.context.file.model_fields_set:
        yield this.found(Verdict.UNKNOWN, "The parallel plan was not given.", "Give `[parallel]` in run.toml.")
        return
    reasons = {row.key: unexpected(row.key, facts.context) for row in facts.l1.rows}
    rows = [row for row in facts.l1.rows if reasons[row.key]]
    total_s = sum(row.per_step_s for row in rows)
    total = seconds("lost.comm_unexpected", total_s, "Exposed collectives outside the plan", "shapes and groups")
    tail = listed(facts, rows)
    if rows:
        tail += f"; {reasons[rows[0].key]}"
    fix = "Find the tensor and constrain its sharding."
    yield lost(facts, this, total, Told("Collectives that the plan does not have run exposed for", fix, tail))


def unexpected(key: Key, context: RunContext) -> str:
    """Why the plan has no such collective; "" if it may have it."""
    plan = context.file.parallel
    if key.kind == "all_to_all" and plan.ep == plan.cp == 1:
        return "an all-to-all without expert or context parallelism"
    if key.kind == "point_to_point" and plan.pp == plan.cp == plan.ep == 1:
        return "point to point without pipeline, context or expert parallelism"
    if key.group_size and key.group_size not in _group_sizes(context):
        return f"no set of mesh axes has {key.group_size} ranks"
    if key.kind == "all_gather" and _is_logits(key, context):
        return "the gathered array is a multiple of the vocabulary: logits"
    return ""


def _group_sizes(context: RunContext) -> set[int]:
    plan = context.file.parallel
    axes = [plan.dp, plan.tp, plan.pp, plan.cp]
    sizes = {prod(some) for n in range(len(axes) + 1) for some in combinations(axes, n)}
    experts = {size * plan.ep for size in sizes} | {size // plan.ep for size in sizes if size % plan.ep == 0}
    return sizes | experts


def _is_logits(key: Key, context: RunContext) -> bool:
    element = element_bytes(key.dtype)
    if context.spec is None or key.size is None or not element:
        return False
    numel = int(key.size / element)
    rows, rest = divmod(numel, context.spec.vocab)
    if rest or rows in (1, context.spec.d_model):
        return False
    # logits are whole sequences; weights of powers of two are multiples of the vocabulary by chance
    return context.file.batch is None or rows % context.file.batch.sequence == 0
