"""G104: were both runs measured alike."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised, printable
from ridgeline.gate.evidence.findings import Evidence
from ridgeline.gate.evidence.pairing import Difference

SOFTWARE = (
    "git_hash", "lm_eval_version", "transformers_version", "inspect_version", "batch_size", "use_cache", "tokenizer",
)  # fmt: skip
SHOWN = 5


@rule("G104", "Both runs were measured with the same settings")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    What the logs say of chat template, special tokens, maximum length, limit, seeds, few-shot count, task version and
    number of examples. One that differs fails; other software or another batch size warns. The model may differ. Logs
    without settings are unknown.

    ## Why it matters
    Another limit is another sample, another seed another few-shot prompt, another maximum length a truncated question.
    Each moves scores by about as much as the formats that are compared.

    ## How to confirm
    Open the results file of either run at the named settings.

    ## What to do, cheapest first
    1. Run the candidate again with the baseline's settings.
    2. Where software must differ, run the baseline once with the new software too, and compare like with like.

    ## Sources
    EleutherAI/lm-evaluation-harness issues 1645, 1751 and 3357 (scores that move with batch size and devices).
    """
    if not isinstance(facts, Evidence):
        return
    if not facts.pairs.baseline.settings or not facts.pairs.candidate.settings:
        fix = "Keep the results file beside the samples; a table has no settings."
        yield this.found(Verdict.UNKNOWN, "A log has no settings: whether both were measured alike is unknown.", fix)
        return
    found = facts.pairs.differences
    hard = [item for item in found if item.name.partition(" of ")[0] not in SOFTWARE]
    soft = [item for item in found if item not in hard]
    if hard:
        yield this.found(Verdict.FAIL, f"Settings differ: {_listed(hard)}.", "Run both with the same settings.")
    if soft:
        yield this.found(Verdict.WARN, f"Software differs: {_listed(soft)}.", "Run both with the same software.")
    if not found:
        yield this.found(Verdict.PASS, "The settings that both logs hold agree.", "")


def _listed(items: list[Difference]) -> str:
    shown = [f"{item.name} {item.baseline[:40]} against {item.candidate[:40]}" for item in items[:SHOWN]]
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return parenthesised(printable("; ".join(shown) + more))
