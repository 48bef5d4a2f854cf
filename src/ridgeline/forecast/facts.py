"""What the rules of this room look at: the ladder, and what was made of it so far."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.forecast.points import Points

if TYPE_CHECKING:  # a rule reads what is there and computes none of it
    from ridgeline.forecast.fitting.bootstrap import Draws
    from ridgeline.forecast.fitting.fit import Fit
    from ridgeline.forecast.forecast import Forecast
    from ridgeline.forecast.isoflop import IsoFlop


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything that is known. All but the points may be None: then the rules that need it say `unknown`."""

    points: Points
    fit: "Fit | None" = None
    draws: "Draws | None" = None
    isoflop: "IsoFlop | None" = None
    forecast: "Forecast | None" = None

    def measured(self, name: str, value: float, unit: str, label: str, where: str = "the runs") -> Quantity:
        """A figure computed from the ladder, with the file as its source."""
        return leaf(name, float(value), unit, "measured", Source(self.points.path, where)).titled(label)

    @cached_property
    def series(self) -> tuple[NDArray[np.int64], ...]:
        """The runs of which the ladder holds several checkpoints: the rows of each, in the order of D.

        By the run's label where one is given. Without it: four or more rows of one N (and of the same other labels)
        whose D grow in equal steps, as checkpoints do and designs do not.
        """
        if not {"N", "D"} <= set(self.points.columns):
            return ()
        size, tokens = self.points["N"], self.points["D"]
        labelled = "run" in self.points.labels
        labels = self.points.label("run") if labelled else self.points.label("recipe", "seed", "schedule", "budget")
        keys: dict[tuple[str, float], list[int]] = {}
        for i in np.lexsort((tokens, size)):
            keys.setdefault((str(labels[i]), float(size[i])), []).append(int(i))
        found = [np.array(rows) for rows in keys.values() if len(np.unique(tokens[rows])) == len(rows) > 1]
        return tuple(rows for rows in found if labelled or _even(tokens[rows]))


def _even(tokens: NDArray[np.float64]) -> bool:
    steps = np.diff(tokens)
    return len(tokens) > 3 and float(np.ptp(steps)) <= 0.01 * float(steps.mean())
