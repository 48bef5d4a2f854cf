"""S004: does the allocator know the windows."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.capacity.facts import CapacityFacts


@rule("S004", "Windowed layers keep no more than their window", threshold=1,
      why="an allocator that treats every layer as full keeps tokens that no query reads again")  # fmt: skip
def check(facts: CapacityFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    For a model with windowed or chunked layers: whether the engine is told to keep them whole (`windows = false` in the
    file of `--spec`), and how many times more that takes at this context.

    ## Why it matters
    An engine whose hybrid allocator is off, as some features still require, keeps every token in every layer. On models
    with one full layer in four or six that is several times the memory, hence that many fewer requests.

    ## How to confirm
    The engine's log at start-up says whether the hybrid allocator is off, and its pages change when it is.

    ## What to do, cheapest first
    1. Turn the hybrid allocator on, and off whatever turned it off.
    2. Lower the longest context that the engine accepts.
    3. Keep the cache in 8 bits.

    ## Sources
    vllm-project/vllm, pull request 39254 and issue 43308; alvarobartt/hf-mem, issue 60.
    """
    ratio = facts.windowed
    if ratio is None:
        return
    respected = facts.capacity.settings.windows
    short = this.holds(ratio)
    yield this.found(
        Verdict.PASS if respected or short else Verdict.WARN,
        "At this context no window is full." if short
        else "Windows are respected; whole layers would take {kv.windows_ignored} times as much." if respected
        else "Windowed layers are kept whole: {kv.windows_ignored} times what the model needs.",
        "" if respected or short else "Turn the hybrid allocator on, or drop windows = false from the --spec file.",
        cites=(ratio,),
    )  # fmt: skip
