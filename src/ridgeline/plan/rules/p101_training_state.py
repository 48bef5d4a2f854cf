"""P101: does the training state fit the cluster."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.plan.plan import Plan


@rule("P101", "Training state fits the cluster", threshold=50, unit="%",
      why="the other half is for activations, buffers and the allocator")  # fmt: skip
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Weights, gradients and optimizer states of the chosen model, fully sharded over every chip, as a share of the
    cluster's memory (in percent of all HBM).

    ## Why it matters
    State that does not fit sharded cannot be trained at any parallelism. State that fills most of the memory leaves
    too little for activations, and the rest is paid back in recomputation and small microbatches.

    ## How to confirm
    `ridgeline why CASE state.share` shows the bytes per parameter and the chips. One step of the real run prints the
    peak; the recipe table of the plan adds activations.

    ## What to do, cheapest first
    1. Keep optimizer states in fewer bits (8-bit Adam), or use one with less state.
    2. Use more chips, or chips with more memory.
    3. Choose a smaller model.

    ## Sources
    Rajbhandari et al. 2020, ZeRO (arXiv:1910.02054), section 3: 16 bytes per parameter for mixed-precision Adam.
    """
    share = plan.state_share
    if share is None:
        yield this.found(
            Verdict.UNKNOWN, "The memory of the chip is not known, so whether the training state fits is not either.",
            "Give a device TOML with hbm.bytes.",
        )  # fmt: skip
        return
    fits = this.holds(share)
    yield this.found(
        Verdict.PASS if fits else Verdict.FAIL,
        "The training state takes {state.bytes} of {state.memory}: {state.share} of the memory of all chips.",
        "" if fits else "Keep the optimizer states in 8 bits, or add chips.",
        value=share,
    )
