"""G162: does the log say which tool was called."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import printable
from ridgeline.gate.traces.shown import Facts


@rule("G162", "Every call is recorded under its own tool")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Calls without a name, or under a name that loggers give to every call (exec, call_tool, and others; `wrappers` in
    the policy replaces the list). A name that the policy allows is taken as a tool of its own.

    ## Why it matters
    A policy of tools cannot be judged on a log where every tool has one name: nothing forbidden is ever seen, and the
    agent ships.

    ## How to confirm
    Count the distinct tool names of the log beside the tools that the agent was offered.

    ## What to do, cheapest first
    1. Log the tool's name where the agent calls it, not where the call is dispatched.
    2. If the agent really has one such tool, name it under `tools.allowed` and give its arguments rules.

    ## Sources
    PostHog issue 89942 (every tool call recorded as exec).
    """
    if not isinstance(facts, Facts):
        return
    names = facts.hidden
    total = sum(len(facts.policy.actions(row)) for row in facts.rows)
    hidden = facts.figure("hidden", "Calls that hide their tool", len(names))
    calls = facts.figure("calls", "Calls", total)
    if not names:
        yield this.found(Verdict.PASS, f"All {{{calls.name}}} calls name their tool.", "", value=hidden, cites=(calls,))
        return
    said = f"{{{hidden.name}}} of {{{calls.name}}} calls are recorded as {printable(names[0]) or 'no name'}."
    yield this.found(Verdict.FAIL, said, "Log the tool's own name.", value=hidden, cites=(calls,))
