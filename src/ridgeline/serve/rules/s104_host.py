"""S104: the engine's own time is small."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S104", "The engine's own time is small", threshold=30, unit="%",
      why="a planning limit: beyond it the remedy below is worth its trouble")  # fmt: skip
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of a step that the fitted terms give to the engine: a step, a sequence, launches a layer.

    ## Why it matters
    Time of the host grows with neither chips nor bandwidth; faster kernels do not shorten it.

    ## How to confirm
    Profile a step: gaps between kernels are the host's.

    ## What to do, cheapest first
    1. CUDA graphs for decode, and overlapped scheduling.
    2. Fewer chips a replica: less to launch for as much work.
    3. A newer engine.

    ## Sources
    Constants fitted to published rows, core/data/serving.json.
    """
    share = facts.share("step", "sequence", "layer")
    good = this.holds(share)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN, f"The engine's own time is {{{share.name}}} of a token's.",
        "" if good else "Capture decode steps in graphs, or use fewer chips a replica.", value=share,
    )  # fmt: skip
