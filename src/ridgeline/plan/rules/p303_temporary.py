"""P303: do the compiled program's buffers stay near the plan's."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import leaf
from ridgeline.plan.verify.compare import Comparison
from ridgeline.plan.verify.facts import measured


@rule("P303", "Temporary memory is near that of the plan", threshold=100, unit="%",
      why="above the plan: unfused softmax, SwiGLU and norms keep about twice the tensors of fused ones")  # fmt: skip
def check(facts: Comparison, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The compiler's temporary buffers against gradients, kept activations and logits of the plan, and its arguments
    against parameters and optimizer states, which must agree within a hundredth.

    ## Why it matters
    A tensor that the plan forgets, or a layer that stays gathered, shows here before it shows as an out-of-memory
    error on the real device.

    ## How to confirm
    Compile with another recompute policy: the difference between two policies is free of what both have.

    ## What to do, cheapest first
    1. Compare the parts: gradients and logits are exact, activations depend on the kernels.
    2. On the real device read its own peak: buffers of a CPU program are not those of an accelerator.

    ## Sources
    docs/design/compiled-truth.md.
    """
    sizes = facts.program.memory
    over = 100 * (sizes["temporary"] / facts.temporary_bytes - 1)
    excess = leaf("verify.temporary.excess", over, "%", "measured", measured(facts)).titled("Temporary over the plan's")
    held = 100 * (sizes["arguments"] / facts.memory["arguments"] - 1)
    state = leaf("verify.arguments.excess", held, "%", "measured", measured(facts)).titled("Arguments over the plan's")
    good = this.holds(excess) and over > -50 and abs(held) <= 1
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        f"Temporary buffers are {{{excess.name}}} above the plan's, arguments {{{state.name}}}.",
        "" if good else "Compare the parts in the table of memory.",
        value=excess, cites=(state,),
    )  # fmt: skip
