"""A pilot on a few chips: the same work for each chip, the widest terms measured before the whole cluster is paid.

Kept as in the design: everything that decides the shapes of one chip's kernels (tensor and context parallelism, widths,
sequence, micro-batch, experts on a rank, recomputation). Made smaller: data parallelism, pipeline stages (two where the
design has any, so that they hand over), experts with their group, and layers, until the plan fits the memory.
"""

from dataclasses import dataclass, replace
from math import gcd

from ridgeline.arithmetic.money import chip_hours
from ridgeline.arithmetic.spec import AnyFfn, ModelSpec, MoE
from ridgeline.core.catalog import constant
from ridgeline.core.quantity import Quantity, Source, derive, leaf, renamed
from ridgeline.plan.prelaunch.reshaped import resized, with_ffns
from ridgeline.plan.prelaunch.review import Proposal
from ridgeline.plan.prelaunch.review_facts import TITLES, ReviewFacts
from ridgeline.plan.prelaunch.review_spread import spread
from ridgeline.plan.steps import cluster as clusters
from ridgeline.plan.steps.fits import held, which_fit
from ridgeline.plan.steps.layout import Layout, feasible

_FEW = 8  # micro-batches of a replica: enough for the mean, few enough to be quick
_OWN = ("step", "expected", "batch", "flops", "params", "model", "memory")


@dataclass(frozen=True)
class Line:
    """One term of the pilot's step with its 80% interval, and what its high end would take from the design.

    At most ``passes`` (s), the high end: go. Above ``stops`` (s), as far again: do not launch. ``risk`` are MFU points
    of the design if the term is as slow there as at its high end. ``origin`` says what the interval is that of.
    """

    term: str
    title: str
    expected: Quantity
    low: Quantity
    passes: Quantity
    stops: Quantity
    risk: Quantity
    origin: str


@dataclass(frozen=True)
class Pilot:
    """The small job. ``lines`` are sorted by risk; ``untested`` names the terms of the design that it has none of."""

    facts: ReviewFacts
    lines: tuple[Line, ...]
    untested: tuple[str, ...]
    step: Quantity
    hours: Quantity
    dollars: Quantity | None

    @property
    def plan(self) -> str:
        """``tp=8, dp=2, ...``: what is not one."""
        row = self.facts.plan
        names = ("tp", "pp", "dp", "cp", "ep", "chunks", "micro_batch", "zero", "sequence_parallel")
        sizes = [f"{name}={row[name]}" for name in names if row[name] not in (0, 1) or name == "micro_batch"]
        return ", ".join([*sizes, f"recompute={row['recompute']}"])


def pilot(design: ReviewFacts) -> Pilot | None:
    """The pilot of a design; None where not even one layer a stage fits, or the design is as small."""
    small = _proposal(design)
    if small is None:
        return None
    facts = replace(design, proposal=small, comparison=None)
    lines = [_line(design, facts, name) for name in facts.terms if name in design.terms]
    untested = tuple(TITLES[name].lower() for name in design.terms if name not in facts.terms)
    (step,) = renamed([facts.step], _under)
    lines.sort(key=lambda line: -float(line.risk.value))
    step = step.titled("Expected step of the pilot")
    hours, dollars = _cost(design, facts, step)
    return Pilot(facts, tuple(lines), untested, step, hours, dollars)


def _proposal(design: ReviewFacts) -> Proposal | None:
    """The largest number of layers, up to the design's own a stage, that fits the pilot's chips."""
    p = design.proposal
    layouts, machine = _mesh(design)
    if machine.chips >= int(p.layouts.chips[0]):
        return None
    stages = int(layouts.pp[0] * layouts.chunks[0])
    design_stages = int(p.layouts.pp[0] * p.layouts.chunks[0])
    fewer = int(p.layouts.ep[0] // layouts.ep[0])
    count = min(_FEW, int(p.layouts.micro_batches(p.sequences)[0]))
    pp = int(layouts.pp[0])
    sequences = max(pp, count - count % pp) * int(layouts.dp[0] * layouts.micro_batch[0])
    most = -(-p.spec.layers // design_stages) * stages
    for layers in range(min(most, p.spec.layers), 0, -stages):
        spec = _shallow(p.spec, layers, fewer)
        found = replace(p, spec=spec, cluster=machine, layouts=layouts, sequences=sequences)
        if not feasible(spec, sequences, p.file.seq, layouts)[0]:
            continue
        if design.capacity is None or which_fit(held(spec, found.batch, layouts, p.software), machine)[0]:
            return found
    return None


def _mesh(design: ReviewFacts) -> tuple[Layout, clusters.Cluster]:
    """The pilot's plan and chips."""
    p = design.proposal
    row = p.layouts.row(0)
    tp, cp = int(row["tp"]), int(row["cp"])
    pp = 2 if int(row["pp"]) > 1 else 1
    group = tp * cp * pp
    wanted = int(constant("review.pilot_chips").value)
    chips = max(wanted - wanted % group, group)
    dp = chips // group
    ep = gcd(int(row["ep"]), max(dp * cp * tp // int(row["etp"]), 1))
    sizes = {"pp": pp, "dp": dp, "ep": ep, "shard": dp * cp, "chunks": int(row["chunks"]) if pp > 1 else 1}
    if pp == 1:
        sizes["schedule"] = p.layouts.schedule[0]  # without effect
    layouts = Layout.of(**{**row, **sizes})
    domain = p.cluster.node_size if chips % p.cluster.node_size == 0 else 0
    return layouts, clusters.cluster(chips, _device(p), network=p.cluster.network, node_size=domain)


def _device(p: Proposal) -> str:
    """The device as the file names it, which may be a path."""
    return p.file.cluster.chips.partition("x")[2] or p.cluster.device.name


def _shallow(spec: ModelSpec, layers: int, fewer: int) -> ModelSpec:
    """The first layers of the model, with the experts of as many ranks as the pilot has."""

    def ffn(block: AnyFfn) -> AnyFfn:
        if not isinstance(block, MoE) or fewer == 1:
            return block
        experts = max(block.experts // fewer, 1)
        return resized(block, experts=experts, top_k=min(block.top_k, experts))

    return with_ffns(spec, ffn, spec.pattern[:layers])


def _under(name: str) -> str:
    own = name.partition(".")[0] in _OWN or name == "review.chips"
    return f"pilot.{name}" if own else name


def _line(design: ReviewFacts, facts: ReviewFacts, name: str) -> Line:
    (expected,) = renamed([facts.terms[name]], _under)
    found = spread(facts, name)
    source = Source("80% interval", found.origin)
    low, high = (
        leaf(f"pilot.{name}.{end}_ratio", getattr(found, end), "1", "measured", source) for end in ("low", "high")
    )
    least = derive(f"pilot.{name}.low", "term*ratio", "s", term=expected, ratio=low).titled("80% interval, low")
    passes = derive(f"pilot.{name}.pass", "term*ratio", "s", term=expected, ratio=high).titled("Passes up to")
    stops = derive(f"pilot.{name}.stop", "term*ratio**2", "s", term=expected, ratio=high).titled("Stop above")
    inputs = {"ideal": design.ideal, "step": design.step, "term": design.terms[name], "ratio": high}
    text = "ideal/step - ideal/(step + term*max(ratio - 1, 0))"
    risk = derive(f"pilot.{name}.risk", text, "%", **inputs).titled("MFU points of the design at the high end")
    return Line(name, TITLES[name], expected, least, passes, stops, risk, found.origin)


def _cost(design: ReviewFacts, facts: ReviewFacts, step: Quantity) -> tuple[Quantity, Quantity | None]:
    """Chip-hours and dollars of the pilot, start-up included."""
    inputs = {"step": step, "steps": constant("review.pilot_steps"), "start": constant("review.pilot_start")}
    time = derive("pilot.time", "step*steps + start", "s", **inputs).titled("Time of the pilot")
    (chips,) = renamed([facts.chips], _under)
    hours = chip_hours(chips, time, "pilot")
    if design.price is None:
        return hours, None
    dollars = derive("pilot.cost", "hours*price", "USD", hours=hours, price=design.price)
    return hours, dollars.titled("Cost of the pilot")
