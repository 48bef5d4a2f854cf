"""G103: are the outputs those of two runs."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.evidence.findings import Evidence


@rule("G103", "The outputs are not equal to the last bit")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether every output, or every real-valued score where outputs are not logged, is the same in both runs. If so, it
    fails. Where only zeros and ones are there, equality says nothing, and the rule is unknown.

    ## Why it matters
    Two formats do not round alike: a difference of exactly nothing on every example is the mark of a response cache
    that is not keyed by the model, of one log given twice, or of weights that were never changed.

    ## How to confirm
    Look at a real-valued score, such as a log-probability, of one example in both logs; look for a cache option.

    ## What to do, cheapest first
    1. Check that the two paths are two runs, of two models.
    2. Clear the response cache, or key it by model and by format, and run the candidate again.
    3. Log log-probabilities: short answers of two good models can agree, log-probabilities cannot.

    ## Sources
    EleutherAI/lm-evaluation-harness issue 4063 (a cache that is not keyed by the model).
    """
    if not isinstance(facts, Evidence):
        return
    n = facts.figure("paired", "Examples in both runs", len(facts.pairs))
    if facts.pairs.identical is None:
        fix = "Log the outputs, or a real-valued score."
        yield this.found(Verdict.UNKNOWN, "Zeros and ones alone cannot tell two runs from one.", fix)
    elif facts.pairs.identical:
        runs = (facts.pairs.baseline, facts.pairs.candidate)
        names = [run.settings.get("model_name", run.settings.get("model", "")) for run in runs]
        models = " although the models differ" if names[0] != names[1] else ""
        said = f"All outputs of {{{n.name}}} pairs are equal to the last bit{models}: a cache, or one run twice."
        yield this.found(Verdict.FAIL, said, "Clear the response cache, and run the candidate again.", cites=(n,))
    else:
        yield this.found(Verdict.PASS, f"The outputs of {{{n.name}}} pairs are not all equal.", "", cites=(n,))
