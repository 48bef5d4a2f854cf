"""T206: forward work that backward repeats."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2_losses import shares


@rule("T206", "Backward repeats no forward work unplanned", threshold=1, unit="%",
      why="recomputation is chosen or it is not; a percent allows for small deliberate pieces")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Kernels that repeat the forward pass inside backward: by the frames of checkpointing where the trace has Python
    stacks, else by forward operators under nodes of the autograd engine.

    ## Why it matters
    Full recomputation costs up to a third more FLOPs: with it on, a 50% MFU expectation is a 37% one. It is often left
    on from a debugging session, or covers more layers than memory needs.

    ## How to confirm
    Switch checkpointing off for one layer and see whether memory still fits and the step gets shorter.

    ## What to do, cheapest first
    1. Say in run.toml what is planned (`training.recompute`).
    2. Recompute selectively: attention only, or every second layer.
    3. Shard or offload activations, or use a smaller micro-batch, and switch it off.

    ## Sources
    Chen et al. 2016 (arXiv:1604.06174); Korthikanti et al. 2022 (arXiv:2205.05198).
    """
    ops = facts.l2
    if ops is None or ops.recompute is None or ops.recompute.method == "none" or not ops.rows:
        return
    seconds, share = shares(ops, "recompute", ops.recompute.kernel_ns)
    planned = facts.context.file.training.recompute
    holds = this.holds(share) or planned == "full"
    if this.holds(share) and 2 * ops.recompute.opaque_ns > ops.recompute.backward_ns:
        yield this.found(
            Verdict.UNKNOWN,
            f"Most of backward is a compiled graph, whose own recomputation does not show; {{{seconds.name}}} per step "
            "is recomputed outside of it.",
            "Compare the FLOPs of the compiled backward graph with twice those of forward.",
            value=share,
            cites=(seconds,),
        )
        return
    told = f" Planned: {planned}." if not this.holds(share) else ""
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"Backward repeats {{{seconds.name}}} of forward kernels per step ({ops.recompute.kernels} in the trace, found "
        f"by {ops.recompute.method}), {{{share.name}}} of the device's work.{told}",
        "" if holds else "Recompute less: selectively, or fewer layers; say in run.toml what is planned.",
        value=share, cost=Cost() if holds else facts.cost(seconds), cites=(seconds,),
    )  # fmt: skip
