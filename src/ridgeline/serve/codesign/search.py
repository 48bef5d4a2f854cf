"""From candidates to an answer: who keeps every limit, who is best, what the front looks like, how near a miss was.

Order: least loss first. Losses within `codesign.tie` of the least count as the same, and there wider types, heads of
grouped queries, more of them, and a balanced shape win: a law sees none of these, and quality is not given away unseen.
The roofline prunes, exactly, since it is a lower bound; the step model decides. Along an order its answer is asked
where the roofline, times what the step model last added in that group, keeps the limits.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.core.catalog import constant
from ridgeline.core.law import Law
from ridgeline.serve.codesign.evaluate import Configuration, Floats, Group, losses_under
from ridgeline.serve.codesign.measured import Bench, Measured

ASKS = 100  # configurations that one way down the order may measure
PROBES = 30  # spread over the whole order where that was not enough
_EASE = 0.9  # of what the step model last added: shapes differ, and passing over one is worse than asking
Flags = np.ndarray[Any, np.dtype[np.bool_]]
T = TypeVar("T")
Keep = Callable[[Group], bool]


@dataclass(frozen=True)
class Space:
    """All groups side by side. ``bench`` is None where the step model cannot answer for the device."""

    groups: Sequence[Group]
    bench: Bench | None
    walks: dict[tuple[int, str], "Walk"] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Candidates."""
        return sum(group.frame.size for group in self.groups)

    @cached_property
    def feasible(self) -> int:
        """Candidates whose roofline keeps every limit."""
        return int(sum(np.sum(group.worst <= 1) for group in self.groups))

    @cached_property
    def unknown(self) -> int:
        """Candidates for which no law gives a loss."""
        return int(sum(np.sum(~np.isfinite(group.loss)) for group in self.groups))

    def best(self, keep: Keep = lambda group: True, law: Law | None = None) -> "Walk":
        """The best configuration of the groups that are kept, under the need's law or another one.

        Each group is walked by itself, once; then those within a tie of the least loss in the order of preference.
        """
        chosen = [group for group in self.groups if keep(group)]
        walks: list[Walk] = []
        least, lowest = None, np.inf
        for hoped, group in sorted(((_hoped(g, law), g) for g in chosen), key=lambda item: item[0]):
            if hoped >= lowest:
                break  # nothing in the groups that are left has less loss
            walks.append(walk := self._walked(group, law))
            loss = np.inf if walk.winner is None else float(_losses(group, law)[walk.winner.index])
            least, lowest = (walk.winner, loss) if loss < lowest else (least, lowest)
        asked = sum(walk.asked for walk in walks)
        if least is None:
            misses = [walk.miss for walk in walks if walk.miss is not None]
            return Walk(None, None, min(misses, key=lambda miss: miss.timed, default=None), asked)
        most = lowest + float(constant("codesign.tie").value)
        tied = _walk(Ranking.of(chosen, law).preferred(most), self.bench)
        one = tied.winner or least
        return Walk(one, self.bench.measure(one) if self.bench else None, None, asked + tied.asked)

    def _walked(self, group: Group, law: Law | None) -> "Walk":
        key = (id(group), law.slug if law else "")
        if key not in self.walks:
            self.walks[key] = _walk(Ranking.of([group], law).by_loss(), self.bench)
        return self.walks[key]

    def nearest(self, keep: Keep = lambda group: True) -> Configuration:
        """The candidate that misses its limits by least, by the roofline."""
        found = [(float(np.min(g.worst)), n) for n, g in enumerate(self.groups) if keep(g)]
        group = self.groups[min(found)[1]]
        return Configuration(group, int(np.argmin(group.worst)))


@dataclass(frozen=True)
class Walk:
    """Where a walk ended: the ``winner``, measured where it could be, or None, and the nearest ``miss`` on the way."""

    winner: Configuration | None
    measured: Measured | None
    miss: Measured | None
    asked: int


@dataclass(frozen=True)
class Ranking:
    """Candidates whose roofline keeps the limits and whose loss is known. Columns of ``table``: loss, what breaks ties
    in order (the last of it the price), the number of the group in ``groups``, the index in it, and 1 for the candidate
    of a size and batch whose heads are easiest on the limits."""

    groups: Sequence[Group]
    table: Floats

    @classmethod
    def of(cls, groups: Sequence[Group], law: Law | None = None) -> "Ranking":
        """All of them, in no order, under the need's law or another one."""
        rows = [_preference(number, group, _losses(group, law)) for number, group in enumerate(groups)]
        return cls(groups, np.concatenate(rows) if rows else np.zeros((0, 10)))

    def by_loss(self) -> list[Configuration]:
        """Least loss first, one candidate for each size and batch."""
        easiest = np.flatnonzero(self.table[:, 9])
        return self._each(easiest[np.argsort(self.table[easiest, 0], kind="stable")])

    def preferred(self, most: float) -> list[Configuration]:
        """Those with a loss of at most ``most``, in the order of preference."""
        order = np.lexsort((self.table[:, 0], *self.table[:, 6:0:-1].T))
        return self._each(order[self.table[order, 0] <= most])

    def _each(self, order: Any) -> list[Configuration]:
        return [Configuration(self.groups[int(n)], int(index)) for n, index in self.table[order, 7:9]]


def _hoped(group: Group, law: Law | None) -> float:
    """The least loss in a group among candidates whose roofline keeps the limits."""
    return float(np.nanmin(_losses(group, law), where=(group.worst <= 1), initial=np.inf))


def _losses(group: Group, law: Law | None) -> Floats:
    return group.loss if law is None else losses_under(group.need, law, group)


def _preference(number: int, group: Group, loss: Floats) -> Floats:
    index = np.flatnonzero((group.worst <= 1) & np.isfinite(loss))
    c = group.frame.columns
    aspect = np.log(c["d_model"][index] / c["layers"][index] / float(constant("recipes.aspect").value))
    cost = group.figures["price"].value if "price" in group.figures else group.figures["tpot"].value
    same, easiest = np.ones(len(index)), np.zeros(len(index))
    size = np.stack([c[name][index] for name in ("d_model", "layers", "experts", "top_k", "batch")])
    order = np.lexsort((group.worst[index], *size))
    easiest[order] = np.any(np.diff(size[:, order], axis=1, prepend=-1) != 0, axis=0)
    found: Floats = np.stack([
        loss[index], -_width(group.weights) * same, -_width(group.kv) * same,
        (group.frame.attention == "mla") * same, -c["kv_heads"][index] * same, np.round(np.abs(aspect), 1),
        np.asarray(cost, dtype=np.float64)[index], number * same, index * same, easiest,
    ], axis=1)  # fmt: skip
    return found


def _width(dtype: str) -> float:
    return float(dtype_bytes(dtype).value)


def _walk(order: Sequence[Configuration], bench: Bench | None) -> Walk:
    """Down the order; where that takes too many asks, first to a part of it where some configuration does."""
    if bench is None or not order:
        return Walk(order[0] if order else None, None, None, 0)
    first = _down(order, bench)
    if first.winner is not None or first.asked < ASKS:
        return first
    probes = [*np.linspace(0, len(order) - 1, PROBES).round().astype(int), _easiest(order)]
    found = [bench.measure(order[at]) for at in sorted(set(probes))]
    asked = first.asked + len(found)
    meets = [at for at, item in zip(sorted(set(probes)), found, strict=True) if item.timed <= 1 and item.meets]
    miss = min((first.miss, *found), key=lambda item: np.inf if item is None else item.timed)
    if not meets:
        return Walk(None, None, miss, asked)
    before = max((at for at in probes if at < meets[0]), default=0)
    last = _down(order[before : meets[0] + 1], bench)
    one = last.winner or order[meets[0]]
    return Walk(one, bench.measure(one), miss, asked + last.asked)


def _easiest(order: Sequence[Configuration]) -> int:
    return int(np.argmin([one.timed for one in order]))


def _down(order: Iterable[Configuration], bench: Bench) -> Walk:
    """Asking the step model where what it added to others of the group lets it hope."""
    hope = _Hope()
    miss: Measured | None = None
    asked = 0
    for one in order:
        if hope.of(one) > 1:
            continue
        found = bench.measure(one)
        asked += 1
        if found.timed <= 1 and found.meets:
            return Walk(one, found, miss, asked)
        if miss is None or found.timed < miss.timed:
            miss = found
        hope.learn(found)
        if asked == ASKS:
            break
    return Walk(None, None, miss, asked)


@dataclass
class _Hope:
    """What the step model would say, hopefully: what it last added in the group at that batch, in proportion or by
    layer, whichever is less."""

    ratios: dict[tuple[int, int], float] = field(default_factory=dict)
    layers: dict[tuple[int, int], float] = field(default_factory=dict)

    def of(self, one: Configuration) -> float:
        """The time of a configuration over its limit."""
        roof, key = one.timed, (id(one.group), one.sides["batch"])
        if key not in self.ratios:
            return roof
        added = min(roof * self.ratios[key], self.layers[key] * one.sides["layers"])
        return roof + _EASE * added

    def learn(self, found: Measured) -> None:
        """What was added to the roofline of one."""
        one = found.configuration
        key, added = (id(one.group), one.sides["batch"]), max(0.0, found.timed - one.timed)
        self.ratios[key] = added / one.timed
        self.layers[key] = added / one.sides["layers"]


def front(space: Space) -> list[Configuration]:
    """The candidates that no other beats in loss, TPOT and price at once, among those whose roofline keeps the limits;
    least loss first. Without a price, TPOT takes its place too."""
    where, rows = [], []
    for number, group in enumerate(space.groups):
        index = np.flatnonzero((group.worst <= 1) & np.isfinite(group.loss))
        step = np.asarray(group.figures["tpot"].value, dtype=np.float64)[index]
        price = np.asarray(group.figures["price"].value)[index] if "price" in group.figures else step
        rows.append(np.stack([group.loss[index], step, price], axis=1))
        where += [(number, int(i)) for i in index]
    points = np.concatenate(rows) if rows else np.zeros((0, 3))
    kept = pareto(points)
    return [Configuration(space.groups[where[i][0]], where[i][1]) for i in kept]


def pareto(points: Floats) -> list[int]:
    """Rows of ``points`` (n, 3) that no other row equals or beats in every column and beats in one; first column first.

    Of equal rows the first stays.
    """
    kept: list[int] = []
    steps: list[float] = []  # a staircase: as the second column rises, the third falls
    prices: list[float] = []
    for row in np.lexsort(points.T[::-1]):
        _, step, price = points[row].tolist()
        at = bisect_right(steps, step)
        if at and prices[at - 1] <= price:
            continue
        kept.append(int(row))
        end = at = at - 1 if at and steps[at - 1] == step else at
        while end < len(steps) and prices[end] >= price:
            end += 1
        steps[at:end], prices[at:end] = [step], [price]
    return kept


def thinned(items: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly spread over the order, both ends among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i)] for i in np.linspace(0, len(items) - 1, most)]
