"""The operations of `work` on the chips of `machine`, measured once on nodes.

Dense matmuls and element-wise kernels are a table over the tokens of a group, experts and their exchange one over the
tokens of a stage, attention one a kind of layer over sequences and context.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic.decode import (
    decode_attention,
    expert_matmuls,
    latent_attention,
    mixed_attention,
    prompt_attention,
)
from ridgeline.arithmetic.fabric import combine_bytes, dispatch_bytes, expert_exchange
from ridgeline.arithmetic.serving_work import experts_hit
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.surface_terms import ACT, number
from ridgeline.core import catalog
from ridgeline.core.surfaces import Floats
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.machine import Machine
from ridgeline.serve.steps.tables import BATCHES, CONTEXTS, TOKENS, Span, Table, zero
from ridgeline.serve.steps.work import Core, Matmul, Mixture, Work

_STATE_BYTES = 4  # recurrent states are kept in fp32, as `ridgeline.arithmetic.kv` counts them
_ELEMENTS = {"fp8_ds_mla": "fp8", "mxfp4": "fp4"}  # formats of caches by their elements, without scales


@dataclass(frozen=True)
class Load:
    """What attention works on in one group: sequences that decode with their context, and new and cached tokens of
    ``prompts`` prompts; None where there is none."""

    sequences: Floats | None = None
    context: Floats | None = None
    prompts: Floats | None = None
    new: Floats | None = None
    past: Floats | None = None


@dataclass(frozen=True)
class CoreTables:
    """One kind of attention layer: seconds of all its layers in decode and for whole prompts."""

    core: Core
    decode: Table
    prompt: Table

    def prompted(self, prompts: Floats, new: Floats, past: Floats) -> Span:
        """Seconds for ``new`` tokens after ``past`` of each prompt.

        The whole prompt's time in proportion to the pairs; at least that of the new tokens alone, and that of reading
        the cache.
        """
        whole = new + past
        share = pairs(new, past, self.core) / pairs(whole, np.zeros(whole.shape), self.core)
        found = (self.prompt(prompts, whole) * share).larger(self.prompt(prompts, new))
        return found.larger(self.decode(prompts, whole))


@dataclass(frozen=True)
class Tables:
    """Tables of one deployment; None where it has no such operation.

    ``launches_s`` are the element-wise kernels of a step, ``stream_s`` the bytes of each of its tokens through them.
    """

    laid: Deployment
    work: Work
    matmuls: Table
    launches_s: float
    stream_s: float
    rebuild: Table | None
    head: Table
    cores: tuple[CoreTables, ...]
    states: Table | None
    scans: Table | None
    experts: Table | None
    tensor_parallel: Table | None
    exchange: Table | None
    hop: Table | None

    @classmethod
    def of(cls, laid: Deployment, load: Work, chips: Machine) -> "Tables":
        """Ask every surface once."""
        past = tuple(item for item in load.matmuls if item.past)
        wide = ACT * load.d_model
        launch, scan = (number(catalog.constant(f"steps.{name}")) for name in ("vector.launch", "scan.chunk"))

        def over_tokens(measure: Callable[[Floats], Span]) -> Table:
            return Table.of((TOKENS,), measure)

        def hop(rows: Floats) -> Span:
            return chips.collective("point_to_point", rows * wide / laid.tp, 2)

        return cls(
            laid,
            load,
            over_tokens(lambda rows: _matmuls(chips, load.matmuls, rows)),
            load.kernels * launch,
            float(chips.stream(np.array(load.vector_bytes))),
            over_tokens(lambda rows: _matmuls(chips, past, rows)) if past else None,
            over_tokens(lambda rows: _head(chips, load.head, rows)),
            tuple(_core(laid, chips, core) for core in load.cores),
            over_tokens(lambda rows: _states(chips, load, rows, 1.0)) if load.states else None,
            over_tokens(lambda rows: _states(chips, load, rows, scan)) if load.states else None,
            over_tokens(lambda tokens: _experts(laid, load, tokens)) if load.mixtures else None,
            over_tokens(lambda rows: chips.all_reduce(rows * wide, laid.tp) * float(load.reductions))
            if laid.tp > 1
            else None,
            over_tokens(lambda tokens: _exchange(laid, load, chips, tokens)) if _exchanges(laid, load) else None,
            over_tokens(hop) if laid.pp > 1 else None,
        )

    def dense(self, rows: Floats) -> Span:
        """Matmuls but experts, and element-wise kernels: the latter grow with every token."""
        return self.matmuls(rows) + Span.exact(self.launches_s + self.stream_s * rows)

    def decoded(self, sequences: Floats, context: Floats) -> Span:
        """Attention and states of sequences that decode."""
        total = self.states(sequences) if self.states else zero(sequences.shape)
        for item in self.cores:
            total = total + item.decode(sequences, context)
        return total

    def prompted(self, prompts: Floats, new: Floats, past: Floats) -> Span:
        """Attention and states of new tokens of prompts."""
        total = self.scans(prompts * new) if self.scans else zero(new.shape)
        for item in self.cores:
            total = total + item.prompted(prompts, new, past)
        return total

    def mixed(self, load: Load) -> Span:
        """Attention of a step with a prompt and with sequences that decode, layer by layer in one call."""
        assert load.sequences is not None, "a mixed step decodes"
        assert load.context is not None, "a mixed step decodes"
        assert load.prompts is not None, "a mixed step has a prompt"
        assert load.new is not None, "a mixed step has a prompt"
        assert load.past is not None, "a mixed step has a prompt"
        total = zero(load.sequences.shape)
        if self.states and self.scans:
            total = self.scans(load.prompts * load.new) + self.states(load.sequences)
        for item in self.cores:
            prompt = item.prompted(load.prompts, load.new, load.past)
            decode = item.decode(load.sequences, load.context)
            group = item.core.heads / item.core.kv_heads
            found = Span.of(mixed_attention(prompt.seconds, decode.seconds, load.sequences, group, self.laid.device))
            apart = prompt + decode
            low, high = (end / both for end, both in ((apart.low, apart.seconds), (apart.high, apart.seconds)))
            total = total + Span(found.seconds, found.low * low, found.high * high)
        return total

    def rebuilt(self, load: Load) -> Span:
        """Keys and values rebuilt from the cached latents of prompts."""
        if self.rebuild is None or load.prompts is None or load.past is None:
            return zero((1,))
        rows = load.prompts * load.past
        found = self.rebuild(np.maximum(rows, 1.0))
        return found * np.where(rows >= 1, 1.0, 0.0)

    def counted(self, rows: Floats, everywhere: Floats, sampled: Floats, load: Load) -> tuple[Floats, Floats]:
        """FLOPs, and bytes that the memory buses carry, of one pass through all layers on all chips."""
        laid, weights = self.laid, number(dtype_bytes(self.laid.weights))
        flops, moved = np.zeros(rows.shape), np.zeros(rows.shape)
        groups = laid.dp_attention
        for item in self.work.matmuls:
            share = 1 if item.copied else laid.tp
            flops = flops + 2 * rows * item.k * item.n * item.uses * share * groups
            moved = moved + item.k * item.n * item.uses * laid.stage * (ACT if item.wide else weights)
        head = self.work.head
        flops = flops + 2 * sampled * head.k * head.n * laid.stage
        moved = moved + head.k * head.n * laid.stage * ACT
        for mixture in self.work.mixtures:
            matrix = mixture.sides * mixture.width * mixture.inner * mixture.uses
            flops = flops + 2 * everywhere * mixture.top_k * matrix
            moved = moved + hit(mixture, everywhere) * matrix * weights
        for core in (item.core for item in self.cores):
            pair_flops, pair_bytes = _attended(core, load, number(dtype_bytes(elements(laid.kv))))
            flops, moved = flops + pair_flops * laid.stage, moved + pair_bytes * laid.stage
        for state in self.work.states:
            flops = flops + state.flops * state.uses * rows * laid.stage
            moved = moved + 2 * _STATE_BYTES * state.elements * state.uses * laid.stage * sampled
        return flops, moved


def elements(kv: str) -> str:
    """The element type of a cache format, its scales aside."""
    return _ELEMENTS.get(kv, kv)


def hit(mixture: Mixture, tokens: Floats) -> Floats:
    """Distinct experts of one layer that a step's tokens reach."""
    ones = np.ones(tokens.shape)
    return experts_hit(mixture.experts * ones, mixture.top_k * ones, tokens)


def seen(core: Core, context: Floats) -> Floats:
    """Keys that one query after ``context`` tokens reads."""
    if core.compress:
        entries = context / core.compress
        past = np.minimum(entries, core.selected) if core.selected else entries
        return np.minimum(context, core.window) + past
    return np.minimum(context, core.window) if core.window else context


def pairs(new: Floats, past: Floats, core: Core) -> Floats:
    """Pairs of ``new`` queries after ``past`` tokens with the keys they see."""
    most = np.inf if not core.window or core.compress else float(core.window)
    if core.compress:  # a mean of what the first and the last query read
        return new * (seen(core, past + 1) + seen(core, past + new)) / 2
    return _triangle(past + new, most) - _triangle(past, most)


def _triangle(queries: Floats, most: float) -> Floats:
    inner = np.minimum(queries, most)
    rest = np.where(queries > most, queries - inner, 0.0)
    return np.asarray(inner * (inner + 1) / 2 + (rest * most if np.isfinite(most) else 0.0))


def _attended(core: Core, load: Load, kv_bytes: float) -> tuple[Floats, Floats]:
    """FLOPs and bytes of one kind of attention layer on one chip."""
    width = core.rank + core.rope if core.latent else 2 * core.kv_heads * core.width
    flops = moved = np.zeros(1)
    if load.sequences is not None and load.context is not None:
        each = 2 * core.rank + core.rope if core.latent else 2 * core.width
        read = seen(core, load.context)
        flops = flops + 2 * core.heads * each * load.sequences * read * core.uses
        index = core.index * load.context / max(core.compress, 1)
        moved = moved + load.sequences * (width * read * kv_bytes + index) * core.uses
    if load.prompts is not None and load.new is not None and load.past is not None:
        each = core.score + core.value if core.latent else 2 * core.width
        flops = flops + 2 * core.heads * each * load.prompts * pairs(load.new, load.past, core) * core.uses
        moved = moved + load.prompts * width * (load.new + load.past) * kv_bytes * core.uses
    return flops, moved


def _matmuls(chips: Machine, items: tuple[Matmul, ...], rows: Floats) -> Span:
    total = zero(rows.shape)
    for wide in (False, True):
        some = [item for item in items if item.wide is wide]
        if not some:
            continue
        n, k, uses = (np.array([getattr(item, name) for item in some])[:, None] for name in ("n", "k", "uses"))
        found = chips.matmul(*np.broadcast_arrays(rows[None, :], n, k), wide=wide)
        total = total + Span(*((item * uses).sum(axis=0) for item in found.ends))
    return total


def _head(chips: Machine, head: Matmul, rows: Floats) -> Span:
    launch, each = (number(catalog.constant(f"steps.sampler.{name}")) for name in ("launch", "sequence"))
    matmul = chips.matmul(rows, np.full(rows.shape, head.n), np.full(rows.shape, head.k), wide=True)
    return matmul + Span.exact(launch + each * rows)


def _core(laid: Deployment, chips: Machine, core: Core) -> CoreTables:
    def decode(batch: Floats, context: Floats) -> Span:
        read = seen(core, context)
        if core.latent:
            found = latent_attention(laid.device, elements(laid.kv)).seconds(
                batch, core.heads, read, core.rank, core.rope
            )
        else:
            window = core.window if not core.compress else 0
            length = context if not core.compress else np.maximum(read, 1.0)
            surface = decode_attention(laid.device, elements(laid.kv))
            found = surface.seconds(batch, core.heads, core.kv_heads, length, core.width, window)
        index = chips.stream(batch * context / max(core.compress, 1) * core.index)
        return (Span.of(found) + Span.exact(index)) * float(core.uses)

    def prompt(batch: Floats, seq: Floats) -> Span:
        if core.latent:
            surface = latent_attention(laid.device, elements(laid.kv))
            found = Span.of(surface.prompt_seconds(batch, core.heads, seq, core.score, core.value))
            full = seq * (seq + 1) / 2
            return found * (pairs(seq, np.zeros(seq.shape), core) / full) * float(core.uses)
        window = np.maximum(seen(core, seq), 1.0)
        own = prompt_attention(laid.device)
        return Span.of(own.seconds(batch, core.heads, core.kv_heads, seq, core.width, window=window)) * float(core.uses)

    nodes = (BATCHES, CONTEXTS)
    return CoreTables(core, Table.of(nodes, decode), Table.of(nodes, prompt))


def _states(chips: Machine, load: Work, rows: Floats, chunk: float) -> Span:
    """The state read and written once for ``chunk`` tokens."""
    launch = number(catalog.constant("steps.vector.launch"))
    peak = chips.wide.surface.reference.peak_flops_s
    total = np.zeros(rows.shape)
    for state in load.states:
        moved = chips.stream(2 * _STATE_BYTES * state.elements * rows / chunk)
        total = total + state.uses * (launch + moved + state.flops * rows / peak)
    return Span.exact(total)


def _experts(laid: Deployment, load: Work, tokens: Floats) -> Span:
    surface, total = expert_matmuls(laid.device, laid.weights), zero(tokens.shape)
    parts = (laid.stage / laid.ep, laid.ep)
    for item in load.mixtures:
        found = surface.seconds(tokens, (item.width, item.inner), item.experts, item.top_k, parts, item.sides)
        total = total + Span.of(found) * float(item.uses)
    return total


def _exchanges(laid: Deployment, load: Work) -> bool:
    return laid.dp_attention > 1 and bool(load.mixtures)


def _exchange(laid: Deployment, load: Work, chips: Machine, tokens: Floats) -> Span:
    """Tokens of all groups to the experts and back: gathered and reduced, or each to its experts if that is faster."""
    total = zero(tokens.shape)
    own = np.maximum(tokens / laid.stage, 1.0)
    for item in load.mixtures:
        stream = tokens * item.width * ACT
        found = chips.collective("all_gather", stream, laid.stage) + chips.collective(
            "reduce_scatter", stream, laid.stage
        )
        if laid.ep == laid.stage:
            there = dispatch_bytes(own, item.top_k, item.width)
            back = combine_bytes(own, item.top_k, item.width)
            if laid.stage <= chips.domain:
                sent = chips.collective("all_to_all", there, laid.ep) + chips.collective("all_to_all", back, laid.ep)
            else:
                sent = _published(own, item, laid.ep)
            less = sent.seconds < found.seconds
            found = Span(*(np.where(less, a, b) for a, b in zip(sent.ends, found.ends, strict=True)))
        total = total + found * float(item.uses)
    return total


def _published(tokens: Floats, item: Mixture, group: int) -> Span:
    there = expert_exchange("dispatch", tokens, item.top_k, item.width, group)
    return Span.of(there) + Span.of(expert_exchange("combine", tokens, item.top_k, item.width, group))
