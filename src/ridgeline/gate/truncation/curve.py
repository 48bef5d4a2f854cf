"""Each history length against the longest one: differences, where the curve flattens, and what they cannot say.

The longest length is tested first and shorter ones in turn, each at level alpha, until one fails: a fixed sequence,
which claims too short a length with probability alpha at most (Maurer, Hothorn and Lehmacher 1995). Losses are claimed
from the shortest up in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import constant
from ridgeline.gate.decision import Check, Outcome, sized
from ridgeline.gate.evidence.samples import Floats, Texts
from ridgeline.gate.judging.paired import rows_of
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.auc import auc_difference, auc_interval
from ridgeline.gate.statistics.clusters import clustered_mean
from ridgeline.gate.statistics.compare import compare
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import paired_mean
from ridgeline.gate.statistics.slices import LOWEST, lowest_volume
from ridgeline.gate.truncation.scores import Scores

Rows = NDArray[np.intp]
WORDS = {"auc": "AUC", "loss": "loss"}
CHANCE = 0.5
UNITS = {"auc": "%", "loss": "nat"}


def informed(scores: Scores) -> Rows:
    """Examples whose user had more events than the shortest length; all of them where no history is known."""
    if scores.history is None:
        return np.arange(len(scores), dtype=np.intp)
    return np.flatnonzero(scores.history > scores.lengths[0])


def buckets(scores: Scores, rows: Rows) -> dict[str, Rows]:
    """The rows of every history bucket between two lengths; none where no history is known."""
    if scores.history is None:
        return {}
    ends = scores.lengths
    place = np.searchsorted(ends, scores.history[rows], side="left")
    names = [*(f"users of {low + 1} to {high} events" for low, high in pairwise(ends)),
             f"users above {ends[-1]} events"]  # fmt: skip
    return {name: rows[place == at] for at, name in enumerate(names, 1) if (place == at).any()}


def value_at(scores: Scores, length: int, rows: Rows, alpha: float) -> Interval:
    """The metric itself at one length, by user where there are users."""
    groups, values = _groups(scores, rows), scores.at[length][rows]
    if scores.metric == "auc":
        labels = _labels(scores, rows)
        return _no_evidence(rows, alpha, _ONE_CLASS) if _one_class(labels) else auc_interval(
            values, labels, groups, alpha=alpha
        )  # fmt: skip
    return paired_mean(values, alpha) if groups is None else clustered_mean(values, groups, alpha)


def difference(scores: Scores, candidate: Floats, base: Floats, rows: Rows, alpha: float) -> Interval:
    """Candidate minus baseline on some rows, turned so that higher is better. Both are in the order of ``rows``."""
    if scores.metric == "loss":
        return compare(-base, -candidate, alpha, _groups(scores, rows))
    labels = _labels(scores, rows)
    if _one_class(labels):
        return _no_evidence(rows, alpha, _ONE_CLASS)
    return auc_difference(base, candidate, labels, _groups(scores, rows), alpha=alpha)


_ONE_CLASS = "all labels are equal: no AUC"


def _one_class(labels: Floats) -> bool:
    return len(labels) == 0 or bool((labels == labels[0]).all())


def _labels(scores: Scores, rows: Rows) -> Floats:
    assert scores.labels is not None
    return scores.labels[rows]


def _groups(scores: Scores, rows: Rows) -> Texts | None:
    """Users, where some have several examples."""
    if scores.users is None:
        return None
    users = scores.users[rows]
    return users if len(set(users.tolist())) < len(users) else None


def _no_evidence(rows: Rows, alpha: float, why: str) -> Interval:
    return Interval(0.0, -np.inf, np.inf, len(rows), alpha, "no interval", degenerate=why)


def not_applied(scores: Scores, length: int, rows: Rows) -> str:
    """Why scores at this length say nothing: they are those of the longest, to the last bit. Empty where they differ.

    A user whose whole history fits has the same scores by right, so that only longer ones are looked at.
    """
    longest = scores.lengths[-1]
    longer = rows if scores.history is None else rows[scores.history[rows] > length]
    if not len(longer):
        return f"no history is longer than {length} events: leave that length out"
    if not np.array_equal(scores.at[length][longer], scores.at[longest][longer]):
        return ""
    more = " or no history is longer" if scores.history is None else ""
    return f"scores at {length} and {longest} events are bit-identical: the length was not applied{more}"


def hollow(scores: Scores, rows: Rows, alpha: float) -> str:
    """Why no length can be judged: the longest orders examples no better than chance, or as if it held the label."""
    if scores.metric != "auc" or _one_class(_labels(scores, rows)):
        return ""
    whole = value_at(scores, scores.lengths[-1], rows, alpha)
    if whole.low <= CHANCE:
        return f"AUC at {scores.lengths[-1]} events is not above chance, so that a loss cannot show"
    if whole.estimate > float(constant("gate.truncation.separates").base):
        return (
            f"AUC at {scores.lengths[-1]} events is {whole.estimate:.4f}: the scores hold the label, or what follows it"
        )
    return ""


def step(scores: Scores, length: int, rows: Rows, plan: Plan) -> list[Check]:
    """The checks of one length against the longest: overall, then each slice that it cuts."""
    why = not_applied(scores, length, rows) or hollow(scores, rows, plan.alpha)
    if why:
        return [_check("overall", scores, length, _no_evidence(rows, plan.alpha, why), plan)]
    parts = _slices(scores, length, rows)
    every = {"overall": rows, **parts}
    found = {
        name: _check(name, scores, length, _interval(scores, length, at, plan), plan) for name, at in every.items()
    }
    if parts:
        chosen = sorted(lowest_volume({name: len(at) for name, at in parts.items()}))
        at = np.sort(np.concatenate([parts[name] for name in chosen]))
        lowest = _check(LOWEST, scores, length, _interval(scores, length, at, plan), plan)
        found[LOWEST] = replace(lowest, note=", ".join(chosen[:4]))
    return list(found.values())


def _slices(scores: Scores, length: int, rows: Rows) -> Mapping[str, Rows]:
    """History buckets and registered slices, but for those whose whole history fits and whose scores are the same."""
    parts = buckets(scores, rows)
    if scores.slices is not None:
        parts |= {name: rows[at] for name, at in rows_of(scores.slices[rows]).items()}
    longest = scores.at[scores.lengths[-1]]
    return {name: at for name, at in parts.items() if not np.array_equal(scores.at[length][at], longest[at])}


def _interval(scores: Scores, length: int, rows: Rows, plan: Plan) -> Interval:
    return difference(scores, scores.at[length][rows], scores.at[scores.lengths[-1]][rows], rows, plan.alpha)


def _check(name: str, scores: Scores, length: int, interval: Interval, plan: Plan) -> Check:
    margin = plan.margin if name == "overall" else plan.margin_of(name)
    metric = f"{WORDS[scores.metric]} at {length} events"
    return powered(Check(name, metric, interval, margin, UNITS[scores.metric], counts="examples"), plan)


def powered(found: Check, plan: Plan) -> Check:
    """A check with the smallest margin that its examples can clear and, where it is open, the more that would decide.

    The variance of one example is that of the interval, so that it holds the users' correlation.
    """
    interval = found.interval
    if interval.degenerate or not np.isfinite(interval.high - interval.low):
        return found
    return sized(found, interval.error**2 * interval.n, plan.power)


def flattens(steps: Mapping[int, Sequence[Check]]) -> int | None:
    """The shortest length whose checks all ship, as do those of every longer one; None where the first step fails."""
    found = None
    for length in sorted(steps, reverse=True):
        if any(check.outcome is not Outcome.SHIP for check in steps[length]):
            break
        found = length
    return found


def not_before(steps: Mapping[int, Sequence[Check]], longest: int) -> int:
    """The shortest length that is not excluded: every shorter one loses more than the margin for certain, overall."""
    for length in sorted(steps):
        if steps[length][0].outcome is not Outcome.NO_SHIP:
            return length
    return longest
