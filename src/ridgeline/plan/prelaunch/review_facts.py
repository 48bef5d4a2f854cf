"""What the rules of a review look at: the predicted step of a proposal, and what a second of it is worth."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ridgeline.arithmetic import conventions, geometry, kernels
from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.geometry import Cut, GeometryAudit, Padded
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.mfu import ideal_time, points_of
from ridgeline.arithmetic.mfu import mfu as mfu_of
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import catalog
from ridgeline.core.finding import Cost
from ridgeline.core.quantity import Kind, Quantity, Source, derive, given, leaf
from ridgeline.plan.prelaunch.claim import claimed
from ridgeline.plan.prelaunch.review import Proposal
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.expected import Calibration, Expected, expect
from ridgeline.plan.steps.fits import Held, held
from ridgeline.plan.steps.layout import Layout

if TYPE_CHECKING:
    from ridgeline.plan.prelaunch.comparable import Comparison

EXPOSED = ("tp_exposed", "ep_exposed", "cp_exposed", "pp_exposed", "dp_exposed")
MATMULS = ("forward_matmul", "dgrad_matmul", "wgrad_matmul", "head")
TITLES = {
    "forward_matmul": "Matmuls, forward", "dgrad_matmul": "Matmuls, input grads",
    "wgrad_matmul": "Matmuls, weight grads", "attention": "Attention", "vector": "Memory-bound kernels",
    "host": "Host, not hidden", "tp_exposed": "Tensor traffic exposed",
    "ep_exposed": "Expert traffic exposed", "cp_exposed": "Context traffic exposed",
    "recompute": "Recomputation", "head": "Head and loss", "bubble": "Pipeline bubble",
    "pp_exposed": "Pipeline traffic exposed", "dp_exposed": "Data traffic exposed",
    "optimizer": "Optimizer", "step": "Once a step",
}  # fmt: skip
ACTIVITY = dict.fromkeys(EXPOSED, "communication") | {"host": "host", "step": "host", "bubble": "idle"}


_LEVELS = {"low": "80% low", "high": "80% high", "low95": "95% low", "high95": "95% high"}


@dataclass(frozen=True)
class Expectation:
    """The expected step and MFU, and the ends of their 80% and 95% intervals."""

    step: Quantity
    mfu: Quantity
    low: Quantity
    high: Quantity
    low95: Quantity
    high95: Quantity
    step_low: Quantity
    step_high: Quantity
    step_low95: Quantity
    step_high95: Quantity

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        return tuple(vars(self).values())


@dataclass(frozen=True, eq=False)
class ReviewFacts:
    """A proposal with its expected step. ``comparison`` is that with a comparable run, where one is given."""

    proposal: Proposal
    comparison: "Comparison | None" = None
    calibration: Calibration | None = None

    @property
    def spec(self) -> ModelSpec:
        """The model."""
        return self.proposal.spec

    @property
    def cluster(self) -> Cluster:
        """The chips and their links."""
        return self.proposal.cluster

    @property
    def plan(self) -> dict[str, int | str]:
        """The columns of the plan by name."""
        return self.proposal.layouts.row(0)

    def axis(self, name: str) -> int:
        """One size of the plan."""
        return int(self.plan[name])

    @cached_property
    def batch(self) -> Batch:
        """What one step reads."""
        return Batch.of(self.proposal.file.seq, self.proposal.sequences)

    @cached_property
    def convention(self) -> conventions.Convention:
        """The FLOP convention of every MFU of the review: the claim's, else 6N."""
        claim = self.proposal.file.claim
        return conventions.find(claim.convention if claim else "6n")

    @cached_property
    def flops(self) -> Quantity:
        """Model FLOPs of a step in that convention."""
        return conventions.evaluate(self.convention, self.spec, self.batch).sequence

    @cached_property
    def chips(self) -> Quantity:
        """``review.chips``: those that the plan uses."""
        return given("review.chips", int(self.proposal.layouts.chips[0]), "chip", "the plan").titled("Chips")

    @cached_property
    def peak(self) -> Quantity:
        """The dense peak of one chip in the layers' data type."""
        dtype, device = self.proposal.software.dtype, self.cluster.device
        return known(device.peak(dtype), f"the {dtype} peak of {device.name}").titled(f"Dense peak, {dtype}")

    @cached_property
    def ideal(self) -> Quantity:
        """``step.ideal`` (s)."""
        return ideal_time(self.flops, self.chips, self.peak)

    @cached_property
    def measured(self) -> bool:
        """Whether the matmuls of this device and data type were measured."""
        return kernels.gemm(self.cluster.device, self.proposal.software.dtype).measured

    @cached_property
    def predicted(self) -> Expected:
        """The expected step, as arrays of one."""
        p = self.proposal
        return expect(p.spec, p.cluster, p.batch, p.layouts, p.software, calibration=self.calibration)

    @cached_property
    def terms(self) -> dict[str, Quantity]:
        """``step.<term>`` (s) of every term that takes time."""
        seconds = {name: float(value[0]) for name, value in self.predicted.steps.terms.items()}
        return {name: self._term(f"step.{name}", TITLES[name], value) for name, value in seconds.items() if value > 0}

    @cached_property
    def wires(self) -> dict[str, Quantity]:
        """``wire.<group>`` (s): whole transfers of a step, hidden or not."""
        seconds = {name: float(value[0]) for name, value in self.predicted.steps.wire.items()}
        titles = {"tp": "Tensor", "ep": "Expert", "cp": "Context", "pp": "Pipeline", "dp": "Data"}
        return {
            name: self._term(f"wire.{name}", f"{titles[name]} traffic, whole", value)
            for name, value in seconds.items()
            if value > 0
        }

    def _term(self, name: str, title: str, seconds: float) -> Quantity:
        return leaf(name, seconds, "s", self.kind, self.source).titled(title)

    @property
    def kind(self) -> Kind:
        """What a predicted time is: from measured kernels, or assumed from those of other devices."""
        return "measured" if self.measured else "assumed"

    @property
    def source(self) -> Source:
        """Where predicted times come from."""
        of = self.cluster.device.name if self.measured else "other devices, on this one's roofline"
        return Source("step model fitted to published runs", f"core/data/expected.toml, on measured kernels of {of}")

    @property
    def step(self) -> Quantity:
        """``expected.step`` (s): all terms."""
        return self.expected.step

    @property
    def mfu(self) -> Quantity:
        """``expected.mfu`` (percent) at that step."""
        return self.expected.mfu

    @cached_property
    def expected(self) -> Expectation:
        """The expectation with its intervals, from the terms and the residuals of published runs."""
        step = derive("expected.step", " + ".join(self.terms), "s", **self.terms).titled(
            "Expected step time, all terms"
        )
        ratios: dict[str, float] = {}
        for level, tail in ((0.80, ""), (0.95, "95")):
            low, high = self.predicted.interval(level)
            ratios |= {f"low{tail}": float(low[0]), f"high{tail}": float(high[0])}
        found = self.predicted.residuals
        source = Source("published runs, held out by group", f"core/data/expected.toml, residuals {found.name}")
        ends: dict[str, Quantity] = {}
        for end, seconds in ratios.items():
            ratio = leaf(f"expected.ratio.{end}", seconds / float(step.base), "1", "measured", source)
            ratio = ratio.titled("Actual over expected step time of held-out runs", f"{found.groups} groups of runs")
            ends[end] = derive(f"expected.step.{end}", "step*ratio", "s", step=step, ratio=ratio).titled(
                f"Expected step time, {_LEVELS[end]}"
            )
        return Expectation(step, self._mfu(step, "expected.mfu", ""), *self._sorted(ends))

    def _sorted(self, ends: dict[str, Quantity]) -> Iterator[Quantity]:
        """The ends of the MFU, then those of the step: a long step is a low MFU."""
        turned = {"low": "high", "high": "low", "low95": "high95", "high95": "low95"}
        for end, other in turned.items():
            yield self._mfu(ends[other], f"expected.mfu.{end}", f", {_LEVELS[end]}")
        yield from ends.values()

    def _mfu(self, step: Quantity, name: str, said: str) -> Quantity:
        found = mfu_of(self.flops, self.chips, self.peak, step).named(name)
        return found.titled(f"Expected MFU{said}, {self.convention.title}", f"convention {self.convention.name}")

    @property
    def counted(self) -> str:
        """What an MFU here counts, in words: the object of *MFU counts*."""
        if self.convention.name == "6n":
            return "6N FLOPs a token, without attention"
        return f"FLOPs as {self.convention.title} does"

    @cached_property
    def claimed(self) -> Quantity | None:
        """The claim as the team states it."""
        claim = self.proposal.file.claim
        return None if claim is None else claimed(claim)

    @cached_property
    def ceiling(self) -> Quantity:
        """``matmul.ceiling`` (percent): what large matmuls reach on this device."""
        return kernels.mm_ceiling(self.cluster.device, self.proposal.software.dtype).titled("Matmul ceiling")

    @cached_property
    def geometry(self) -> GeometryAudit | None:
        """Dimensions against the device's tiles; None where no source states the tile."""
        return self.geometry_of(self.spec, self.batch, self.axis("tp"), self.axis("etp"))

    def geometry_of(self, spec: ModelSpec, batch: Batch, tp: int, etp: int) -> GeometryAudit | None:
        """The same for another model under the tiles of this review."""
        file, own = self.proposal.file, self.proposal.file.geometry
        tile = self.cluster.device.tile if own.tile is None else _own("tile", own.tile)
        if tile is None:
            return None
        head = catalog.constant("review.head_tile") if own.head_tile is None else _own("head_tile", own.head_tile)
        vocab = catalog.constant("review.vocab_tile") if own.vocab_tile is None else _own("vocab_tile", own.vocab_tile)
        cut = Cut(head, tile, vocab, tp, etp, own.vocab_shards or tp)
        counted = flops(spec, batch, mask=file.mask)
        table = geometry.table_flops(spec, batch.tokens) if own.embedding_matmul else None
        rows = geometry.dimensions(spec, cut)
        return geometry.audit(rows, counted, table=table)

    @cached_property
    def run_steps(self) -> Quantity | None:
        """``run.steps``: of the whole run; None where its tokens are not known."""
        if self.tokens is None:
            return None
        found = derive("run.steps", "ceil(tokens/batch)", "1", tokens=self.tokens, batch=self.batch.tokens)
        return found.titled("Steps of the run")

    @cached_property
    def tokens(self) -> Quantity | None:
        """``run.tokens``."""
        value = self.proposal.tokens
        return None if value is None else given("run.tokens", value, "token", "tokens").titled("Tokens of the run")

    @cached_property
    def price(self) -> Quantity | None:
        """``review.price`` (USD a chip-hour): the team's, or the catalog's."""
        value = self.proposal.price
        if value is not None:
            found = given("review.price", value, "USD/(chip*h)", "price.dollars_per_chip_hour")
            return found.titled("Chip-hour price")
        return catalog.constant(f"prices.chip_hour.{self.cluster.device.slug}", missing_ok=True)

    @cached_property
    def held(self) -> Held:
        """Memory of the fullest chip, as arrays of one."""
        p = self.proposal
        return held(p.spec, p.batch, p.layouts, p.software)

    @cached_property
    def memory_parts(self) -> dict[str, Quantity]:
        """``memory.<part>`` (B/chip) of the fullest chip, closed forms; what takes nothing is left out."""
        source = Source("closed forms of training memory", "arXiv:2205.05198 and arXiv:1910.02054")
        sizes = {name: float(value[0]) for name, value in self.held.parts.items()}
        return {
            name: leaf(f"memory.{name}", size, "B/chip", "measured", source).titled(f"{name.capitalize()} on the chip")
            for name, size in sizes.items()
            if size > 0
        }

    @cached_property
    def memory(self) -> Quantity:
        """``memory.total`` (B/chip) of the fullest chip."""
        found = derive("memory.total", " + ".join(self.memory_parts), "B/chip", **self.memory_parts)
        return found.titled("Memory of the fullest chip")

    @property
    def capacity(self) -> Quantity | None:
        """The memory of one chip; None where no source states it."""
        return self.cluster.device.hbm_bytes

    def lost(self, seconds: Quantity) -> Cost:
        """What ``seconds`` of every step cost: MFU points, and chip-hours and dollars of the run where it is known.

        Names are that of ``seconds`` with ``.mfu_points``, ``.chip_hours`` and ``.dollars`` behind.
        """
        if not 0 < float(seconds.base) < float(self.step.base):
            return Cost(seconds=seconds)
        points = points_of(self.ideal, self.step, seconds, f"{seconds.name}.mfu_points")
        return self.worth(seconds, points)

    def points(self, points: Quantity) -> Cost:
        """What ``points`` of MFU cost: those that the step model would reach without."""
        if float(points.base) <= 0:
            return Cost(mfu_points=points)
        inputs = {"ideal": self.ideal, "now": self.mfu, "points": points}
        seconds = derive(f"{points.name}.seconds", "ideal/now - ideal/(now + points)", "s", **inputs)
        return self.worth(seconds.titled("Step time that they take"), points)

    def unpadded(self, row: Padded) -> Quantity:
        """``geometry.<dimension>.gain`` (percent): MFU points without the padding, as fast as the mean of the step.

        With x = share*(1/efficiency - 1) of the useful work padded, the step shrinks by 1 + x: the gain is MFU*x.
        """
        inputs = {"mfu": self.mfu, "share": row.share, "efficiency": row.efficiency}
        found = derive(f"geometry.{row.what}.gain", "mfu*share*(1/efficiency - 1)", "%", **inputs)
        return found.titled(f"MFU points that the padding of {row.what} takes")

    def instead(
        self, name: str, *, spec: ModelSpec | None = None, layouts: Layout | None = None, cluster: Cluster | None = None
    ) -> Quantity:
        """``<name>.points`` (percent): what the step model gains with that change, in MFU points; may be below zero."""
        p = self.proposal
        changed = replace(p, spec=spec or p.spec, layouts=layouts or p.layouts, cluster=cluster or p.cluster)
        found = replace(self, proposal=changed, comparison=None)
        better = leaf(f"{name}.instead", float(found.mfu.value), "%", self.kind, self.source)
        better = better.titled("Expected MFU with it")
        points = derive(f"{name}.points", "instead - now", "%", instead=better, now=self.mfu)
        return points.titled("MFU points of the change")

    def worth(self, seconds: Quantity, points: Quantity) -> Cost:
        """The cost of these seconds of every step and these points, over the run where it is known."""
        if self.run_steps is None:
            return Cost(seconds, points)
        inputs = {"lost": seconds, "steps": self.run_steps, "chips": self.chips}
        hours = derive(f"{seconds.name}.chip_hours", "lost*steps*chips", "chip*h", **inputs)
        hours = hours.titled("Chip-hours of the run that they take")
        if self.price is None:
            return Cost(seconds, points, hours)
        dollars = derive(f"{seconds.name}.dollars", "chip_hours*price", "USD", chip_hours=hours, price=self.price)
        return Cost(seconds, points, hours, dollars.titled("Cost over the run"))

    @cached_property
    def exposed(self) -> Quantity | None:
        """``step.exposed`` (s): communication that nothing hides; None where there is none."""
        parts = {name: self.terms[name] for name in EXPOSED if name in self.terms}
        if not parts:
            return None
        return derive("step.exposed", " + ".join(parts), "s", **parts).titled("Exposed communication")

    def share(self, seconds: Quantity) -> Quantity:
        """``<name>.share`` (percent) of the step."""
        found = derive(f"{seconds.name}.share", "part/step", "%", part=seconds, step=self.step)
        return found.titled(f"{seconds.label}, share of the step")


def _own(name: str, value: int) -> Quantity:
    return given(f"geometry.{name}", value, "1", f"geometry.{name}")
