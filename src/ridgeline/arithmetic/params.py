"""Exact parameter counts of a `ModelSpec`, by part, each with its derivation; and the list of matmuls.

Every count is the walk over ``block.weights``: layers of the same kind are counted once and multiplied by
how often they are stored.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic.spec import Block, Layer, ModelSpec, Part, Weight
from ridgeline.core import formula as formulas
from ridgeline.core.quantity import Quantity, Source, derive, leaf

# The order in which parts are printed.
PARTS = tuple(Part)


@dataclass(frozen=True)
class Place:
    """A block at its place: ``stored`` physical copies in the model, ``used`` times per token, a short label."""

    label: str
    block: Block
    stored: int
    used: int
    mtp: bool = False


@dataclass(frozen=True)
class Matmul:
    """One weight as the matmul that tokens do with it: ``[m, k] x [k, n]``, ``copies`` experts active, ``uses`` layers.

    FLOPs per token, forward = 2*k*n*copies*uses.
    """

    place: str
    name: str
    part: Part
    k: int
    n: int
    copies: int
    uses: int

    @property
    def flops_per_token(self) -> int:
        """Forward FLOPs per token of this matmul over all its uses."""
        return 2 * self.k * self.n * self.copies * self.uses


@dataclass(frozen=True)
class Params:
    """``params.*`` quantities of one model. Multi-token prediction is trained but not in ``total``."""

    total: Quantity
    active: Quantity
    embedding: Quantity
    non_embedding: Quantity
    mtp: Quantity
    parts: dict[Part, Quantity]

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        return (self.total, self.active, self.non_embedding, self.mtp, *self.parts.values())


def places(spec: ModelSpec) -> list[Place]:
    """Every block of the model with how often it is stored and used."""
    found = [Place("outside", spec.embed, 1, 1)]
    for index, layer in enumerate(spec.kinds):
        uses = spec.uses(index)
        found += _layer_places(f"layer{index}", layer, layer.stored or uses, uses)
    for index, layer in enumerate(spec.mtp):
        found += [
            Place(p.label, p.block, p.stored, p.used, mtp=True) for p in _layer_places(f"mtp{index}", layer, 1, 1)
        ]
    if spec.mtp_extra is not None:
        found.append(Place("mtp", spec.mtp_extra, 1, 1, mtp=True))
    return [place for place in found if place.block.weights and place.used]


def _layer_places(label: str, layer: Layer, stored: int, used: int) -> list[Place]:
    named = [("mixer", layer.mixers), ("ffn", layer.ffns), ("norms", (layer.norms,))]
    return [
        Place(f"{label}.{what}{number or ''}", block, stored, used)
        for what, blocks in named
        for number, block in enumerate(blocks)
    ]


def size(expression: str, dims: dict[str, int]) -> int:
    """The integer value of a symbolic side or product over a block's dims."""
    value = formulas.parse(expression).evaluate(dims)
    assert isinstance(value, int), (expression, value)
    return value


def matmuls(spec: ModelSpec, *, mtp: bool = False) -> list[Matmul]:
    """The matmuls of one token through the model, in order; what every cost model walks.

    A tied embedding appears once, as the output projection. Tables that are only looked up do not appear.
    """
    return [
        _matmul(place, weight)
        for place in places(spec)
        if place.mtp == mtp
        for weight in place.block.weights
        if weight.matmul and weight.part is not Part.VISION
    ]


def _matmul(place: Place, weight: Weight) -> Matmul:
    dims = place.block.dims
    n, k = size(weight.shape[-1], dims), 1
    for side in weight.shape[:-1]:
        k *= size(side, dims)
    copies = size(weight.active or weight.copies, dims)
    if weight.name == "embed_tokens":  # stored [vocab, d_model], applied as its transpose
        k, n = n, k
    return Matmul(place.label, weight.name, weight.part, k, n, copies, place.used)


def counts(spec: ModelSpec) -> dict[Part, tuple[int, int]]:
    """Plain (stored, active) integers by part, without derivations; ``mtp`` on its own."""
    result = dict.fromkeys(PARTS, (0, 0))
    for place in places(spec):
        for weight in place.block.weights:
            part = Part.MTP if place.mtp else weight.part
            stored, active = result[part]
            result[part] = (
                stored + place.stored * size(weight.formula(), place.block.dims),
                active + place.stored * size(weight.formula(active=True), place.block.dims),
            )
    return result


class Leaves:
    """The dimensions of one model as leaves, each made once. ``vary`` replaces some by arrays of candidates."""

    def __init__(self, spec: ModelSpec, vary: Mapping[str, Quantity] | None = None) -> None:
        self.spec = spec
        self.source = Source(f"model {spec.name}", "its configuration")
        self._made = dict(vary or {})

    def get(self, name: str, value: int, unit: str = "1") -> Quantity:
        """The leaf of that name, such as ``model.layer0.ffn.d_ff``."""
        return self._made.setdefault(name, leaf(name, value, unit, "specified", self.source))

    def dim(self, place: Place, symbol: str) -> Quantity:
        """One dimension of a block."""
        name = f"model.{symbol}" if symbol in ("d_model", "vocab") else f"model.{place.label}.{symbol}"
        return self.get(name, place.block.dims[symbol])

    def times(self, place: Place, *, used: bool) -> Quantity:
        """How many layers of this kind are stored, or used by a token; one leaf where the two agree."""
        layer = place.label.partition(".")[0]
        if used and place.used != place.stored:
            return self.get(f"model.{layer}.uses", place.used)
        return self.get(f"model.{layer}.copies", place.stored)

    def over(self, name: str, text: str, place: Place, unit: str = "param") -> Quantity:
        """A formula over the dimensions of one block, e.g. ``2*heads*head_dim``."""
        symbols = formulas.parse(text).names
        if not symbols:  # a block of plain integers
            return leaf(name, size(text, {}), unit, "specified", self.source)
        return derive(name, text, unit, **{symbol: self.dim(place, symbol) for symbol in symbols})


def params(spec: ModelSpec, vary: Mapping[str, Quantity] | None = None) -> Params:
    """The counts as quantities: a sum of parts, each a sum over kinds of layer of a product of dimensions.

    ``vary`` maps leaf names (``model.d_model``, ``model.layer0.copies``, ``model.layer0.mixer.heads``) to
    arrays of candidates: a sweep goes through the same formulas as one model.
    """
    leaves = Leaves(spec, vary)
    parts = {part: weigh(leaves, f"params.{part}", _of_part(part)).titled(_label(part)) for part in PARTS}
    body: dict[Part, Quantity] = {
        part: q for part, q in parts.items() if part is Part.EMBEDDING or (part is not Part.MTP and np.any(q.value))
    }
    total = _sum("params.total", body.values()).titled("Parameters, total")
    idle = _idle_experts(leaves)
    active = derive("params.active", "total - idle", "param", total=total, idle=idle)
    tables = [q for part, q in body.items() if part in (Part.EMBEDDING, Part.HEAD)]
    embedding = _sum("params.vocabulary", tables).titled("Embedding and head")
    non_embedding = derive("params.non_embedding", "total - tables", "param", total=total, tables=embedding)
    return Params(
        total,
        active.titled("Parameters active per token"),
        parts[Part.EMBEDDING],
        non_embedding.titled("Parameters outside embedding and head"),
        parts[Part.MTP],
        body,
    )


Select = Callable[[Place, Weight], bool]


def weigh(leaves: Leaves, name: str, select: Select, *, active: bool = False, used: bool = False) -> Quantity:
    """The parameters of the selected weights, in ``param``: a sum over places of a product of dimensions.

    ``active`` counts the experts one token uses instead of all; ``used`` counts a shared layer once per use
    instead of once per stored copy.
    """
    return sum_over(leaves, name, lambda w: w.formula(active=active), select, used=used)


def sum_over(
    leaves: Leaves, name: str, text: Callable[[Weight], str], select: Select, *, used: bool = False
) -> Quantity:
    """The sum of ``text(weight)`` over the selected weights of every layer, in ``param``."""
    family, _, last = name.rpartition(".")
    terms: list[str] = []
    inputs: dict[str, Quantity] = {}
    for place in places(leaves.spec):
        formula = " + ".join(text(weight) for weight in place.block.weights if select(place, weight))
        if not formula:
            continue
        symbol = place.label.replace(".", "_")
        inputs[symbol] = leaves.over(f"{family}.{place.label}.{last}", formula, place)
        terms.append(_repeated(leaves, place, symbol, inputs, used=used))
    if not terms:
        return leaf(name, 0, "param", "specified", leaves.source)
    return derive(name, " + ".join(terms), "param", **inputs)


def _repeated(leaves: Leaves, place: Place, symbol: str, inputs: dict[str, Quantity], *, used: bool) -> str:
    """``n_layer0*layer0_ffn``, or the symbol alone where there is one."""
    times = leaves.times(place, used=used)
    if times.axis == "" and times.value == 1:
        return symbol
    copies = f"n_{symbol.partition('_')[0]}"
    inputs[copies] = times
    return f"{copies}*{symbol}"


def _of_part(part: Part) -> Select:
    if part is Part.MTP:
        return lambda place, weight: place.mtp
    return lambda place, weight: not place.mtp and weight.part is part


def _label(part: Part) -> str:
    return f"{part.value.replace('_', ' ').capitalize()} parameters"


def _sum(name: str, terms: Iterable[Quantity]) -> Quantity:
    inputs = {q.name.rpartition(".")[2].replace("-", "_"): q for q in terms}
    return derive(name, " + ".join(inputs), "param", **inputs)


def _idle_experts(leaves: Leaves) -> Quantity:
    """Stored weights that one token does not use: ``copies - active`` of every weight that is chosen from."""
    idle = sum_over(
        leaves,
        "params.idle",
        lambda w: f"({w.copies} - {w.active})*{w.per_copy()}",
        lambda place, weight: weight.active is not None and not place.mtp,
    ).named("params.idle_experts")
    return idle if idle.kind == "derived" else idle.titled("", note="dense: every weight is used")
