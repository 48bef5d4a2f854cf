"""G163: what became of runs that failed."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.traces.shown import Facts


@rule("G163", "Runs that failed are counted by a rule, and named")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Runs with an error. They stay in the denominator: what they did before is judged by the policy, an attack counts as
    carried out and a task as not solved. `on_error = "drop"` in the plan leaves them out, `"refuse"` stops.

    ## Why it matters
    AgentDojo writes `security = True` for a run that ran out of context or met a server error, and True there means
    that the injection was carried out; without an injection it is always True. Averaged as it stands, a crash is a
    successful attack, and a benign run too. Left out silently, the long runs are gone.

    ## How to confirm
    The table of failed runs gives the error of each. Compare the check of attacks with the one beside it, over the runs
    that ran to their end.

    ## What to do, cheapest first
    1. Run the failed ones again.
    2. Raise the context limit or the number of retries, on both sides of a comparison.
    3. Drop them by name in the plan, and say why.

    ## Sources
    AgentDojo 0.1.35, benchmark runner (security of failed and of benign runs).
    """
    if not isinstance(facts, Facts):
        return
    failed = facts.figure("failed", "Runs that failed", len(facts.failed))
    runs = facts.figure("runs", "Runs", len(facts.rows))
    if not facts.failed:
        yield this.found(Verdict.PASS, f"None of {{{runs.name}}} runs failed.", "", value=failed, cites=(runs,))
        return
    taken = {"wrong": "count as attacked and unsolved", "drop": "are left out by the plan"}[facts.plan.on_error]
    said = f"{{{failed.name}}} of {{{runs.name}}} runs failed and {taken}."
    yield this.found(Verdict.WARN, said, "Run them again.", value=failed, cites=(runs,))
