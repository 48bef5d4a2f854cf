"""Hold-out decades: train on the runs below Cmax/10^d, forecast the rest, count what the interval covers.

The same on anybody's ladder (`calibrate`) and on public ones (`benchmarks/holdout.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError, NotEnoughDataError, RidgelineError
from ridgeline.forecast.fitting.fit import observed
from ridgeline.forecast.forecast import Options, Study, study
from ridgeline.forecast.form import Array
from ridgeline.forecast.points import Points
from ridgeline.forecast.rollout import compute
from ridgeline.forecast.verdict import Verdict

DECADES = (1.0, 1.5, 2.0)
LEAST_TRAINED = 7  # runs: one more than the constants of the coupled form
_TOP = 0.25  # decades: the best run is looked for among the largest
_LABELS = ("recipe", "schedule")


@dataclass(frozen=True)
class Row:
    """One hold-out: ``decades`` below the largest run, ``trained`` runs kept and those ``tested`` (m,) by index.

    ``errors`` (m,) is ln(predicted) - ln(observed), ``plain`` (m,) that of the first candidate form (Chinchilla),
    ``covered`` (m,) whether the interval holds the observed loss, ``widths`` (m,) its width over the forecast.
    ``best`` is the error at the lowest loss of the top quarter decade, ``verdict`` that of a forecast as far out.
    """

    decades: float
    trained: int
    tested: NDArray[np.int64]
    errors: Array
    plain: Array
    covered: NDArray[np.bool_]
    widths: Array
    best: float
    form: str
    verdict: Verdict

    @property
    def median(self) -> float:
        """The median absolute error."""
        return float(np.median(np.abs(self.errors)))

    @property
    def plain_median(self) -> float:
        """That of the first candidate form."""
        return float(np.median(np.abs(self.plain)))

    @property
    def coverage(self) -> float:
        """The share of observed losses inside their interval."""
        return float(self.covered.mean())

    @property
    def width(self) -> float:
        """The mean width of the interval over the forecast."""
        return float(self.widths.mean())


@dataclass(frozen=True)
class Backtest:
    """The hold-outs of one ladder, and why others were not possible."""

    rows: tuple[Row, ...]
    skipped: tuple[str, ...]

    @property
    def coverage(self) -> float:
        """Pooled over the runs of every row; nan without any."""
        return float(np.concatenate([row.covered for row in self.rows]).mean()) if self.rows else float("nan")


def calibrate(points: Points, options: Options | None = None, decades: Sequence[float] = DECADES) -> Backtest:
    """The hold-outs of a ladder: the coverage that its forecasts would have had.

    A distance that leaves too few runs below or none above is named in ``skipped``.
    """
    rows, skipped = list[Row](), list[str]()
    for distance in decades:
        try:
            rows.append(hold_out(points, distance, options))
        except (NotEnoughDataError, InputError) as error:
            skipped.append(f"{distance:g} decades: {error}")
    return Backtest(tuple(rows), tuple(skipped))


def hold_out(points: Points, decades: float, options: Options | None = None) -> Row:
    """One hold-out. Raises `NotEnoughDataError` where too few runs are left below, and what `study` raises."""
    options = options or Options()
    place = compute(points)
    kept = place <= place.max() - decades + 1e-9
    if kept.sum() < LEAST_TRAINED or kept.all():
        raise NotEnoughDataError(
            f"Expected {LEAST_TRAINED} runs {decades:g} decades below the largest, got {int(kept.sum())}",
            hint="hold out fewer decades",
        )
    found = study(points.take(kept), options)
    tested = np.flatnonzero(~kept)
    rest = points.take(tested)
    columns = {name: rest[name] for name in dict.fromkeys(n for form in found.forms for n in form.inputs)}
    seen, centre = observed(rest, found.fit.form), np.log(found.predict(columns))
    low, high = found.interval(columns, place[tested] - found.top)
    lossy = np.exp(seen)
    top = np.flatnonzero(place[tested] >= place.max() - _TOP)
    best = top[np.argmin(seen[top])]
    return Row(
        decades=decades,
        trained=int(kept.sum()),
        tested=tested,
        errors=centre - seen,
        plain=found.forms[0].log_loss(found.thetas[0], columns) - seen,
        covered=(low <= lossy) & (lossy <= high),
        widths=(high - low) / np.exp(centre),
        best=float((centre - seen)[best]),
        form=found.fit.form.slug,
        verdict=_verdict(found, rest.take(np.array([best])), float(place.max())),
    )


def _verdict(found: Study, best: Points, top: float) -> Verdict:
    """Of a forecast of the largest runs, at the size of the best of them and with its labels."""
    labels = {name: str(best.labels[name][0]) for name in _LABELS if name in best.labels}
    told = replace(found, options=replace(found.options, labels={**labels, **found.options.labels}))
    try:
        return told.at(10**top, n=float(best["N"][0]), d=float(best["D"][0])).verdict
    except RidgelineError as error:
        return Verdict("refuse", (str(error),))
