"""Causes of lost time, each second given to one of them, and the order in which to fix them.

Pure functions on small dataclasses: they need no trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.trace import intervals
from ridgeline.trace.context import Lever
from ridgeline.trace.intervals import EMPTY, Spans

LEVERS: tuple[Lever, ...] = ("flag", "compiler", "model", "kernel", "hardware")  # cheapest first
WIDEST = 3  # the breadth of a cause that is a whole bucket: what is left when others have been counted


@dataclass(frozen=True)
class Cause:
    """What loses time, and how much of which bucket its fix would give back.

    ``seconds`` per step by bucket. ``spans``, where known, says when (ns on one clock, any number of steps): causes
    that overlap in time are told apart by it. ``breadth``: 0 for one thing; a broader cause gets what narrower ones
    leave. ``risks`` are names of causes whose size this fix may change. ``confirm_s``: how long it takes to confirm
    the cause; ``effort_dollars``: what its fix costs, None where nobody said.
    """

    name: str
    seconds: Mapping[str, float]
    code: str = ""
    lever: Lever = "flag"
    confirm_s: float = 3600.0
    fix: str = ""
    risks: tuple[str, ...] = ()
    spans: Mapping[str, Spans] = field(default_factory=dict)
    breadth: int = 0
    effort_dollars: float | None = None

    @property
    def total_s(self) -> float:
        """Seconds per step over all buckets, as found."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Attributed:
    """A cause with the seconds that are its own; ``shared_s`` of what was found belongs to other causes."""

    cause: Cause
    seconds: Mapping[str, float]
    shared_s: float

    @property
    def own_s(self) -> float:
        """Seconds per step that only this cause accounts for."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Attribution:
    """Every cause in the order given, and the seconds of each bucket that no cause explains."""

    causes: tuple[Attributed, ...]
    left: Mapping[str, float]


def attribute(causes: Sequence[Cause], buckets: Mapping[str, float]) -> Attribution:
    """Give each second of the buckets to at most one cause.

    Narrow causes come before broad ones and large before small. A later cause keeps the part of its spans that
    earlier ones do not cover, and never more than its bucket has left. Raises `InputError` for a bucket that is not
    among ``buckets``, a negative time, or two causes of one name.
    """
    _check(causes, buckets)
    left = dict(buckets)
    taken: dict[str, Spans] = {}
    found: dict[str, Attributed] = {}
    for cause in sorted(causes, key=lambda c: (c.breadth, -c.total_s, c.name)):
        own = {}
        for bucket, amount in cause.seconds.items():
            amount *= _fresh(cause.spans.get(bucket), taken, bucket)
            own[bucket] = min(amount, left[bucket])
            left[bucket] = left[bucket] - own[bucket] if own[bucket] < left[bucket] else 0.0
        found[cause.name] = Attributed(cause, own, cause.total_s - sum(own.values()))
    return Attribution(tuple(found[cause.name] for cause in causes), left)


def _fresh(spans: Spans | None, taken: dict[str, Spans], bucket: str) -> float:
    """The share of the spans that no earlier cause covers; they count as covered from now on."""
    if spans is None or not spans.total:
        return 1.0
    before = taken.get(bucket, EMPTY)
    taken[bucket] = intervals.either(before, spans)
    return intervals.subtract(spans, before).total / spans.total


def _check(causes: Sequence[Cause], buckets: Mapping[str, float]) -> None:
    names = [cause.name for cause in causes]
    for name in names:
        if names.count(name) > 1:
            raise InputError.expected("causes with different names", name, where="$.cause")
    for cause in causes:
        for bucket, amount in cause.seconds.items():
            if bucket not in buckets:
                hint = did_you_mean(bucket, buckets, "buckets: " + ", ".join(buckets))
                raise InputError.expected("a bucket of the step", bucket, where=f"$.cause {cause.name!r}", hint=hint)
            if not amount >= 0:
                raise InputError.expected("seconds of zero or more", amount, where=f"$.cause {cause.name!r}")


def fix_order(causes: Sequence[Attributed]) -> tuple[Attributed, ...]:
    """Cheapest confirmation first; what another fix may still change would have to be confirmed twice.

    Each place in the order goes to the cause with the lowest price: its time to confirm, and that time again for
    every fix not done yet that names it among its risks. Equal prices: the larger gain first. What is left of a whole
    bucket comes last.
    """
    rest = list(causes)
    ordered: list[Attributed] = []
    while rest:
        best = min(rest, key=lambda item: _price(item, rest))
        rest.remove(best)
        ordered.append(best)
    return tuple(ordered)


def _price(item: Attributed, rest: Sequence[Attributed]) -> tuple[bool, float, float, str]:
    again = sum(item.cause.name in other.cause.risks for other in rest)
    return (item.cause.breadth >= WIDEST, item.cause.confirm_s * (1 + again), -item.own_s, item.cause.name)
