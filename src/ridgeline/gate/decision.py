"""A decision: checks of one interval against one margin each, and the outcome of them all.

Differences are candidate minus baseline, turned so that higher is better. A check ships where the lower bound is above
minus the margin, and does not where the upper bound is below it; what is degenerate, or in between, is inconclusive,
and so is a loss that was seen in a few groups alone.
All required checks must ship: an intersection-union test, whose size is that of its largest part (Berger 1982).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from ridgeline.gate.statistics.clusters import FEW
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.sizes import detectable, needed

NO_LOSS, AS_SEEN = "if there is no difference", "if the difference stays as it is"


class Outcome(StrEnum):
    """``INCONCLUSIVE`` is an answer: it comes with the n that would decide."""

    SHIP = "SHIP"
    NO_SHIP = "NO-SHIP"
    INCONCLUSIVE = "INCONCLUSIVE"


EXIT = {Outcome.SHIP: 0, Outcome.NO_SHIP: 1, Outcome.INCONCLUSIVE: 4}


@dataclass(frozen=True)
class Check:
    """One question of a gate: ``name`` is ``overall`` or a slice, ``margin`` the loss tolerated (above zero).

    ``unit`` is ``"%"`` for a difference of proportions (shown in points), ``"ratio"`` for a relative change (shown in
    percent), or a unit's own name; values are plain (0.012 for both). ``needed`` is how many more pairs would decide at
    the registered power under what ``basis`` says (None: no number of them, or decided), ``detectable`` the smallest
    margin that these pairs could have cleared at that power. ``required`` is False for what is only described.
    ``note`` says what a reader must know. ``level`` marks an interval not of a difference but of a level itself, such
    as a precision, which must stay above ``margin``. ``counts`` is what ``n`` counts. ``tag`` tells names apart that
    differ in signs alone.
    """

    name: str
    metric: str
    interval: Interval
    margin: float
    unit: str = "1"
    needed: int | None = None
    required: bool = True
    note: str = ""
    detectable: float | None = None
    basis: str = NO_LOSS
    level: bool = False
    counts: str = "pairs"
    tag: str = ""

    @property
    def floor(self) -> float:
        """What the lower bound must be above."""
        return self.margin if self.level else -self.margin

    @property
    def outcome(self) -> Outcome:
        """The outcome of this check alone."""
        if self.interval.degenerate:
            return Outcome.INCONCLUSIVE
        if self.interval.low > self.floor:
            return Outcome.SHIP
        few = self.interval.clusters is not None and self.interval.clusters < FEW
        return Outcome.NO_SHIP if self.interval.high < self.floor and not few else Outcome.INCONCLUSIVE

    @property
    def slack(self) -> float:
        """How far the lower bound is above its floor, in margins; below zero where the loss is not excluded."""
        if self.interval.degenerate:
            return -inf
        return (self.interval.low - self.floor) / (self.margin or 1.0)


def sized(found: Check, variance: float, power: float, least: int = 0) -> Check:
    """The check with the smallest margin that its ``n`` can clear and, where it is open, the more that would decide.

    More are counted for a candidate that loses nothing, and up to ``least`` in any case; where those are there already,
    for the difference seen. ``variance`` is that of one of the ``n``.
    """
    interval, alpha = found.interval, found.interval.alpha
    found = replace(found, detectable=detectable(variance, interval.n, alpha=alpha, power=power))
    if found.outcome is not Outcome.INCONCLUSIVE:
        return found
    more = max(least, needed(variance, found.margin, alpha=alpha, power=power)) - interval.n
    if more > 0:
        return replace(found, needed=more, basis=NO_LOSS)
    distance = abs(interval.estimate - found.floor)
    if interval.degenerate or not distance:
        return found
    more = needed(variance, distance, alpha=alpha, power=power) - interval.n
    return replace(found, needed=max(1, more), basis=AS_SEEN)


def combine(checks: Sequence[Check]) -> Outcome:
    """The outcome of all required checks; none at all is no evidence."""
    found = {check.outcome for check in checks if check.required}
    if Outcome.NO_SHIP in found:
        return Outcome.NO_SHIP
    return Outcome.INCONCLUSIVE if Outcome.INCONCLUSIVE in found or not found else Outcome.SHIP


def blocked(name: str, why: str, margin: float = 1.0) -> Check:
    """A required check that no data can pass: something other than the data must be put right first."""
    nothing = Interval(0.0, -inf, inf, 0, 0.05, "no interval", degenerate=why)
    return Check(name, "record", nothing, margin)
