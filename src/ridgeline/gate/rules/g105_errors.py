"""G105: what became of the examples that failed."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised, printable
from ridgeline.gate.evidence.failures import turned_by_failures
from ridgeline.gate.evidence.findings import Evidence

SHOWN = 3
_COUNTED = {"wrong": "counted as wrong answers", "drop": "left out, as the plan says", "refuse": "refused"}


@rule(
    "G105", "Failed examples stay in the denominator", threshold=5, unit="%",
    why="above this share the harness is measured more than the model",
)  # fmt: skip
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of examples that failed in either run. Any warns, with how the plan counts them; above the threshold in
    one run it fails. So it does where what failed in the baseline alone could have been right, and that would turn a
    check that passes: a baseline that crashes is easily beaten.

    ## Why it matters
    An example that timed out is not an example that is not there. Left out, a model that crashes on hard questions
    scores well; counted as an attack that succeeded, a crash looks like a breach.

    ## How to confirm
    List the failed rows of both logs by their error. Those of one run alone tell most.

    ## What to do, cheapest first
    1. Run the failed examples again, in both runs.
    2. Raise time and context limits until failures are those of the model.
    3. Where errors must be left out, register on_error = "drop" beforehand.

    ## Sources
    THUDM/AgentBench issue 234 (an errored sample removes its task); AgentDojo 0.1.35 (a run that failed is written with
    security = True).
    """
    if not isinstance(facts, Evidence):
        return
    pairs = facts.pairs
    shares = {
        side: facts.figure(
            f"failed.{side}", f"Share of examples that failed in the {side}", float(run.errors.mean()), "%"
        )
        for side, run in (("baseline", pairs.baseline), ("candidate", pairs.candidate))
    }
    worst = max(shares.values(), key=lambda share: float(share.value))
    if not pairs.failed.any():
        yield this.found(Verdict.PASS, "No example failed in either run.", "", value=worst)
        return
    how = _COUNTED[facts.plan.on_error]
    base, cand = (f"{{{share.name}}}" for share in shares.values())
    said = f"{base} of the examples failed in the baseline and {cand} in the candidate; they are {how}."
    turned = turned_by_failures(pairs, facts.plan, facts.metrics)
    if turned:
        more = f" and {len(turned) - SHOWN} more" if len(turned) > SHOWN else ""
        said += parenthesised(printable(f" Right in the baseline, they would turn {', '.join(turned[:SHOWN])}{more}."))
    verdict = Verdict.FAIL if turned or not this.holds(worst) else Verdict.WARN
    yield this.found(verdict, said, "Run the failed examples again.", value=worst, cites=tuple(shares.values()))
