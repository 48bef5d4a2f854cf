"""T005: how much of the expectation the model's shape never allowed."""

from collections.abc import Iterable

from ridgeline.arithmetic.geometry import GeometryAudit, Padded
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace.facts import TraceFacts


@rule("T005", "Dimensions fit the tile", threshold=1, unit="%",
      why="points of peak: below one point the shape is not worth changing in a running project")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Head dimension, MLP and expert widths and vocabulary, as one chip holds them, against the matmul tile. What a tile
    pads is multiplied and thrown away: share of the FLOPs times (1 - size/padded size), in points of peak.

    ## Why it matters
    These points cannot be found in a profile and won back: the expectation was wrong. Correct it before hunting.

    ## How to confirm
    Time one attention layer with the padded head dimension and with the next multiple of the tile: the same time means
    that the padding is executed.

    ## What to do, cheapest first
    1. Lower the expectation by these points.
    2. Pad the vocabulary to a multiple of the tile times the chips that share it.
    3. In the next model, take a head dimension and widths that are multiples of the tile.

    ## Sources
    NVIDIA, Matrix Multiplication Background; How to Scale Your Model, chapters on TPUs and GPUs.
    """
    found = facts.audit.geometry if facts.audit else None
    if found is None:
        yield this.found(
            Verdict.UNKNOWN, "The model's dimensions or the device's tile are not known.",
            "Give model.path, machine and batch in run.toml.",
        )  # fmt: skip
        return
    holds = this.holds(found.tax)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        _sentence(found),
        "" if holds else "Correct the expectation first; pad the vocabulary; choose aligned dimensions next time.",
        value=found.tax, cost=_cost(facts, found) if not holds else Cost(), cites=_cites(found),
    )  # fmt: skip


def _sentence(found: GeometryAudit) -> str:
    if not found.padded:
        return "Every dimension checked is a multiple of its tile."
    parts = ", ".join(_said(item) for item in found.padded)
    if found.corrected is None or found.proportional is None:
        return f"Padding takes {{{found.tax.name}|2}} of peak: {parts}."
    ends = f"{{{found.corrected.name}|2}}, at most {{{found.proportional.name}|2}}"
    return f"Padding takes {{{found.tax.name}|2}} of peak: {parts}. The expectation is {ends}."


def _said(item: Padded) -> str:
    digits = "" if float(item.size.value).is_integer() else "|4"
    size, share = f"{{{item.size.name}{digits}}}", f"{{{item.share.name}|2}}"
    return f"{item.what} {size} in tiles of {{{item.tile.name}}} takes {{{item.points.name}|2}} on {share} of the FLOPs"


def _cites(found: GeometryAudit) -> tuple[Quantity, ...]:
    rows = [q for item in found.padded for q in (item.size, item.tile, item.share, item.points)]
    return (*rows, *(q for q in (found.corrected, found.proportional) if q is not None))


def _cost(facts: TraceFacts, found: GeometryAudit) -> Cost:
    """The longer step at the corrected expectation."""
    ideal, expected = facts.context.ideal, facts.context.expected
    if ideal is None or expected is None or found.corrected is None:
        return Cost()
    inputs = {"ideal": ideal, "corrected": found.corrected, "expected": expected}
    seconds = derive("geometry.seconds", "ideal/corrected - ideal/expected", "s", **inputs)
    return facts.cost(seconds.titled("Step time that padding takes"))
