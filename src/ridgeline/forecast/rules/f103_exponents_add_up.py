"""F103: do the IsoFLOP exponents of N and D add up to one."""

import math
from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.forecast.facts import Facts


@rule("F103", "The exponents a and b add up to one", threshold=0.02, unit="1",
      why="public ladders whose C is 6ND give 1.000; those whose accounting drifts miss by 0.02 to 0.04")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    N* = G C^a and D* = H C^b through the minima in log N and in log D: the distance of a + b from one.

    ## Why it matters
    With C = 6ND the two must add up to one. Where they do not, C was counted otherwise than N and D, by a factor that
    changes with scale, and a recommendation read off such exponents costs another compute than it says.

    ## How to confirm
    Tabulate C/(6ND) by budget: it drifts with C. Recount FLOPs from the shapes of the smallest and the largest model.

    ## What to do, cheapest first
    1. Leave the column C out: it is then 6ND.
    2. Count N as C does: with embeddings or without, in both.
    3. Give the shapes (d_model, layers, vocab, seq): C is then checked against the exact FLOPs.

    ## Sources
    Porian et al. 2024 (arXiv 2406.19146) for what the accounting of the last layer does to the exponents.
    """
    found = facts.isoflop
    if found is None or found.n is None or found.d is None:
        yield this.found(
            Verdict.UNKNOWN, "Fewer than two budgets show a minimum, so there are no exponents to add up.",
            "Train three or more sizes at each of two or more budgets.",
        )  # fmt: skip
        return
    a = facts.measured("isoflop.a", found.n.exponent, "1", "Exponent of N* in C", found.method)
    b = facts.measured("isoflop.b", found.d.exponent, "1", "Exponent of D* in C", found.method)
    total = derive("isoflop.sum", "a + b", "1", a=a, b=b).titled("Sum of the exponents")
    off = derive("isoflop.sum_error", "abs(total - 1)", "1", total=total).titled("Distance of a + b from one")
    interval = ""
    if math.isfinite(found.total_low) and found.total_high - found.total_low > 1e-6:
        interval = f" ({100 * found.level:.0f}%: {found.total_low:.3f} to {found.total_high:.3f})"
    sentence = f"a + b = {{isoflop.a|3}} + {{isoflop.b|3}} = {{isoflop.sum|3}}{interval}"
    holds = this.holds(off)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN, f"{sentence}." if holds else f"{sentence}: {found.why}.",
        "" if holds else "Count C as 6ND in all rows, or N as C does.", value=off, cites=(a, b, total),
    )  # fmt: skip
