"""Where the numbers of a comparison come from."""

from ridgeline.core.quantity import Source
from ridgeline.plan.verify.compare import Comparison


def measured(facts: Comparison) -> Source:
    """The compiled program as a source."""
    plan = facts.program.twin.plan
    return Source("optimized HLO of the twin", f"{plan.chips} virtual CPU devices, XLA by way of JAX")
