"""T212: does the compiled module recompute more than was planned."""

from collections.abc import Iterable

from ridgeline.arithmetic.hlo_cost import Totals, totals
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.facts import TraceFacts

_PLANNED = {"none": 0.0, "selective": 95.0, "full": 100.0}  # selective below nearly everything


@rule("T212", "The compiler recomputes no more than planned", threshold=5, unit="%",
      why="a few small matmuls are recomputed under any policy")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Matmul FLOPs in instructions that the compiled module marks as rematerialized, over those of its forward pass,
    against the plan of the run file (`training.recompute`; nothing planned where it is silent).

    ## Why it matters
    A checkpoint policy names what is kept; what it forgets is recomputed. The compiler itself also rematerializes
    under memory pressure, without a word in the log.

    ## How to confirm
    Compile with and without the policy and compare both dumps: the difference lists what is recomputed only in one.
    Look for `rematted_computation` in `op_name` and for `.remat` in instruction names.

    ## What to do, cheapest first
    1. Name the projections and the attention output in the policy so that they are kept.
    2. Free memory (a smaller micro-batch, sharded optimizer state), and the compiler's own rematerialization ends.
    3. Offload kept activations to the host.

    ## Sources
    The HLO's metadata. The cost is the time of the FLOPs at the dense bf16 peak: a lower bound.
    """
    if facts.l2 is None:
        return
    for module in facts.l2.hlo:
        sums = totals(module)
        if not sums.forward_flops:
            if sums.recomputed_flops:
                yield this.found(
                    Verdict.UNKNOWN, "The HLO recomputes matmuls, but its forward pass is not in the dump.",
                    "Dump the whole module.",
                )  # fmt: skip
            continue
        yield _judged(facts, this, sums)


def _judged(facts: TraceFacts, this: Rule, sums: Totals) -> Finding:
    source = Source("the HLO", f"{sums.recomputed_matmuls} of {sums.matmuls} matmuls")
    again = leaf("hlo.recomputed", float(sums.recomputed_flops), "FLOP/chip", "measured", source)
    forward = leaf("hlo.forward", float(sums.forward_flops), "FLOP/chip", "measured", source)
    mode = facts.context.file.training.recompute
    planned = leaf("hlo.planned", _PLANNED[mode], "%", "specified", Source("run.toml", "training.recompute"))
    inputs = {"again": again.titled("Recomputed FLOPs"), "forward": forward.titled("Forward FLOPs")}
    share = derive("hlo.recomputed_share", "again/forward", "%", **inputs).titled("Recomputed share of forward")
    beyond = derive("hlo.unplanned", "max(share - planned, 0)", "%", share=share, planned=planned)
    holds = this.holds(beyond)
    return this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"The module recomputes {{{share.name}}} of its forward matmul FLOPs; planned is {mode}.",
        "" if holds else "Name what should be kept in the checkpoint policy.",
        value=beyond.titled("Recomputed beyond the plan"),
        cost=Cost() if holds else _cost(facts, again),
        cites=(share,),
    )


def _cost(facts: TraceFacts, again: Quantity) -> Cost:
    peak = facts.l2.device.peak("bf16") if facts.l2 is not None and facts.l2.device is not None else None
    if peak is None:
        return Cost()
    seconds = derive("lost.remat", "flops/peak", "s", flops=again, peak=peak)
    return facts.cost(seconds.titled("Recomputed FLOPs at the peak"))
