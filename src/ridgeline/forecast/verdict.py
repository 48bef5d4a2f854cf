"""The verdict of a forecast: `decide`, `indicative` or `refuse`, with the reasons as sentences.

Refused is what would mislead: a law whose floor the runs do not show or that they do not follow, one so uncertain
that the extrapolation may gain nothing, runs or a target that are not of one kind. A decision needs more than the
absence of these.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from ridgeline.core.format import significant
from ridgeline.forecast.average import Choice
from ridgeline.forecast.fitting.fit import Fit
from ridgeline.forecast.form import Array
from ridgeline.forecast.rollout import Growth

Word = Literal["decide", "indicative", "refuse"]

# Every threshold, with its reason.
FLOOR_SHARE = 0.1  # E below a tenth of the lowest loss: published floors are a third of it and more, so it is not seen
FLOOR_LOST = 0.5  # share of resamples without a floor from which the floor is chance
CLEAR = 0.5  # half width of the law over gain: below it what compute buys is four standard deviations
NOTHING = 0.1  # chance that the target is no better than the largest run
CLOSE = 4 / 3  # the same for a decision: 0.01 nats near 1.75 is worth a third
SCATTER = 1.5  # factor of compute that a run's typical distance from the law is worth; seeds alone come to 1.1
SPANS = 1.0  # a ladder shows no more decades ahead than it has behind it
FAR = 3.0  # of the span: further than any ladder known to us was followed (Llama 3: 2.1), whatever the interval says
BLIND = 0.5  # of the span, where no rollout could be made
LEAST_CUTS = 2  # rollouts behind a decision
OFFSET = (
    0.01  # of the loss: near 1.75 nats a hundredth of a nat is a third of the compute; a group off by more misleads
)
OFFSET_ERRORS = 3.5  # standard errors: with a dozen groups chance alone exceeds this in one ladder of two hundred
UNENDED = 0.95  # of its schedule: read before, a loss is too high by what the rest of the decay brings
UNENDED_RUNS = 0.1  # share of runs read early that tilts the exponent
DEAR = 10.0  # factor of compute: an interval that wide decides nothing
_CONSTANT = re.compile(r"\bconst(ant)?\b", re.IGNORECASE)  # a schedule that never decays
_ONE_HORIZON = re.compile(
    r"kaplan|(fixed|one).?(horizon|length)", re.IGNORECASE
)  # one length of decay for runs of every length
_LOW_RISK, _HIGH_RISK = 2.0, 6.0
_RISK_SCALE = 0.05  # relative width of an interval that doubles a risk


@dataclass(frozen=True)
class Case:
    """What is judged. Losses and ``gain`` in nats, ``worth`` a factor of compute; see `ridgeline.forecast.forecast`.

    ``doubt`` (nats) is the half width of the law itself at ``level``, a run's noise left out; ``worth`` is that of
    ``doubt`` at the target, ``scatter`` that of the typical residual at the ladder's top. ``degenerate`` is the share
    of resamples without a floor, ``labels`` are the target's own.
    """

    doubt: float
    level: float
    decades: float
    span: float
    gain: float
    worth: float
    scatter: float
    fit: Fit
    choice: Choice
    growth: Growth
    degenerate: float
    labels: Mapping[str, str]

    @property
    def nothing(self) -> float:
        """The chance that the target's optimum is no better than the largest run's, by Student's t."""
        freedom = self.growth.freedom
        errors = float(stdtrit(freedom, 0.5 + self.level / 2)) * self.gain / self.doubt
        return float(stdtr(freedom, -errors))


@dataclass(frozen=True)
class Verdict:
    """The word and its reasons, the deciding ones first."""

    word: Word
    because: tuple[str, ...]


@dataclass(frozen=True)
class Risk:
    """The extrapolation risk: ``score`` = decades * (1 + width/0.05), with its level and the sum in words."""

    score: float
    level: Literal["low", "moderate", "high"]
    explained: str


def risk(decades: float, width: float) -> Risk:
    """How risky an extrapolation of so many decades is, whose interval has that relative ``width``.

    A decade costs a point, and an interval of 5% doubles it: 3 decades at 0.8% come to 3.5 (moderate), 5 at 4% to 9
    (high). Moderate from 2 on, high from 6. A rule of thumb for a glance; the verdict rests on hold-outs.
    """
    score = max(decades, 0.0) * (1 + width / _RISK_SCALE)
    level: Literal["low", "moderate", "high"] = (
        "high" if score >= _HIGH_RISK else "moderate" if score >= _LOW_RISK else "low"
    )
    said = f"{decades:.2g} decades * (1 + {100 * width:.2g}% / {100 * _RISK_SCALE:g}%) = {score:.1f}: {level}"
    return Risk(score, level, said)


def judge(case: Case) -> Verdict:
    """The verdict of a forecast."""
    against = [
        *_kinds(case),
        *_schedule(case),
        *_floor(case),
        *_scatter(case),
        *_width(case),
        *_blind(case),
        *_far(case),
    ]
    if against:
        return Verdict("refuse", tuple(against))
    doubts = _doubts(case)
    if doubts:
        return Verdict("indicative", (*doubts, _record(case)))
    if case.decades <= 0 or not case.gain > 0:
        said = f"The target lies within the ladder, where the law is known to {case.doubt:.2g} nats to each side."
    else:
        share = case.doubt / case.gain
        said = f"The law's half width is {share:.2f} of the {case.gain:.3g} nats that the compute buys."
    return Verdict("decide", (said, _record(case)))


def cuts(count: int) -> str:
    """No cut, 1 cut, 2 cuts."""
    return f"{count or 'no'} cut{'s' if count > 1 else ''}"


def _record(case: Case) -> str:
    """The measured record, in one sentence."""
    if not case.growth.cuts:
        return f"The ladder is too small to be held out; {100 * case.growth.per_decade:.1f}% a decade is assumed."
    return (f"Held out at {cuts(case.growth.cuts)}, the error beyond noise grew by {100 * case.growth.measured:.1f}% "
            f"a decade; {100 * case.growth.per_decade:.1f}% is used. {case.choice.because}")  # fmt: skip


def _kinds(case: Case) -> list[str]:
    """Runs of several kinds under one law, or a target that is of none of them."""
    said = []
    labels = case.fit.points.labels
    for name, wanted in case.labels.items():
        known = sorted({str(text) for text in labels[name]}) if name in labels else []
        if known and wanted not in known:
            said.append(f"The target's {name} is {wanted}; the ladder's runs are of {', '.join(known)}.")
    for name in ("recipe", "schedule"):
        worst = _offset(case.fit.residuals, labels[name]) if name in labels else None
        if worst is not None and abs(worst[1]) >= OFFSET and worst[2] >= OFFSET_ERRORS:
            said.append(f"The runs of {name} {worst[0]} lie {100 * worst[1]:+.1f}% off the common law "
                        f"({worst[2]:.1f} standard errors): the ladder mixes kinds.")  # fmt: skip
    return said


def _offset(residuals: Array, labels: np.typing.NDArray[np.str_]) -> tuple[str, float, float] | None:
    """The group whose mean residual is furthest off in standard errors: its name, the mean, the standard errors."""
    names = np.unique(labels)
    parts = [residuals[labels == name] for name in names]
    freedom = len(residuals) - len(names)
    if len(names) < 2 or freedom < 2 or min(map(len, parts)) < 2:
        return None
    spread = np.sqrt(sum(float(np.sum((part - part.mean()) ** 2)) for part in parts) / freedom)
    errors = [abs(part.mean()) * np.sqrt(len(part)) / max(spread, np.finfo(float).tiny) for part in parts]
    worst = int(np.argmax(errors))
    return str(names[worst]), float(parts[worst].mean()), float(errors[worst])


def _schedule(case: Case) -> list[str]:
    """Losses that are not those of schedules that ended with the run."""
    points, said = case.fit.points, list[str]()
    if "horizon" in points:
        reached = points["D"] / points["horizon"]
        early = float(np.mean(reached < UNENDED))
        if early > UNENDED_RUNS:
            least = 100 * float(np.nanmin(reached))
            said.append(f"{100 * early:.0f}% of the losses were read before their schedule had ended (the earliest at "
                        f"{least:.0f}% of it): the exponent is that of the schedule.")  # fmt: skip
    names = sorted({str(name) for name in points.labels.get("schedule", np.empty(0, np.str_))})
    if names and "horizon" not in points and all(_ONE_HORIZON.search(name) for name in names):
        said.append(f"Every run has the schedule {', '.join(names)}, one length of decay for runs of every length: the "
                    "exponent is that of the schedule.")  # fmt: skip
    if names and all(_CONSTANT.search(name) for name in names) and case.labels.get("schedule") not in names:
        said.append(f"Every run has the schedule {', '.join(names)}: a flagship that decays ends lower, by how much "
                    "these runs do not say.")  # fmt: skip
    return said


def _floor(case: Case) -> list[str]:
    """A floor that the runs do not show."""
    floor, lowest = case.fit.constants.get("E"), float(np.exp(case.fit.log_y.min()))
    if floor is None:
        return []
    if floor < FLOOR_SHARE * lowest:
        return [(f"The irreducible loss is fitted at {floor:.2g} nats, {100 * floor / lowest:.0f}% of the lowest loss: "
                "the runs do not show a floor, and the law falls on without one.")]  # fmt: skip
    if case.degenerate > FLOOR_LOST:
        return [f"{100 * case.degenerate:.0f}% of the resampled ladders have no floor: the one fitted is chance."]
    return []


def _scatter(case: Case) -> list[str]:
    """Runs so far from the law that it is not theirs."""
    if not np.isfinite(case.scatter) or case.scatter < SCATTER:
        return []
    return [(f"A run lies typically as far off the law as a factor {significant(case.scatter, 2)} of compute moves it: "
            "the runs do not follow one law.")]  # fmt: skip


def _width(case: Case) -> list[str]:
    """A law so uncertain that the extrapolation may gain nothing."""
    if not (case.decades > 0 and np.isfinite(case.gain)) or case.nothing < NOTHING:
        return []
    return [(f"The law is uncertain by {case.doubt:.2g} nats to each side, and the compute up to the target is to gain "
            f"{case.gain:.2g}: with a chance of {100 * case.nothing:.0f}% it gains nothing.")]  # fmt: skip


def _blind(case: Case) -> list[str]:
    """Far out without a record."""
    if case.growth.cuts or case.decades <= BLIND * case.span:
        return []
    return [(f"{len(case.fit.points)} runs over {case.span:.1f} decades are too few to hold any out, and the target is "
            f"{case.decades:.1f} decades beyond them.")]  # fmt: skip


def _far(case: Case) -> list[str]:
    """So far out that the intervals have never been checked."""
    if case.decades <= FAR * case.span:
        return []
    reach = f"The target lies {case.decades:.1f} decades beyond a ladder of {case.span:.1f}"
    return [f"{reach}: nothing measured says how an error grows that far."]


def _doubts(case: Case) -> list[str]:
    said = []
    if np.isfinite(case.gain) and case.decades > 0 and case.doubt > CLEAR * case.gain:
        said.append(f"The law's half width, {case.doubt:.2g} nats, is {case.doubt / case.gain:.2f} of the "
                    f"{case.gain:.2g} that the compute is to gain.")  # fmt: skip
    if np.isfinite(case.worth) and case.worth > DEAR:
        said.append(f"That half width is worth a factor {significant(case.worth)} of compute.")
    if np.isfinite(case.scatter) and case.scatter > CLOSE:
        said.append(f"A run lies typically as far off the law as a factor {significant(case.scatter, 2)} of compute "
                    "moves it.")  # fmt: skip
    if case.decades > SPANS * case.span:
        said.append(f"The target lies {case.decades:.1f} decades beyond a ladder of {case.span:.1f}.")
    if case.growth.cuts < LEAST_CUTS:
        said.append(f"The ladder could be held out at {cuts(case.growth.cuts)} only.")
    return said
