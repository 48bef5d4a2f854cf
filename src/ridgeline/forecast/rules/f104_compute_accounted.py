"""F104: does the stated compute follow from N and D."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.accounting import against_6nd, against_exact
from ridgeline.forecast.facts import Facts


@rule("F104", "The compute is accounted for", threshold=5, unit="%",
      why="budgets are met to a few percent; a drift beyond that is another convention")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The ratio of C to 6ND over the ladder (to the exact FLOPs of the shapes where these are given): by how much its
    highest value exceeds its lowest.

    ## Why it matters
    A constant factor only moves a coefficient. A factor that changes with scale tilts the exponents: embeddings and
    the output layer weigh most in the smallest models, attention in the longest contexts.

    ## How to confirm
    Sort the rows by C and look at C/(6ND). Recount one small and one large model with `ridgeline model`.

    ## What to do, cheapest first
    1. Leave C out of the file: 6ND is then used throughout.
    2. Say which parameters N counts, and count the same ones in C.
    3. Give d_model, layers, vocab and seq: the exact FLOPs are then computed and compared.

    ## Sources
    Kaplan et al. 2020 (arXiv 2001.08361), section 2.1, for 6ND; Porian et al. 2024 (arXiv 2406.19146), section 3.1.
    """
    points = facts.points
    exact = against_exact(points)
    found = exact or against_6nd(points)
    if found is None or (exact is None and any(said.startswith("C = 6*N*D") for said in points.assumed)):
        yield this.found(
            Verdict.UNKNOWN, "C was not given, and 6ND stands for it: there is nothing to compare.",
            "Give the FLOPs that were counted, or d_model, layers, vocab and seq.",
        )  # fmt: skip
        return
    spread = facts.measured("ladder.accounting", 100 * found.spread, "%", f"Highest over lowest C/({found.against})")
    ratio = f"C is {found.low:.2f} to {found.high:.2f} times {found.against}"
    if this.holds(spread):
        yield this.found(Verdict.PASS, f"{ratio}, the same to {{ladder.accounting}}.", "", value=spread)
        return
    yield this.found(
        Verdict.WARN,
        f"{ratio}, moving as C^{found.slope:+.3f}: a spread of {{ladder.accounting}} tilts the exponents.",
        "Use 6ND for every row, or count N as C does.", value=spread,
    )  # fmt: skip
