"""What a plan sends: every collective of a training step on one rank, by kind and group, with its count and bytes.

The step model (`work`) times the same volumes; `verify` compares these rows with a compiled program. Bytes are those
of `arithmetic.collectives`: gathered, before scattering, sent to all. Sources of the terms: column- and row-parallel
layers, vocabulary-parallel table, head and loss, Shoeybi et al. 2019 (arXiv:1909.08053); sequence parallelism,
Korthikanti et al. 2022 (arXiv:2205.05198); shards of parameters and gradients, Rajbhandari et al. 2020
(arXiv:1910.02054); tokens to experts, Lepikhin et al. 2020 (arXiv:2006.16668).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.collectives import Collective
from ridgeline.arithmetic.params import counts, places, size
from ridgeline.arithmetic.spec import ModelSpec, MoE, Part
from ridgeline.arithmetic.tensor_split import COPIED
from ridgeline.plan.steps.layout import RECOMPUTES, Layout
from ridgeline.plan.steps.workload import Exchange, Workload, workload

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Widths:
    """Bytes of an element: of activations, of gathered weights, of gradients, of a row of the loss."""

    stream: float = 2.0
    weight: float = 2.0
    gradient: float = 4.0
    row: float = 4.0


@dataclass(frozen=True)
class Sent:
    """A term of a step, an entry a plan: ``count`` collectives over ``group`` (`ranks.Groups`), ``bytes`` in all."""

    term: str
    kind: Collective
    group: str
    count: Array
    bytes: Array


def parameters(spec: ModelSpec) -> tuple[float, float, float]:
    """Parameters of the layers but experts, of experts, and of one table of the vocabulary."""
    found = counts(spec)
    experts = found[Part.EXPERTS][0]
    tables = found[Part.EMBEDDING][0] + found[Part.HEAD][0]
    every = sum(stored for part, (stored, _) in found.items() if part is not Part.VISION)
    return float(every - experts - tables), float(experts), float(spec.vocab * spec.d_model)


def copied(spec: ModelSpec) -> list[int]:
    """Sizes of the weights that every rank of tp holds whole: norms, routers, latent projections; one entry a use."""
    found = []
    for place in places(spec):
        for weight in place.block.weights:
            whole = weight.part in (Part.NORM, Part.ROUTER) or weight.name in COPIED
            if whole and not place.mtp:
                elements = int(np.prod([size(side, place.block.dims) for side in weight.shape]))
                found += [elements] * (size(weight.copies, place.block.dims) * place.stored)
    return found


def owned(spec: ModelSpec, layouts: Layout, most: Array) -> tuple[Array, Array]:
    """Elements on one rank before sharding over data parallelism: dense with the tables, and experts.

    ``most`` is the share of all layers on the fullest stage, which holds one table where there is a pipeline.
    """
    dense, experts, table = parameters(spec)
    whole = float(sum(copied(spec)))
    tables = np.where(layouts.pp > 1, 1, 1 if spec.tied else 2)
    own = ((dense - whole) * most + table * tables) / layouts.tp + whole * most
    return np.asarray(own), np.asarray(experts * most / (layouts.ep * layouts.etp))


def stream_elements(load: Workload, rows: Array) -> Array:
    """The residual stream of a micro-batch: what one tensor-parallel collective joins."""
    return rows * load.d_model


def routed_elements(item: Exchange, rows: Array, tp: Array) -> Array:
    """What one rank sends to experts in one direction: its rows, once for each chosen expert."""
    return rows / tp * item.routed


def expert_elements(item: Exchange, rows: Array, layouts: Layout) -> Array:
    """What the ranks of etp join: every row that came to their experts, as often as they were chosen; 0 without ep.

    Megatron-LM's dispatcher gathers the tokens over etp behind the all-to-all and scatters the sums before the one back
    (megatron/core/transformer/moe/token_dispatcher.py).
    """
    return np.where(layouts.ep > 1, layouts.etp * routed_elements(item, rows, layouts.tp.astype(float)), 0.0)


def ring_elements(item: Exchange, rows: Array, layouts: Layout) -> Array:
    """Keys and values of all ranks of cp, as one of them has seen them after a layer."""
    return layouts.cp * rows * item.kv / layouts.tp


def reductions(item: Exchange, layouts: Layout) -> Array:
    """Tensor-parallel reductions of a layer in one pass.

    Routed experts under ep need none over tp: each of its ranks sends its own rows to them (`expert_elements`).
    """
    return np.where(layouts.ep > 1, item.reductions - item.unsplit, item.reductions).astype(float)


def sent(spec: ModelSpec, batch: tuple[int, int], layouts: Layout, widths: Widths | None = None) -> list[Sent]:
    """Every collective of a step of plans without a pipeline; ``batch`` is (sequences a step, tokens a sequence)."""
    each = _Each(spec, batch, layouts, widths or Widths())
    rows = [*each.tensor(), *each.edges(), *each.experts(), *each.data()]
    return [row for row in rows if np.any(row.count > 0)]


class _Each:
    """The terms of one call, with what they share."""

    def __init__(self, spec: ModelSpec, batch: tuple[int, int], layouts: Layout, widths: Widths) -> None:
        self.spec, self.layouts, self.widths = spec, layouts, widths
        self.load = workload(spec, batch[1])
        self.micro = layouts.micro_batches(batch[0]).astype(float)
        self.rows = layouts.micro_batch * batch[1] / layouts.cp
        self.stream = stream_elements(self.load, self.rows) * widths.stream
        self.split = (layouts.sequence_parallel > 0) & (layouts.tp > 1)
        self.again = (layouts.recompute == RECOMPUTES.index("full")).astype(float)

    def term(self, term: str, kind: Collective, group: str, where: Any, count: Any, size_bytes: Any) -> Sent:
        """A row that is zero where the condition does not hold; ``size_bytes`` of one collective."""
        number = np.where(where, count, 0.0) * np.ones(len(self.layouts))
        return Sent(term, kind, group, number, number * size_bytes)

    def tensor(self) -> Iterator[Sent]:
        """Into and out of column- and row-parallel layers: all-reduce, or its two halves along the sequence."""
        joined = sum((reductions(item, self.layouts) * item.uses for item in self.load.exchanges), np.zeros(1))
        count = joined * (2 + self.again) * self.micro
        whole = (self.layouts.tp > 1) & ~self.split
        yield self.term("layer_stream", "all_reduce", "tp", whole, count, self.stream)
        yield self.term("layer_stream", "all_gather", "tp", self.split, count, self.stream)
        yield self.term("layer_stream", "reduce_scatter", "tp", self.split, count, self.stream)
        sizes = copied(self.spec)
        mean = sum(sizes) / max(len(sizes), 1) * self.widths.gradient
        yield self.term("copied_gradients", "all_reduce", "tp", self.split, len(sizes) * self.micro, mean)

    def edges(self) -> Iterator[Sent]:
        """The table, the head and the loss over a vocabulary that tp splits."""
        whole = (self.layouts.tp > 1) & ~self.split
        for term in ("embedding_stream", "head_stream"):
            yield self.term(term, "all_reduce", "tp", whole, self.micro, self.stream)
            yield self.term(term, "all_gather", "tp", self.split, self.micro, self.stream)
            yield self.term(term, "reduce_scatter", "tp", self.split, self.micro, self.stream)
        row = self.rows * self.widths.row
        yield self.term("loss_rows", "all_reduce", "tp", self.layouts.tp > 1, 3 * self.micro, row)

    def experts(self) -> Iterator[Sent]:
        """Tokens to their experts and back, forward and backward."""
        for item in self.load.exchanges:
            size_bytes = routed_elements(item, self.rows, self.layouts.tp.astype(float)) * self.widths.stream
            count = 2 * item.uses * (2 + self.again) * self.micro * (item.routed > 0)
            yield self.term("expert_tokens", "all_to_all", "ep", self.layouts.ep > 1, count, size_bytes)
            split = (self.layouts.ep > 1) & (self.layouts.etp > 1)
            joined = expert_elements(item, self.rows, self.layouts) * self.widths.stream
            yield self.term("expert_split", "all_gather", "etp", split, count / 2, joined)
            yield self.term("expert_split", "reduce_scatter", "etp", split, count / 2, joined)

    def data(self) -> Iterator[Sent]:
        """Gradients reduced, parameters gathered: once a step, or by layer and micro-batch where fully sharded."""
        layouts = self.layouts
        dense, experts = owned(self.spec, layouts, np.ones(len(layouts)))
        mixtures = sum(any(isinstance(ffn, MoE) for ffn in self.spec.kinds[index].ffns) for index in self.spec.pattern)
        tables = 1 if self.spec.tied else 2
        copies = np.maximum(layouts.tp * layouts.shard // (layouts.ep * layouts.etp), 1)
        yield from self._copies("", "shard", layouts.shard, dense, self.spec.layers + tables)
        if mixtures:
            yield from self._copies("expert_", "expert_data", copies, experts, mixtures)
        apart = (layouts.zero > 0) & (layouts.shard < layouts.dp * layouts.cp)
        size_bytes = (dense / layouts.shard + experts / copies) * self.widths.gradient
        yield self.term("replica_gradients", "all_reduce", "replica", apart, 1, size_bytes)

    def _copies(self, prefix: str, group: str, ranks: Any, own: Array, units: int) -> Iterator[Sent]:
        zero, many = self.layouts.zero, ranks > 1
        weight, gradient = own * self.widths.weight, own * self.widths.gradient
        sharded, halves = many & (zero >= 3), many & ((zero == 1) | (zero == 2))
        once, term = f"{prefix}gradients", f"{prefix}shards"
        yield self.term(once, "all_reduce", group, many & (zero == 0), 1, gradient)
        yield self.term(once, "reduce_scatter", group, halves, 1, gradient)
        yield self.term(f"{prefix}parameters", "all_gather", group, halves, 1, weight)
        yield self.term(term, "all_gather", group, sharded, 2 * units * self.micro, weight / units)
        yield self.term(term, "reduce_scatter", group, sharded, units * self.micro, gradient / units)
