"""What every estimator returns: an estimate, its ends, and whether it is evidence at all."""

from dataclasses import dataclass

from ridgeline.gate.statistics.quantiles import normal


@dataclass(frozen=True)
class Interval:
    """``low`` and ``high`` are one-sided bounds at ``1 - alpha`` each: together an interval at ``1 - 2*alpha``.

    ``n`` counts pairs (or units), ``clusters`` independent groups where they are fewer. ``method`` names the estimator.
    ``degenerate`` says why there is no evidence (no variance, one cluster, n below two); it is empty otherwise.
    """

    estimate: float
    low: float
    high: float
    n: int
    alpha: float
    method: str
    clusters: int | None = None
    degenerate: str = ""

    @property
    def error(self) -> float:
        """The standard error of a normal estimate with an interval of this width."""
        return (self.high - self.low) / (2 * normal(self.alpha))
