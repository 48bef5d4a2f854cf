"""A run that somebody measured, against a proposal: which dimensions are alike, and what its MFU promises here.

comparable.json::

    {"name": "Llama 3 405B on 8,192 H100", "source": "arXiv:2407.21783, table 4",
     "model": {"config": "config.json"}, "cluster": {"chips": "8192xH100"}, "plan": {"tp": 8, "pp": 16},
     "seq": 8192, "sequences": 2048, "mfu": "43%", "convention": "6n"}

``tokens_per_second_per_chip`` may stand for ``mfu``. Every other key is one of ``review.toml``.

Three readings of what it promises, E being its MFU in the convention of the review:

* ``comparable.corrected`` = E - (padding of ours - padding of theirs), in points of peak: the lower end of geometry.
* ``comparable.proportional`` = E*(1 + x of theirs)/(1 + x of ours), x the padded work over the useful: its upper end.
* ``comparable.modelled`` = E*(MFU of the step model for ours)/(that for theirs): plan, links and shapes together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.arithmetic import conventions
from ridgeline.arithmetic.geometry import GeometryAudit, Padded
from ridgeline.arithmetic.spec import MLP, Attention, ModelSpec, MoE
from ridgeline.core import parse
from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, located
from ridgeline.core.quantity import Quantity, derive, given, renamed
from ridgeline.core.specs import read_json
from ridgeline.plan.prelaunch.claim import share
from ridgeline.plan.prelaunch.review import propose
from ridgeline.plan.prelaunch.review_facts import ReviewFacts

_OWN = ("name", "source", "mfu", "convention", "tokens_per_second_per_chip")


@dataclass(frozen=True)
class Row:
    """One thing that a step time depends on, here and there. ``alike`` False: the runs differ in it."""

    what: str
    ours: str
    theirs: str
    alike: bool
    points: Quantity | None = None


@dataclass(frozen=True)
class Comparison:
    """A measured run against a proposal. ``measured`` is its MFU (percent) in the review's convention."""

    name: str
    source: str
    theirs: ReviewFacts
    measured: Quantity
    rows: tuple[Row, ...]
    corrected: Quantity | None
    proportional: Quantity | None
    modelled: Quantity
    file: InputFile | None = None

    @property
    def differing(self) -> tuple[Row, ...]:
        """What the runs differ in."""
        return tuple(row for row in self.rows if not row.alike)

    @property
    def expectation(self) -> Quantity:
        """What the run promises: corrected for geometry, or by the step model where no tile is known."""
        return self.modelled if self.corrected is None else self.corrected


def read_comparable(path: str | Path, ours: ReviewFacts) -> Comparison:
    """The comparison with the run of a ``comparable.json``. Raises `InputError` for what is missing or unknown."""
    file = Path(path)
    data = read_json(file, what="comparable run")
    if not isinstance(data, dict):
        raise InputError.expected("an object with a model, a cluster, a plan and an MFU", data, where=str(file))
    found = compare(data, ours, file.parent, str(file))
    return Comparison(**{**vars(found), "file": InputFile.of(file)})


def compare(data: Mapping[str, Any], ours: ReviewFacts, folder: Path, where: str = "the comparable") -> Comparison:
    """The comparison with a run given as a mapping; paths are relative to ``folder``."""
    own = {key: data[key] for key in _OWN if key in data}
    with located(where):
        theirs = ReviewFacts(propose({key: data[key] for key in data if key not in _OWN}, folder, "$"))
        measured = _in_convention(own, theirs, ours.convention.name)
    mine = ours.geometry
    other = ours.geometry_of(theirs.spec, theirs.batch, theirs.axis("tp"), theirs.axis("etp"))
    other = None if other is None else _under(other)
    corrected, proportional = _corrected(measured, mine, other)
    (there,) = renamed([theirs.mfu], _theirs)
    modelled = derive(
        "comparable.modelled", "measured*ours/theirs", "%", measured=measured, ours=ours.mfu, theirs=there
    )
    return Comparison(
        str(own.get("name", theirs.proposal.name)),
        str(own.get("source", "")),
        theirs,
        measured,
        tuple(_rows(ours, theirs, mine, other)),
        corrected,
        proportional,
        modelled.titled("Its MFU, moved by the step model"),
    )


_SHARED = ("device.", "dtypes.", "review.head_tile", "review.vocab_tile", "comparable.")
_TILES = ("geometry.tile", "geometry.head_tile", "geometry.vocab_tile")


def _theirs(name: str) -> str:
    """Names of the other run's numbers; a device's, a constant's and a tile's stay what they are."""
    return name if name.startswith(_SHARED) or name in _TILES else f"comparable.{name}"


def _under(found: GeometryAudit) -> GeometryAudit:
    """The audit with the other run's names, what its rows share still shared."""
    flat = [found.tax, *(value for row in found.dimensions for value in vars(row).values() if value is not row.what)]
    tax, *rest = renamed(flat, _theirs)
    each = len(rest) // len(found.dimensions)
    parts = [rest[place : place + each] for place in range(0, len(rest), each)]
    rows = tuple(Padded(row.what, *values) for row, values in zip(found.dimensions, parts, strict=True))
    return GeometryAudit(rows, tax, None, None)


def _in_convention(own: Mapping[str, Any], theirs: ReviewFacts, convention: str) -> Quantity:
    """Its MFU as the review counts it."""
    stated = conventions.find(str(own.get("convention", "6n")))
    if ("mfu" in own) == ("tokens_per_second_per_chip" in own):
        got = "both" if "mfu" in own else None
        raise InputError.expected("either mfu or tokens_per_second_per_chip", got, where="$.mfu")
    if "mfu" in own:
        found = given("comparable.mfu", 100 * share(own["mfu"]), "%", "mfu of the comparable run")
        if stated.name != convention:
            found = conventions.convert(found, stated.name, convention, theirs.spec, theirs.batch)
            (found,) = renamed([found], _theirs)
        return found.titled(f"MFU of the comparable run, {conventions.find(convention).title}")
    rate = parse.positive(own["tokens_per_second_per_chip"], where="$.tokens_per_second_per_chip", what="a rate")
    speed = given("comparable.tokens_rate", float(rate), "token/s/chip", "tokens_per_second_per_chip")
    each = conventions.evaluate(conventions.find(convention), theirs.spec, theirs.batch).per_token
    (each,) = renamed([each], _theirs)
    found = derive("comparable.mfu", "rate*flops/peak", "%", rate=speed, flops=each, peak=theirs.peak)
    if float(found.value) > 100:
        raise InputError.expected("a rate below the peak", rate, where="$.tokens_per_second_per_chip")
    return found.titled("MFU of the comparable run")


def _corrected(
    measured: Quantity, ours: GeometryAudit | None, theirs: GeometryAudit | None
) -> tuple[Quantity | None, Quantity | None]:
    """The two ends of the correction for geometry."""
    if ours is None or theirs is None:
        return None, None
    inputs = {"measured": measured, "ours": ours.tax, "theirs": theirs.tax}
    low = derive("comparable.corrected", "measured - (ours - theirs)", "%", **inputs)
    symbols, sums = {"measured": measured}, {}
    for side, found in (("ours", ours), ("theirs", theirs)):
        terms = []
        for number, row in enumerate(found.dimensions):
            symbols |= {f"s_{side}_{number}": row.share, f"e_{side}_{number}": row.efficiency}
            terms.append(f"s_{side}_{number}*(1/e_{side}_{number} - 1)")
        sums[side] = " + ".join(terms)
    text = f"measured*(1 + {sums['theirs']})/(1 + {sums['ours']})"
    high = derive("comparable.proportional", text, "%", **symbols)
    note = "padded work as fast as the mean of the step: the upper end"
    return low.titled("Its MFU, corrected for geometry"), high.titled("The same, proportional", note)


def _rows(
    ours: ReviewFacts, theirs: ReviewFacts, mine: GeometryAudit | None, other: GeometryAudit | None
) -> Iterator[Row]:
    here, there = _described(ours), _described(theirs)
    for what, value in here.items():
        same = there.get(what, "none")
        yield Row(what, value, same, value == same)
    for item in mine.dimensions if mine else ():
        alike = other.of(item.what) if other else None
        if alike is None:
            continue
        inputs = {"ours": item.points, "theirs": alike.points}
        points = derive(f"comparable.{item.what}.points", "ours - theirs", "%", **inputs)
        points = points.titled(f"Padding of {item.what} beyond the comparable's, points of peak")
        fits = abs(float(points.value)) < _ALIKE
        yield Row(f"{item.what} on one chip", _size(item), _size(alike), fits, points)


def _size(item: Padded) -> str:
    return f"{float(item.size.value):,.6g} in tiles of {float(item.tile.value):g}"


_ALIKE = 0.05  # points of peak: what a first decimal shows


def _described(facts: ReviewFacts) -> dict[str, str]:
    """What a step time depends on, in words."""
    plan, spec, seq = facts.plan, facts.spec, facts.proposal.file.seq
    tp, cp, pp = (facts.axis(name) for name in ("tp", "cp", "pp"))
    found = {
        "chip": facts.cluster.device.name,
        "data type": facts.proposal.software.dtype,
        "chips": f"{int(facts.chips.value):,}",
        "scale-up domain": f"{facts.cluster.node_size:,} chips",
        "network": facts.cluster.network,
        "parallel plan": ", ".join(f"{name}={plan[name]}" for name in ("tp", "pp", "dp", "cp", "ep")),
        "recomputation": str(plan["recompute"]),
        "sequence": f"{seq:,}",
        "tokens a step and chip": f"{float(facts.batch.tokens.value) / float(facts.chips.value):,.0f}",
        "rows of a micro-batch": f"{facts.axis('micro_batch') * seq // cp:,}",
        "layers a stage": f"{spec.layers / pp:,.4g}",
        "d_model": f"{spec.d_model:,}",
    }
    return found | _blocks(spec, tp, facts.axis("ep"))


def _blocks(spec: ModelSpec, tp: int, ep: int) -> dict[str, str]:
    """Widths of the blocks as one chip holds them."""
    blocks = [block for kind in spec.kinds for block in (*kind.mixers, *kind.ffns)]
    found: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Attention):
            found["heads on one chip"] = f"{block.heads / tp:g} of {block.head_dim}"
            found["key-value heads on one chip"] = f"{max(block.kv_heads / tp, 1):g}"
        elif isinstance(block, MLP):
            found["d_ff over d_model"] = f"{block.d_ff / spec.d_model:.3g}"
        elif isinstance(block, MoE):
            found["experts on one rank"] = f"{block.experts / ep:g} of {block.expert_ff}"
    return found
