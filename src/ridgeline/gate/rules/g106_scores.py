"""G106: can the scores be what their names say."""

from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised, printable
from ridgeline.gate.evidence.findings import Evidence, slug
from ridgeline.gate.evidence.samples import SHARES, is_loss, words_of

NEVER_NEGATIVE = ("brier", "kld")


@rule("G106", "Scores lie where their metric allows")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Metrics that are shares by name (accuracy, exact match, confidence ...) must lie between 0 and 1, losses above 0,
    and both runs on one scale: a fraction against a percentage fails. Other metrics warn where a few scores leave the
    range of 0 to 1 that all the rest keep. A metric of which neither its name nor its log says which way is better
    fails, and warns where the plan names it: more is then taken as better.

    ## Why it matters
    One score of 100 among fractions outweighs a hundred examples, and a negative score of a question drags a mean that
    nobody looks into. A paired difference hides both. And a loss that is taken for a score ships what got worse.

    ## How to confirm
    Sort the named column: the rows at its ends are those counted here.

    ## What to do, cheapest first
    1. Put both runs on one scale.
    2. Read the scorer of the rows that are counted; fix it, and score again.
    3. Name a metric that may leave the range for what it is, not accuracy.
    4. Say which way is better by a name: `--column loss=COLUMN`, `--column error_rate=COLUMN`, `--column score=COLUMN`.

    ## Sources
    RouterArena cached results (scores of -0.033 beside zeros and ones); mlflow issue 21487 and Phoenix pull request
    13226 (scores that a parser turned).
    """
    if not isinstance(facts, Evidence):
        return
    clean = True
    for metric in facts.pairs.metrics:
        for finding in (*_judged(facts, metric, this), *_direction(facts, metric, this)):
            clean = False
            yield finding
    if clean:
        yield this.found(Verdict.PASS, "Every score lies where its metric allows.", "")


def _judged(facts: Evidence, metric: str, this: Rule) -> Iterable[Finding]:
    columns = [run.scores[metric] for run in (facts.pairs.baseline, facts.pairs.candidate)]
    known = [column[~np.isnan(column)] for column in columns]
    if not all(len(column) for column in known):
        return
    tops = sorted(float(np.abs(column).max()) for column in known)
    words = words_of(metric)
    if is_loss(metric) or any(word in words for word in NEVER_NEGATIVE):
        outside, verdict = sum(int((column < 0).sum()) for column in known), Verdict.FAIL
        what = "below zero, which no loss is"
    else:
        outside = sum(int(((column < 0) | (column > 1)).sum()) for column in known)
        share = any(word in SHARES for word in words)
        mostly = outside <= 0.5 * sum(map(len, known))  # otherwise the metric has another range
        verdict = Verdict.FAIL if share else Verdict.WARN if mostly else Verdict.PASS
        what = "outside 0 to 1"
    if outside and 0 < tops[0] <= 1 and tops[1] > 20:
        what, verdict = f"{what}: one run in fractions, the other in percent", Verdict.FAIL
    if outside and verdict is not Verdict.PASS:
        count = facts.figure(f"outside.{slug(metric)}", f"Scores of {metric} out of range", outside)
        said = f"{{{count.name}}} scores of {parenthesised(printable(metric))} are {what}."
        yield this.found(verdict, said, "Read the scorer of these rows, and score both runs alike.", cites=(count,))


def _direction(facts: Evidence, metric: str, this: Rule) -> Iterable[Finding]:
    if metric not in facts.metrics or facts.pairs.says_direction(metric):
        return
    name = parenthesised(printable(metric))
    said = f"Nothing says which way {name} is better: more is taken as better."
    verdict = Verdict.WARN if metric in facts.plan.metrics else Verdict.FAIL
    yield this.found(verdict, said, "Name it for what it is: --column loss=NAME where less is better, else score.")
