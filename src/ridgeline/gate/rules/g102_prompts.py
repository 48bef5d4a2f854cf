"""G102: were both models asked the same."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.evidence.findings import Evidence


@rule("G102", "Both runs sent the same prompts")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The hash of what was sent, pair by pair. One that differs fails; a log without prompts is unknown.

    ## Why it matters
    Another chat template, another few-shot order or a truncated context changes scores by more than most formats do.
    The difference between the runs is then not the difference between the models.

    ## How to confirm
    Print one prompt of either log for the same example, and compare them byte by byte, the special tokens included.

    ## What to do, cheapest first
    1. Run both with the same chat template, few-shot seed and maximum length.
    2. Log the prompt's hash, where the log has none: the column prompt_hash of a table.

    ## Sources
    lm-evaluation-harness documentation (chat_template_sha and prompt_hash are logged to be compared); Sclar et al.,
    Quantifying Language Models' Sensitivity to Spurious Features in Prompt Design, 2024.
    """
    if not isinstance(facts, Evidence):
        return
    differ = facts.pairs.prompts_differ
    if differ is None:
        fix = "Log a hash of each prompt, in the column prompt_hash."
        yield this.found(Verdict.UNKNOWN, "A log has no prompts: whether both runs sent the same is unknown.", fix)
        return
    count = facts.figure("prompts_differ", "Pairs whose prompts differ", differ)
    of = facts.figure("paired", "Examples in both runs", len(facts.pairs))
    said = f"{{{count.name}}} of {{{of.name}}} pairs were sent different prompts."
    fix = "Run both with the same chat template, few-shot seed and maximum length." if differ else ""
    yield this.found(Verdict.FAIL if differ else Verdict.PASS, said, fix, cites=(count, of))
