"""T001: is there a FLOP convention behind the MFU."""

from collections.abc import Iterable

from ridgeline.arithmetic.conventions import find
from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.audit import Reading
from ridgeline.trace.facts import TraceFacts


@rule("T001", "The MFU names its FLOP convention")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That the run file names the FLOP convention of its MFU (`mfu.convention`), and says whether the time under it
    includes stalls (`mfu.with_stalls`).

    ## Why it matters
    Two counters of one vendor differ by 7.6% on the same run. Causal masks, recomputation, experts, vocabulary and
    tied tables are each counted in two ways in public code, and a step time without its stalls is not the month's.

    ## How to confirm
    Read the line of your trainer that multiplies by 6 or by 12. `ridgeline model` prints every
    convention.

    ## What to do, cheapest first
    1. Name the convention in `run.toml`.
    2. Report one convention everywhere, beside tokens per second and chip, which need none.

    ## Sources
    `ridgeline.arithmetic.conventions`, each convention with its source; Chowdhery et al. 2022, appendix B.
    """
    table = facts.context.file.mfu
    if table.reported is None and table.expected is None:
        yield this.found(
            Verdict.UNKNOWN, "No MFU was reported or expected, so there is none to audit.",
            "Put mfu.expected and mfu.reported into run.toml.",
        )  # fmt: skip
        return
    stalls = {None: "", True: " It includes stalls.", False: " It leaves stalls out: the month is slower."}
    if not table.convention:
        counted = [reading.title for reading in _near(facts)]
        like = f" The reported number is what {counted[0]} gives." if counted else ""
        yield this.found(
            Verdict.WARN, f"The MFU names no FLOP convention; 6N is used here.{like}{stalls[table.with_stalls]}",
            "Name mfu.convention in run.toml.",
        )  # fmt: skip
        return
    open_ = table.with_stalls is not True
    yield this.found(
        Verdict.WARN if open_ else Verdict.PASS,
        f"MFU is counted as in {find(table.convention).title}."
        + (stalls[table.with_stalls] or " Whether it includes stalls is not said."),
        "Divide by wall-clock time, stalls included, and say so in mfu.with_stalls." if open_ else "",
    )


def _near(facts: TraceFacts) -> list[Reading]:
    return list(facts.audit.matches(within=1.0)) if facts.audit else []
