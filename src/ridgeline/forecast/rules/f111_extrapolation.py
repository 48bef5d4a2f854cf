"""F111: how far beyond its runs is the forecast."""

from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts


@rule("F111", "The ladder reaches near the target", threshold=1, unit="1",
      why="on public ladders, nominal 95% intervals covered about a quarter of losses a decade out")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Decades of compute between the largest run of the ladder and the target. Where the target has many more or fewer
    tokens a parameter than any run, the decades between its ratio and theirs count if they are more.

    ## Why it matters
    A law is a summary of its runs. Beyond them the error of the form, not of the fit, decides, and no resampling of
    the ladder sees it. Two decades out, the sign of a small difference between recipes is not known.

    ## How to confirm
    Leave out the top decade of the ladder, forecast it, and look at the error: `--calibrate`.

    ## What to do, cheapest first
    1. Read the calibrated interval, not that of the bootstrap.
    2. Ask for the next run: `ridgeline forecast next`.
    3. Stage the flagship: stop at a tenth of its tokens and compare with the forecast.

    ## Sources
    The hold-out benchmark of this repository: every public ladder refitted without its largest runs.
    """
    if facts.forecast is None:
        yield this.found(Verdict.UNKNOWN, "No target was given, so the reach is not known.", "Give --target, FLOP.")
        return
    beyond = max(0.0, float(facts.forecast.decades))
    beside = _beside(facts)
    away = facts.measured("reach.ratio", beside, "1", "Decades of tokens a parameter beyond those of the runs")
    if beside > beyond and not this.holds(away):
        yield this.found(
            Verdict.WARN,
            "The tokens a parameter of the target lie {reach.ratio|2} decades outside those of the runs.",
            "Add runs that are as long for their size as the target, or as short.", value=away,
        )  # fmt: skip
        return
    value = facts.measured("reach.decades", beyond, "1", "Decades beyond the largest run")
    if this.holds(value):
        near = "{reach.decades|2} decades beyond" if beyond > 0 else "not beyond"
        yield this.found(Verdict.PASS, f"The target is {near} the largest run.", "", value=value)
        return
    yield this.found(
        Verdict.WARN,
        "The target is {reach.decades|2} decades beyond the largest run.",
        "Add a rung half a decade below the target: `ridgeline forecast next` says which.", value=value,
    )  # fmt: skip


def _beside(facts: Facts) -> float:
    """Decades between D/N of the target and the nearest of the runs; 0 among them."""
    assert facts.forecast is not None
    if not ("N" in facts.points and "D" in facts.points):
        return 0.0
    ratio = np.log10(facts.points["D"] / facts.points["N"])
    at = float(np.log10(facts.forecast.d / facts.forecast.n))
    return max(0.0, float(ratio.min()) - at, at - float(ratio.max()))
