"""S005: how much of the cache pages waste."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.capacity.facts import CapacityFacts


@rule("S005", "Pages waste little of the cache", threshold=4, unit="%",
      why="paged attention was measured to waste under 4%")  # fmt: skip
def check(facts: CapacityFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The expected share of a request's cache that holds no token: half of its last page, the page that a sliding window
    touches beyond its width, and what a recurrent state is padded to where all pages have one size.

    ## Why it matters
    With pages of 16 tokens it is next to nothing. Hybrid models are another matter: an allocator with one page size
    grows the page until it holds a state, to hundreds or thousands of tokens, and every request pins one per group.

    ## How to confirm
    The engine's log names the page size that it settled on. `ridgeline why CASE kv.fragmentation` shows the terms.

    ## What to do, cheapest first
    1. Keep states in 16 bits where quality allows: pages shrink with them.
    2. Keep keys and values in 16 bits: in 8 bits a page has twice the tokens.
    3. Pack short requests into fewer, longer ones.

    ## Sources
    Kwon et al. 2023, PagedAttention (arXiv:2309.06180), section 1; vllm-project/vllm, issue 54458.
    """
    holds = this.holds(facts.fragmentation)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"Pages of {{{facts.capacity.page.name}}} waste {{kv.fragmentation}} of a request of this length.",
        "" if holds else "Keep states in 16 bits, or pack short requests.",
        value=facts.fragmentation,
        cites=(facts.capacity.page,),
    )
