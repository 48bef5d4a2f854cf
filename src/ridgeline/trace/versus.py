"""Two runs by bucket: what a fix really bought, and what a larger scale costs.

MFU differs by ideal/b - ideal/a = ideal*(a - b)/(a*b): linear in the seconds once both steps are known, so each
bucket's points follow from its seconds exactly and do not depend on an order.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, leaf

LEAST_S = 1e-9  # traces count in nanoseconds: what is less is residue of floating point
MARGIN = 0.02  # of the first step: a smaller change of a bucket is not called one


@dataclass(frozen=True)
class Profile:
    """One run: seconds per step by bucket. ``chips`` and ``tokens`` (of a step, all chips) for a change of scale,
    ``ideal_s`` for MFU."""

    name: str
    buckets: Mapping[str, float]
    chips: int | None = None
    tokens: float | None = None
    ideal_s: float | None = None

    @property
    def step_s(self) -> float:
        """The buckets added up."""
        return sum(self.buckets.values())


@dataclass(frozen=True)
class Change:
    """One bucket in both runs; ``change`` = after - before (s); ``points`` of MFU gained, or None."""

    bucket: str
    before: Quantity
    after: Quantity
    change: Quantity
    points: Quantity | None


@dataclass(frozen=True)
class Comparison:
    """``rows`` with the largest change first. ``aimed_s`` is what the buckets that shrank gave back, ``moved_s`` what
    others grew: time that moved instead of going away."""

    rows: tuple[Change, ...]
    before: Quantity
    after: Quantity
    points: Quantity | None
    aimed_s: float
    moved_s: float


@dataclass(frozen=True)
class Scaling:
    """``comparison`` is per the small run's tokens per chip. ``culprit`` grew most (empty: nothing grew).

    ``next_chips`` halves the range of scales, on a log axis, in which the growth begins; None where no whole scale
    lies between.
    """

    comparison: Comparison
    culprit: str
    next_chips: int | None


def compare(before: Profile, after: Profile, prefix: str = "compare") -> Comparison:
    """Every bucket of both runs; one that a run lacks is zero there. Quantities are ``<prefix>.*``.

    A bucket below `LEAST_S` in both is left out; one that changes by less has not changed. Raises `InputError` for a
    run without time.
    """
    for profile in (before, after):
        if not any(seconds >= LEAST_S for seconds in profile.buckets.values()):
            raise InputError.expected("buckets with some time in them", profile.step_s, where=profile.name)
    pairs = {name: _pair(name, before, after) for name in dict.fromkeys((*before.buckets, *after.buckets))}
    names = [name for name, pair in pairs.items() if max(pair) >= LEAST_S]
    first = {name: _leaf(f"{prefix}.before", name, before.name, pairs[name][0]) for name in names}
    second = {name: _leaf(f"{prefix}.after", name, after.name, pairs[name][1]) for name in names}
    whole = _total(f"{prefix}.before.step", first), _total(f"{prefix}.after.step", second)
    ideal = _same_ideal(prefix, before, after)
    rows = [_change(prefix, name, (first[name], second[name]), whole, ideal) for name in names]
    rows.sort(key=lambda row: -abs(float(row.change.value)))
    differences = [float(row.change.value) for row in rows]
    points = None
    if ideal is not None:
        inputs = {"ideal": ideal, "before": whole[0], "after": whole[1]}
        points = derive(f"{prefix}.points", "ideal/after - ideal/before", "%", **inputs).titled("MFU points gained")
    gone, grown = -sum(d for d in differences if d < 0), sum(d for d in differences if d > 0)
    return Comparison(tuple(rows), *whole, points, gone, grown)


def scale(small: Profile, large: Profile) -> Scaling:
    """The large run against the small one, at equal tokens per chip, and the next scale to test.

    Raises `InputError` where a chip count is missing or the large run is not larger.
    """
    for profile in (small, large):
        if profile.chips is None:
            raise InputError.expected("the number of chips", None, where=profile.name)
    assert small.chips is not None
    assert large.chips is not None
    if large.chips <= small.chips:
        raise InputError.expected(f"more than {small.chips} chips", large.chips, where=large.name)
    found = compare(small, _at_equal_tokens(small, large), prefix="scale")
    growth = {row.bucket: float(row.change.value) for row in found.rows}
    worst = max(growth, key=lambda bucket: growth[bucket])
    culprit = worst if growth[worst] > MARGIN * small.step_s else ""
    return Scaling(found, culprit, next_scale(small.chips, large.chips))


def next_scale(small: int, large: int) -> int | None:
    """The scale to test next: small * 2^k nearest the geometric mean, so that meshes stay divisible; None between
    neighbours."""
    doublings = math.log2(large / small)
    if doublings < 1.5:
        return None
    between = round(doublings / 2 + 1e-9)
    return int(small * 2 ** min(max(between, 1), math.ceil(doublings) - 1))


def _at_equal_tokens(small: Profile, large: Profile) -> Profile:
    """The large run's seconds for as many tokens a chip as the small run has. Unchanged where tokens are not known."""
    if small.tokens is None or large.tokens is None or small.chips is None or large.chips is None:
        return large
    ratio = (small.tokens / small.chips) / (large.tokens / large.chips)
    scaled = {name: seconds * ratio for name, seconds in large.buckets.items()}
    ideal = None if large.ideal_s is None else large.ideal_s * ratio
    return Profile(large.name, scaled, large.chips, small.tokens / small.chips * large.chips, ideal)


def _pair(bucket: str, before: Profile, after: Profile) -> tuple[float, float]:
    """The bucket's seconds in both runs, the same ones where they differ by residue."""
    first, second = before.buckets.get(bucket, 0.0), after.buckets.get(bucket, 0.0)
    return first, second if abs(second - first) >= LEAST_S else first


def _leaf(prefix: str, bucket: str, run: str, value_s: float) -> Quantity:
    found = leaf(f"{prefix}.{bucket}", value_s, "s", "measured", Source(run, "mean over steady steps"))
    return found.titled(f"{bucket.replace('_', ' ')}, {run}")


def _total(name: str, parts: Mapping[str, Quantity]) -> Quantity:
    return derive(name, " + ".join(parts), "s", **parts).titled("Step time, all buckets")


def _same_ideal(prefix: str, before: Profile, after: Profile) -> Quantity | None:
    """The ideal step, where both runs have the same one: else their MFU differ for another reason as well."""
    if before.ideal_s is None or after.ideal_s is None:
        return None
    if not math.isclose(before.ideal_s, after.ideal_s, rel_tol=1e-6):
        return None
    return leaf(f"{prefix}.ideal", before.ideal_s, "s", "measured", Source(before.name, "the ideal step"))


def _change(
    prefix: str, bucket: str, both: tuple[Quantity, Quantity], whole: tuple[Quantity, Quantity], ideal: Quantity | None
) -> Change:
    name, (before, after) = f"{prefix}.change.{bucket}", both
    change = derive(name, "after - before", "s", after=after, before=before).titled(bucket.replace("_", " "))
    points = None
    if ideal is not None:
        inputs = {"ideal": ideal, "change": change, "first": whole[0], "second": whole[1]}
        points = derive(f"{name}.points", "-ideal*change/(first*second)", "%", **inputs).titled("MFU points gained")
    return Change(bucket, before, after, change, points)
