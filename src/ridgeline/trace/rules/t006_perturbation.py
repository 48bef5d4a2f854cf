"""T006: does the profiler change what it measures."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace.facts import TraceFacts


@rule("T006", "The profiler does not slow the step", threshold=5, unit="%",
      why="above that the gaps in a trace are partly the profiler's own")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The step time under the profiler (`observed.profiled`, or the traced steps) against the step time without it
    (`observed.step`), in percent.

    ## Why it matters
    Python stacks, shapes and memory events cost host time. A host-bound step then shows gaps that the run does not
    have, and the buckets of the trace do not add up to the step that is paid for.

    ## How to confirm
    Log step times through the profiled window and around it.

    ## What to do, cheapest first
    1. Profile again without stacks, shapes and memory.
    2. Profile fewer ranks, and fewer steps.
    3. Take seconds from the step log and only their division from the trace.

    ## Sources
    `docs/how-to/profile.md`.
    """
    found = _perturbation(facts)
    if found is None:
        yield this.found(
            Verdict.UNKNOWN, "There is no step time both with and without the profiler.",
            "Give observed.step from the step log, and observed.profiled.",
        )  # fmt: skip
        return
    far = derive("audit.perturbation_size", "abs(p)", "%", p=found).titled("Step time under the profiler, difference")
    holds = this.holds(far)
    slower = float(found.value) >= 0
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"Profiled steps are {{{far.name}}} {'longer' if slower else 'shorter'} than unprofiled ones."
        + ("" if slower or holds else " The profiled window is not representative: it misses stalls."),
        "" if holds else "Profile without stacks, shapes and memory; take a window that holds the stalls.",
        value=far,
    )


def _perturbation(facts: TraceFacts) -> Quantity | None:
    """The run file's, else the traced steps against the step without a profiler."""
    if facts.audit is not None and facts.audit.perturbation is not None:
        return facts.audit.perturbation
    step, traced = facts.context.step, facts.traced_step
    if step is None or traced is None:
        return None
    return derive("audit.perturbation", "traced/step - 1", "%", traced=traced, step=step)
