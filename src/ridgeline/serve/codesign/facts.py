"""What a co-design found, as its rules and tables read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.laws import Optimum
from ridgeline.core import catalog
from ridgeline.core.catalog import constant
from ridgeline.core.format import show
from ridgeline.core.quantity import Quantity, derive
from ridgeline.serve.codesign.evaluate import MEMORY, Configuration, Group, groups
from ridgeline.serve.codesign.measured import Bench, Measured, measurable
from ridgeline.serve.codesign.need import Need
from ridgeline.serve.codesign.search import Space, Walk, front, pareto, thinned

SHOWN = 10  # rows of the front
_TRIED = 40  # members of the roofline's front that are measured
_SAME = 0.05  # of the active size: steps of the grid are about that
_NARROW = ("fp8", "fp8_ds_mla", "int8", "int4", "fp4", "mxfp4")
_OTHERS = ("hoffmann-2022", "busbridge-2025")


@dataclass(frozen=True)
class Bought:
    """The best configuration where some of the plain design (dense, grouped-query, 16 bits) may change."""

    name: str
    walk: Walk


@dataclass(frozen=True)
class Designed:
    """The search and its answer. ``blind`` says why the step model was not asked; empty where it was."""

    need: Need
    space: Space
    walk: Walk
    optimum: Optimum
    blind: str

    @property
    def winner(self) -> Configuration | None:
        """The best configuration; None where none keeps the limits."""
        return self.walk.winner

    @cached_property
    def loss(self) -> Quantity:
        """``codesign.loss`` (nat) of the winner."""
        assert self.winner is not None, "there is a winner"
        return self.winner.figure("loss")

    @cached_property
    def excess(self) -> Quantity:
        """``codesign.excess`` (nat): the winner's loss above the law's optimum at the same compute."""
        assert self.optimum.loss is not None, "the law predicts loss"
        found = derive("codesign.excess", "loss - best", "nat", loss=self.loss, best=self.optimum.loss)
        return found.titled("What the serving budget costs in loss")

    @cached_property
    def gained(self) -> Quantity:
        """``codesign.gained`` (nat): the same with the other sign, for a mixture that more than pays for it."""
        assert self.optimum.loss is not None, "the law predicts loss"
        found = derive("codesign.gained", "best - loss", "nat", loss=self.loss, best=self.optimum.loss)
        return found.titled("Loss below the compute-optimal dense model")

    @property
    def against(self) -> str:
        """``{codesign.excess} above``, or what is gained, below."""
        if float(self.excess.value) < 0:
            return f"{{{self.gained.name}}} below"
        return f"{{{self.excess.name}}} above"

    @cached_property
    def worth(self) -> Quantity:
        """``codesign.worth`` (%): the share of the compute with which an optimal dense run reaches the same loss."""
        assert self.optimum.loss is not None, "the law predicts loss"
        return laws.equivalent_compute(self.need.law, self.optimum.loss, self.loss, "codesign.worth")

    @cached_property
    def reach(self) -> float:
        """Nats above the best loss that the front still shows."""
        return float(constant("codesign.front.reach").value)

    @cached_property
    def nearest_one(self) -> Configuration:
        """The configuration that misses the limits by least: as measured where one was, else by the roofline."""
        return self.walk.miss.configuration if self.walk.miss else self.space.nearest()

    @property
    def nearest(self) -> Mapping[str, float]:
        """What the nearest miss uses up of every limit."""
        return self.walk.miss.stress if self.walk.miss else self.nearest_one.stress

    @property
    def clock(self) -> tuple[str, str, str]:
        """The time that the charts speak of: the figure's short name, a title, a unit."""
        if "turn" in self.need.limits:
            return "turn", "A turn", "s"
        return ("prefill", "TTFT", "s") if set(self.need.limits) == {"ttft"} else ("tpot", "TPOT", "s/token")

    def asked(self, name: str) -> str:
        """A limit in words; of memory, what there is."""
        if name != MEMORY:
            return show(self.need.limits[name])
        return f"{show(self.need.chips)} of {self.need.device.name}"

    def same(self, one: Configuration) -> bool:
        """Whether that is the winner's design: its kind of model within a twentieth of its active size."""
        assert self.winner is not None, "there is a winner"
        ours, theirs = self.winner, one
        kinds = [(c.group.frame.attention, c.group.frame.mixture, c.sides["experts"]) for c in (ours, theirs)]
        sizes = [float(c.figure("active").value) for c in (ours, theirs)]
        return kinds[0] == kinds[1] and abs(sizes[0] / sizes[1] - 1) <= _SAME

    @cached_property
    def bought(self) -> tuple[Bought, ...]:
        """The plain design, each change alone, and all together; changes that the axes do not hold are left out."""
        axes = self.need.axes
        wide = {"weights": axes.weights[0], "kv": axes.kv[0]}
        found = [Bought("plain", self._only(wide))]
        for name, there in (("8-bit weights", len(axes.weights) > 1), ("8-bit cache", len(axes.kv) > 1),
                            ("MLA", "mla" in axes.attention), ("MoE", bool(axes.mixtures))):  # fmt: skip
            if there:
                found.append(Bought(name, self._only(wide, name)))
        return (*found, Bought("all", self.walk))

    def _only(self, wide: Mapping[str, str], name: str = "") -> Walk:
        def keep(group: Group) -> bool:
            frame = group.frame
            return (
                (group.weights == wide["weights"] or name == "8-bit weights")
                and (group.kv == wide["kv"] or name == "8-bit cache")
                and (frame.attention == self.need.axes.attention[0] or name == "MLA")
                and (not frame.mixture or name == "MoE")
            )

        return self.space.best(keep)

    @cached_property
    def front(self) -> list[tuple[Configuration, Measured | None]]:
        """At most `SHOWN` configurations that no other beats in loss, TPOT and price at once, as measured, best first.

        Measured are some of the roofline's front, and the winner.
        """
        assert self.winner is not None, "there is a winner"
        reach = float(self.loss.value) + self.reach
        members = [one for one in front(self.space) if one.group.loss[one.index] <= reach]
        members = thinned(members, _TRIED)
        if self.space.bench is None:
            return [(one, None) for one in thinned(members, SHOWN)]
        asked = [self.space.bench.measure(self.winner), *(self.space.bench.measure(one) for one in members)]
        kept = [item for item in asked if item.timed <= 1 and item.meets]
        points = np.array([_point(item) for item in kept])
        some = thinned([kept[row] for row in pareto(points)], SHOWN)
        return [(item.configuration, item) for item in some]

    @cached_property
    def by_law(self) -> dict[str, Configuration | None]:
        """The winner under every law that ranks the candidates, by slug; the need's law first."""
        found = {self.need.law.slug: self.winner}
        for slug in (*_OTHERS, self.need.joint.slug):
            if slug not in found:
                found[slug] = self.space.best(law=catalog.law(slug)).winner
        return found

    @property
    def edges(self) -> list[str]:
        """Axes of which the winner has the last value tried."""
        assert self.winner is not None, "there is a winner"
        sides, columns = self.winner.sides, self.winner.group.frame.columns
        wide = columns["d_model"]
        ends = {
            f"the smallest width, {sides['d_model']}": sides["d_model"] == np.min(wide),
            f"the largest width, {sides['d_model']}": sides["d_model"] == np.max(wide),
            f"the largest batch, {sides['batch']}": 1 < sides["batch"] == max(self.need.batches),
            f"the most experts, {sides['experts']}": 1 < sides["experts"] == np.max(columns["experts"]),
        }
        return [name for name, at in ends.items() if at]

    @property
    def unknown(self) -> list[str]:
        """What of the winner no law here speaks of."""
        assert self.winner is not None, "there is a winner"
        group = self.winner.group
        parts = {
            f"weights in {group.weights}": group.weights in _NARROW,
            f"a cache in {group.kv}": group.kv in _NARROW,
            "latent attention": group.frame.attention == "mla",
            "experts narrower than the dense layer": self.winner.sides["top_k"] > 1,
        }
        return [name for name, there in parts.items() if there]

    @cached_property
    def more_heads(self) -> Measured | None:
        """The winner with the next larger number of key-value heads, measured; None where there is none."""
        one = self.winner
        if one is None or self.space.bench is None or one.group.frame.attention != "gqa":
            return None
        columns, sides = one.group.frame.columns, one.sides
        same = np.all([columns[n] == v for n, v in sides.items() if n != "kv_heads"], axis=0)
        larger = np.flatnonzero(same & (columns["kv_heads"] > sides["kv_heads"]))
        if not len(larger):
            return None
        return self.space.bench.measure(Configuration(one.group, int(larger[np.argmin(columns["kv_heads"][larger])])))


def _point(item: Measured) -> tuple[float, float, float]:
    tpot = float(item.latency.tpot.base)
    price = tpot if item.latency.dollars is None else float(item.latency.dollars.base)
    return float(item.configuration.group.loss[item.configuration.index]), tpot, price


def codesign(need: Need) -> Designed:
    """Search, and ask the step model about the best.

    Raises `InputError` for axes without a candidate or a device whose rates are not known.
    """
    found = groups(need)
    bench = Bench(need)
    plain = Space(found, None)
    reason = measurable(bench, plain.nearest())
    space = plain if reason else Space(found, bench)
    return Designed(need, space, space.best(), laws.optimum(need.law, need.compute, "optimum"), reason)
