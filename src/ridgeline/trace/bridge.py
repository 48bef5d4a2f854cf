"""The bridge: expectation -> corrected expectation -> observed, one bar per cause, reconciled or said not to be.

Seconds add; MFU = ideal/step does not. Each bar therefore carries its points three ways: ``points`` in the order of
the fixes (they sum to the whole gain in that order), ``even``, which does not depend on the order (from
ideal/b - ideal/a = ideal*(a - b)/(a*b), each second of the whole gain is worth the same), and the range from
``first`` (this fix alone, on the step as it is) to ``last`` (on the step with all others fixed).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.attribution import Attributed, Cause, attribute, fix_order


@dataclass(frozen=True)
class Points:
    """MFU around one fix (percent) and its points; see the module."""

    before: Quantity
    after: Quantity
    points: Quantity
    even: Quantity
    first: Quantity
    last: Quantity


@dataclass(frozen=True)
class Bar:
    """One cause: ``seconds`` per step, the step before and after its fix, its points where the ideal is known."""

    item: Attributed
    seconds: Quantity
    before: Quantity
    after: Quantity
    mfu: Points | None

    @property
    def cause(self) -> Cause:
        """What is fixed."""
        return self.item.cause


@dataclass(frozen=True)
class Ends:
    """What a bridge stands on: observed step, ideal step, expectation, corrected expectation (percent)."""

    step: Quantity
    ideal: Quantity | None = None
    expected: Quantity | None = None
    corrected: Quantity | None = None

    @property
    def target(self) -> Quantity | None:
        """The corrected expectation, or the plain one."""
        return self.corrected or self.expected


@dataclass(frozen=True)
class Bridge:
    """``unexplained`` (s) lies between the step with every cause fixed and the target; negative: causes explain more
    than there is. ``unexplained_share`` is its percent of the observed step; both None without a target. ``left``:
    seconds of each bucket that no cause explains, useful work included."""

    ends: Ends
    bars: tuple[Bar, ...]
    final: Quantity
    target_step: Quantity | None
    unexplained: Quantity | None
    unexplained_share: Quantity | None
    left: Mapping[str, float]

    @property
    def observed(self) -> Quantity | None:
        """MFU at the observed step, percent."""
        return _mfu("bridge.mfu.observed", self.ends.ideal, self.ends.step)

    @property
    def reached(self) -> Quantity | None:
        """MFU with every cause fixed, percent."""
        return _mfu("bridge.mfu.fixed", self.ends.ideal, self.final)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        ends = self.ends
        mine = (ends.step, ends.ideal, ends.expected, ends.corrected, self.final, self.target_step, self.unexplained)
        more = (self.unexplained_share, self.observed, self.reached)
        bars = [q for bar in self.bars for q in (bar.seconds, bar.after, *(vars(bar.mfu).values() if bar.mfu else ()))]
        return tuple(q for q in (*mine, *more, *bars) if q is not None)


def bridge(ends: Ends, buckets: Mapping[str, float], causes: Sequence[Cause]) -> Bridge:
    """The bridge of one run: ``bridge.*`` quantities.

    ``buckets`` are seconds per step and bound what causes may claim. Raises `InputError` where causes claim the
    whole step, or for a cause that does not fit the buckets.
    """
    given = attribute(causes, buckets)
    ordered = [item for item in fix_order(given.causes) if item.own_s > 0]
    final_s = float(ends.step.base) - sum(item.own_s for item in ordered)
    if final_s <= 0:
        lost = f"{float(ends.step.base) - final_s:g} s"
        raise InputError.expected(f"causes that leave some of the {ends.step.base:g} s step", lost, where="the causes")
    bars = _bars(ends, ordered)
    final = bars[-1].after if bars else ends.step
    target_step, unexplained, share = _rest(ends, final)
    return Bridge(ends, bars, final, target_step, unexplained, share, given.left)


def reconciled(found: Bridge, within: float) -> bool | None:
    """Whether what is unexplained is at most that many percent of the step; None without a target."""
    if found.unexplained_share is None:
        return None
    return abs(float(found.unexplained_share.value)) <= within


def _bars(ends: Ends, ordered: Sequence[Attributed]) -> tuple[Bar, ...]:
    seconds = [_seconds(number, item) for number, item in enumerate(ordered, 1)]
    steps = [ends.step]
    for number, lost in enumerate(seconds, 1):
        after = derive(f"bridge.{number}.step", "before - seconds", "s", before=steps[-1], seconds=lost)
        steps.append(after.titled(f"Step with {number} of {len(seconds)} causes fixed"))
    return tuple(
        Bar(item, lost, before, after, _points(number, ends, lost, before, after, steps[-1]))
        for number, (item, lost, before, after) in enumerate(
            zip(ordered, seconds, steps[:-1], steps[1:], strict=True), 1
        )
    )


def _seconds(number: int, item: Attributed) -> Quantity:
    """``bridge.1.seconds``: what was found, less what belongs to other causes."""
    name, cause = f"bridge.{number}.seconds", item.cause
    source = Source(f"finding {cause.code}" if cause.code else "the run file", ", ".join(item.seconds))
    if item.shared_s <= 0:
        return leaf(name, item.own_s, "s", "measured", source).titled(cause.name)
    found = leaf(f"bridge.{number}.found", cause.total_s, "s", "measured", source).titled(f"{cause.name}, as found")
    shared = leaf(f"bridge.{number}.shared", item.shared_s, "s", "measured", Source("attribution", "other causes"))
    shared = shared.titled(f"{cause.name}, part of other causes")
    return derive(name, "found - shared", "s", found=found, shared=shared).titled(cause.name)


def _points(
    number: int, ends: Ends, lost: Quantity, before: Quantity, after: Quantity, final: Quantity
) -> Points | None:
    ideal, prefix = ends.ideal, f"bridge.{number}"
    if ideal is None:
        return None
    was = derive(f"{prefix}.mfu_before", "ideal/before", "%", ideal=ideal, before=before)
    now = derive(f"{prefix}.mfu_after", "ideal/after", "%", ideal=ideal, after=after)
    inputs = {"ideal": ideal, "lost": lost}
    points = derive(f"{prefix}.points", "after - before", "%", after=now, before=was)
    even = derive(f"{prefix}.points_even", "ideal*lost/(step*final)", "%", step=ends.step, final=final, **inputs)
    first = derive(f"{prefix}.points_first", "ideal/(step - lost) - ideal/step", "%", step=ends.step, **inputs)
    last = derive(f"{prefix}.points_last", "ideal/final - ideal/(final + lost)", "%", final=final, **inputs)
    return Points(
        was.titled("MFU before the fix"),
        now.titled("MFU after the fix"),
        points.titled("Points in the order of the fixes"),
        even.titled("Points, independent of the order"),
        first.titled("Points of this fix alone"),
        last.titled("Points of this fix as the last one"),
    )


def _rest(ends: Ends, final: Quantity) -> tuple[Quantity | None, Quantity | None, Quantity | None]:
    if ends.target is None or ends.ideal is None:
        return None, None, None
    target = derive("bridge.target_step", "ideal/target", "s", ideal=ends.ideal, target=ends.target)
    rest = derive("bridge.unexplained", "final - target", "s", final=final, target=target)
    share = derive("bridge.unexplained_share", "rest/step", "%", rest=rest, step=ends.step)
    return (
        target.titled("Step at the target MFU"),
        rest.titled("Seconds that no cause explains"),
        share.titled("Share of the step that no cause explains"),
    )


def _mfu(name: str, ideal: Quantity | None, step: Quantity) -> Quantity | None:
    return None if ideal is None else derive(name, "ideal/step", "%", ideal=ideal, step=step)
