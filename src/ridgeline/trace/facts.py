"""What the rules of this room look at: the run, its levels, and what a second is worth."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ridgeline.core.finding import Cost
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.trace import cost
from ridgeline.trace.context import RunContext
from ridgeline.trace.events import Run

if TYPE_CHECKING:  # the levels do not depend on one another, nor this module on how they are computed
    from ridgeline.trace.audit import Audit
    from ridgeline.trace.bridge import Bridge
    from ridgeline.trace.dumps import Dumps
    from ridgeline.trace.levels.l0 import RankBuckets
    from ridgeline.trace.levels.l1 import Collectives
    from ridgeline.trace.levels.l2 import Operations
    from ridgeline.trace.levels.l3 import StripChart
    from ridgeline.trace.levels.l4 import RankSpread


@dataclass(frozen=True, eq=False)
class TraceFacts:
    """Everything that is known. A level that had no input is None (``l0`` is empty)."""

    context: RunContext = field(default_factory=RunContext)
    run: Run | None = None
    l0: tuple["RankBuckets", ...] = ()
    l1: "Collectives | None" = None
    l2: "Operations | None" = None
    l3: "StripChart | None" = None
    l4: "RankSpread | None" = None
    audit: "Audit | None" = None
    bridge: "Bridge | None" = None
    dumps: "Dumps | None" = None

    @cached_property
    def step(self) -> Quantity | None:
        """The step time (s): the one that the context gives, else the step log's mean, else ``trace.step``."""
        return self.context.step or self.logged_step or self.traced_step

    @cached_property
    def logged_step(self) -> Quantity | None:
        """``log.step`` (s): the mean step of the step log after warm-up, stalls included."""
        if self.l3 is None or not self.l3.mean_s > 0:
            return None
        source = Source(self.l3.log.path, "mean step after warm-up")
        return leaf("log.step", self.l3.mean_s, "s", "measured", source).titled("Step time in the log")

    @cached_property
    def traced_step(self) -> Quantity | None:
        """``trace.step`` (s): the mean span of the steady steps, on the rank where it is longest."""
        means = {rank.label: rank.mean_s("span") for rank in self.l0 if rank.steps.steady.any()}
        if not means:
            return None
        slowest = max(means, key=lambda label: means[label])
        source = Source("the trace", f"{slowest}, mean over its steady steps")
        return leaf("trace.step", means[slowest], "s", "measured", source).titled("Step time in the trace")

    def cost(self, seconds: Quantity) -> Cost:
        """What ``seconds`` lost per step cost; figures that the context does not allow are None."""
        return cost.cost(self.context, seconds, self.step)
