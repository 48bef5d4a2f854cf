"""G126: did prompts arrive whole, and answers end by themselves."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.canary.facts import CanaryFacts, arrived, plain


@rule(
    "G126",
    "Prompts arrive whole",
    threshold=0.8,
    why="tokens a character differ by a few percent between texts of one corpus, and by more where prompts are cut",
    at_least=True,
)
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The prompt tokens that the server counted over those estimated, in the longest tenth of the contexts beside the
    shortest. Where long prompts have fewer, a part of them never reached the model. Answers that were cut off at the
    limit of tokens warn.

    ## Why it matters
    Some servers cut prompts that are too long and answer all the same. The needles at one end are then lost to every
    format alike. An answer that was cut off has lost the needles that it would have named last.

    ## How to confirm
    The fields `prompt_tokens` and `finish` of the results.

    ## What to do, cheapest first
    1. Raise `--max-tokens` of the probe where answers were cut off.
    2. Raise the server's longest prompt, or make the set shorter.
    3. Make the server refuse prompts that are too long.

    ## Sources
    The interface of chat completions: `usage.prompt_tokens`, `finish_reason`.
    """
    if not isinstance(facts, CanaryFacts):
        return
    assert this.threshold is not None
    for run, counted in facts.counted.items():
        found = arrived(counted)
        if found is not None and found.share < float(this.threshold.base):
            said = f"{run}: of the longest prompts {found.share:.0%} of the tokens arrived, beside the shortest ones."
            yield this.found(Verdict.FAIL, plain(said), "Raise the server's longest prompt, or make the set shorter.")
        elif found is not None:
            yield this.found(Verdict.PASS, plain(f"{run}: the longest prompts arrived as whole as the shortest."), "")
        cut = sum(item.cut for item in counted.values())
        if cut:
            said = f"{run}: {cut:,} of {len(counted):,} answers were cut off at the limit of tokens."
            yield this.found(Verdict.WARN, plain(said), "Ask again with a larger --max-tokens.")
