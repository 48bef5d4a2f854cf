"""F110: is every row a run of its own."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts


@rule("F110", "Rows are independent runs", threshold=1, unit="1", why="one row per run is what resampling rows assumes")
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Rows per run. Checkpoints are told by the run's label; without one, by four or more rows of one N whose D grow in
    equal steps.

    ## Why it matters
    The checkpoints of a run share its seed, its data order and its faults. Resampling them as if each were a run makes
    every interval too narrow, by about the square root of their number.

    ## How to confirm
    Compare the interval of a bootstrap by run with that by row.

    ## What to do, cheapest first
    1. Resample by run (the group bootstrap), not by row.
    2. Keep the last checkpoint of each run.
    3. Add runs, not checkpoints: they carry the information.

    ## Sources
    Davison and Hinkley, Bootstrap Methods and their Application, section 3.8, on grouped data.
    """
    points, series = facts.points, facts.series
    if not series and "run" not in points.labels:
        yield this.found(
            Verdict.UNKNOWN, "No column names the run of a row; nothing looks like a series of checkpoints.",
            "Give a column run.",
        )  # fmt: skip
        return
    checkpoints = sum(len(rows) for rows in series)
    runs = len(points) - checkpoints + len(series)
    value = facts.measured("ladder.rows_per_run", len(points) / runs, "1", "Rows per run")
    if this.holds(value):
        yield this.found(Verdict.PASS, f"Each of the {len(points)} rows is a run of its own.", "", value=value)
        return
    guessed = "" if "run" in points.labels else ", by their equal steps of D"
    yield this.found(
        Verdict.WARN, f"{checkpoints} of {len(points)} rows are checkpoints of {len(series)} runs{guessed}: the ladder "
        f"holds {runs} independent runs, {{ladder.rows_per_run|2}} rows each.",
        "Resample by run, or keep the last checkpoint of each.", value=value,
    )  # fmt: skip
