"""What a form leaves out: an error that neighbouring runs share, beside the noise that each has of its own.

Covariance of the residuals of ln L: noise^2 on the diagonal, and size^2 (1 + r) exp(-r) with
r = sqrt(3) distance/decades (Matern 3/2), the distance between two runs taken over the decimal logarithms of their
columns. A crowd of cheap runs then counts for little more than one of them, and a run near the target says more about
it than the form alone (universal kriging; Kennedy and O'Hagan 2001). Noise, size and decades maximise the likelihood
of the residuals on a grid.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.forecast.form import Array, Columns

_RATIOS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)  # size over noise
_DECADES = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Prior:
    """A standard deviation of ln L assumed for noise, and how many runs that is worth."""

    noise: float
    runs: float


@dataclass(frozen=True)
class Discrepancy:
    """``noise`` and ``size``: standard deviations of ln L; ``decades``: how far the shared part reaches."""

    noise: float
    size: float
    decades: float

    def shared(self, first: Columns, second: Columns) -> Array:
        """The covariance of the shared error between two tables of runs, (n, m)."""
        return self.size**2 * matern(distances(first, second), self.decades)

    def seen(self, columns: Columns, weights: Array) -> Array:
        """The covariance of runs' residuals, (n, n); an outlier of small weight is a run of large noise."""
        return self.shared(columns, columns) + np.diag(self.noise**2 / weights)


def distances(first: Columns, second: Columns) -> Array:
    """Distances in decades between the rows of two tables, (n, m)."""
    squares = [(np.log10(first[name])[:, None] - np.log10(second[name])[None, :]) ** 2 for name in first]
    found: Array = np.sqrt(np.sum(squares, axis=0))
    return found


def matern(distance: Array, decades: float) -> Array:
    """The correlation at a distance."""
    scaled = np.sqrt(3.0) * distance / decades
    found: Array = (1 + scaled) * np.exp(-scaled)
    return found


def estimate(residual: Array, columns: Columns, weights: Array, prior: Prior, fitted: int) -> tuple[Discrepancy, float]:
    """The likeliest discrepancy of residuals (n,) after ``fitted`` constants, and its log likelihood."""
    apart, count = distances(columns, columns), len(residual)
    roots = np.sqrt(weights)
    freedom = prior.runs + max(count - fitted, 0)
    best: tuple[float, Discrepancy] | None = None
    for decades in _DECADES:
        squares, logdets = _whitened(np.outer(roots, roots) * matern(apart, decades), roots * residual)
        squares += prior.runs * prior.noise**2
        likelihood = -0.5 * (count + prior.runs) * np.log(squares / (prior.runs + count)) - 0.5 * logdets
        most = int(np.argmax(likelihood))
        if best is None or likelihood[most] > best[0]:
            noise = float(np.sqrt(squares[most] / freedom))
            best = float(likelihood[most]), Discrepancy(noise, _RATIOS[most] * noise, decades)
    assert best is not None
    return best[1], best[0]


def _whitened(shared: Array, residual: Array) -> tuple[Array, Array]:
    """r' S^-1 r and ln det S for S = 1 + ratio^2 ``shared``, at every ratio.

    One factorisation gives both: with the residual as a border, the last row of the factor is r' L'^-1.
    """
    count = len(residual)
    bordered = np.zeros((len(_RATIOS), count + 1, count + 1))
    bordered[:, :count, :count] = np.array(_RATIOS)[:, None, None] ** 2 * shared + np.eye(count)
    bordered[:, count, :count] = residual
    bordered[:, count, count] = 1.0 + residual @ residual  # more than r' S^-1 r, since S >= 1
    factor = np.linalg.cholesky(bordered)
    diagonal = np.diagonal(factor, axis1=1, axis2=2)[:, :count]
    squares: Array = np.sum(factor[:, count, :count] ** 2, axis=1)
    logdets: Array = 2 * np.sum(np.log(diagonal), axis=1)
    return squares, logdets


def coupling(found: Discrepancy, columns: Columns) -> Array:
    """Columns (n, G) such that 1 - CC' is noise^2 times the inverse of the covariance, the largest G of them."""
    ratio = (found.size / found.noise) ** 2
    values, vectors = np.linalg.eigh(matern(distances(columns, columns), found.decades))
    grown = ratio * np.maximum(values, 0.0)
    keep = grown > 1e-3
    made: Array = vectors[:, keep] * np.sqrt(grown[keep] / (1 + grown[keep]))
    return made
