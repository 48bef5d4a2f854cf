"""What one rank computes: the matmuls of every kind of layer with their local sides, attention, and bytes moved.

A weight ``[k, n]`` is split by columns over ``tp`` where it leaves the residual stream (queries, keys, values, gate,
up), by rows where it returns to it (output, down), and copied where it is small (router, latent projections).
Neighbours that read the same input run as one matmul: queries with keys and values, gate with up. Forward is
``[m, k] x [k, n]``, the gradient of the input ``[m, n] x [n, k]``, that of the weight ``[k, m] x [m, n]``.

Memory-bound work is counted in bytes per token, forward and backward: what a kernel reads and writes when
element-wise neighbours are fused (norm; residual with dropout; activation; rotary). Sources: Korthikanti et al. 2022
(arXiv:2205.05198) for the tensors, Dao et al. 2022 (arXiv:2205.14135) for attention without its scores in memory.
"""

from dataclasses import dataclass
from functools import lru_cache

from ridgeline.arithmetic.pairs import PAIRS, Mask, indexed_by, seen_by
from ridgeline.arithmetic.params import size
from ridgeline.arithmetic.spec import (
    MLA,
    MLP,
    AnyFfn,
    AnyMixer,
    Attention,
    Block,
    CompressedAttention,
    ModelSpec,
    MoE,
    Part,
    Weight,
)
from ridgeline.arithmetic.tensor_split import split_of
from ridgeline.core import formula as formulas


@dataclass(frozen=True)
class Matmul:
    """One matmul of a layer: ``[tokens, k] x [k, n]``, ``uses`` times in the model.

    ``split`` is ``column``, ``row``, ``copied`` or ``expert``: how ``tp`` (``etp`` for experts) divides it.
    ``experts`` of which a token uses ``top_k`` (1 and 1 for dense weights); ``out`` marks an expert's return matmul.
    """

    name: str
    k: int
    n: int
    split: str
    uses: int
    experts: int = 1
    top_k: int = 1
    out: bool = False


@dataclass(frozen=True)
class Core:
    """The core of one attention layer, ``uses`` times: ``share`` of a causal triangle's pairs are computed.

    ``head_dim`` is the mean width of scores and values; ``pairs`` of one sequence, ``indexed`` what an indexer scores
    in multiplications beside them.
    """

    heads: int
    kv_heads: int
    head_dim: int
    share: float
    causal: bool
    indexed_flops: float
    uses: int


@dataclass(frozen=True)
class Traffic:
    """Bytes per token that one layer moves, ``uses`` times: ``wide`` as the residual stream, ``split`` over tp."""

    wide_forward: float
    wide_backward: float
    split_forward: float
    split_backward: float
    uses: int


@dataclass(frozen=True)
class Exchange:
    """What layers send, ``uses`` times: ``reductions`` over tp a forward pass, ``routed`` elements a token sends to
    its ``top_k`` experts, ``kv`` elements it passes round the context-parallel ring, ``kernels`` launched. ``unsplit``
    of the reductions are of routed experts alone, which need none where tp does not split them."""

    reductions: int
    routed: int
    top_k: int
    kv: int
    kernels: int
    uses: int
    unsplit: int = 0


@dataclass(frozen=True)
class Workload:
    """Everything of one model at one sequence length, before it is divided over ranks. ``mixer_flops`` per token."""

    matmuls: tuple[Matmul, ...]
    head: tuple[Matmul, ...]
    cores: tuple[Core, ...]
    traffic: tuple[Traffic, ...]
    exchanges: tuple[Exchange, ...]
    mixer_flops: float
    d_model: int
    vocab: int
    layers: int
    predicted: int  # multi-token-prediction modules: their layer and head run beside the last stage


@lru_cache(maxsize=256)
def _cached(key: str, seq: int, dropout: bool) -> Workload:
    return _build(ModelSpec.model_validate_json(key), seq, dropout=dropout)


def workload(spec: ModelSpec, seq: int, *, dropout: bool = False) -> Workload:
    """The work of a model on sequences of ``seq`` tokens. Cached by content."""
    return _cached(spec.model_dump_json(), seq, dropout)


def _build(spec: ModelSpec, seq: int, *, dropout: bool) -> Workload:
    kinds = [(kind, spec.uses(index)) for index, kind in enumerate(spec.kinds)]
    kinds += [(kind, 1) for kind in spec.mtp]
    matmuls, cores, traffic, exchanges = [], [], [], []
    mixer_flops = 0.0
    for kind, uses in kinds:
        if not uses:
            continue
        for block in kind.blocks:
            matmuls += _matmuls(block, uses)
            mixer_flops += uses * float(block.dims.get("core_flops", 0))
        cores += [_core(mixer, seq, uses) for mixer in kind.mixers if isinstance(mixer, _ATTENDS)]
        traffic.append(_traffic(kind.mixers, kind.ffns, kind.norms, uses, dropout=dropout))
        exchanges.append(_exchange(kind.mixers, kind.ffns, uses))
    head = (Matmul("head", spec.d_model, spec.vocab, "column", 1 + len(spec.mtp)),)
    return Workload(
        tuple(matmuls),
        head,
        tuple(cores),
        tuple(traffic),
        tuple(exchanges),
        mixer_flops,
        spec.d_model,
        spec.vocab,
        spec.layers,
        len(spec.mtp),
    )


_ATTENDS = Attention | MLA | CompressedAttention


def _matmuls(block: Block, uses: int) -> list[Matmul]:
    """The block's matmuls in order, neighbours that read the same input as one."""
    found: list[Matmul] = []
    for weight in block.weights:
        if not weight.matmul or len(weight.shape) != 2 or weight.part is Part.VISION:
            continue
        item = _matmul(block, weight, uses)
        last = found[-1] if found else None
        if last is not None and item.split in ("column", "expert") and _same_input(last, item):
            found[-1] = Matmul(last.name, last.k, last.n + item.n, last.split, uses, last.experts, last.top_k)
        else:
            found.append(item)
    return found


def _same_input(last: Matmul, item: Matmul) -> bool:
    return (last.split, last.k, last.experts, last.out) == (item.split, item.k, item.experts, item.out)


def _matmul(block: Block, weight: Weight, uses: int) -> Matmul:
    dims = block.dims
    k, n = size(weight.shape[0], dims), size(weight.shape[1], dims)
    copies, active = size(weight.copies, dims), size(weight.active or weight.copies, dims)
    split = split_of(weight)
    if split == "expert":
        return Matmul(weight.name, k, n, split, uses, copies, active, weight.name.endswith("down_proj"))
    return Matmul(weight.name, k, n, split, uses * copies)


def _core(block: AnyMixer, seq: int, uses: int) -> Core:
    assert isinstance(block, _ATTENDS), block
    if isinstance(block, MLA):
        width, kv_heads = (block.qk_nope + block.qk_rope + block.v_head_dim) / 2, block.heads
    elif isinstance(block, CompressedAttention):
        width, kv_heads = float(block.head_dim), 1
    else:
        width, kv_heads = (block.head_dim + block.v_head_dim) / 2, block.kv_heads
    seen = seen_by(block)
    limits = {symbol: block.dims[name] for symbol, name in seen.fields.items()}
    mask: Mask = "exact" if block.causal else "full"
    read = sum(_pairs(PAIRS[mask, row], seq, limits) for row in seen.rows)
    triangle = _pairs(PAIRS["exact", "all"], seq, {})
    indexed = indexed_by(block)
    scored = 0.0
    if indexed is not None:
        entries = {symbol: block.dims[name] for symbol, name in indexed.fields.items()}
        per_pair = 2 * block.dims["index_heads"] * block.dims["index_dim"]
        scored = per_pair * sum(_pairs(PAIRS["exact", row], seq, entries) for row in indexed.rows)
    return Core(block.heads, kv_heads, round(width), read / triangle, block.causal, scored, uses)


def _pairs(text: str, seq: int, limits: dict[str, int]) -> float:
    parsed = formulas.parse(text)
    known = {"T": seq} | limits
    return float(parsed.evaluate({symbol: known[symbol] for symbol in parsed.names}))


def _traffic(
    mixers: tuple[AnyMixer, ...], ffns: tuple[AnyFfn, ...], norms: Block, uses: int, *, dropout: bool
) -> Traffic:
    """Bytes in bf16. A norm reads and writes the stream (4 B), backward reads two and writes one (6 B); a residual
    addition moves three streams forward and two backward, with dropout its mask too."""
    d = norms.d_model
    rows = len(mixers) + len(ffns)
    mask = rows * d if dropout else 0
    wide_forward, wide_backward = float(rows * (4 + 6) * d + mask), float(rows * (6 + 4) * d + mask)
    split_forward = split_backward = 0.0
    for ffn in ffns:
        forward, backward, wide = _ffn_bytes(ffn)
        split_forward, split_backward = split_forward + forward, split_backward + backward
        wide_forward, wide_backward = wide_forward + wide, wide_backward + wide
    for mixer in mixers:
        turned = _rotated(mixer)
        split_forward, split_backward = split_forward + turned, split_backward + turned
    return Traffic(wide_forward, wide_backward, split_forward, split_backward, uses)


def _ffn_bytes(block: AnyFfn) -> tuple[float, float, float]:
    """Forward and backward bytes per token of the activation function, and those of moving tokens to experts."""
    if isinstance(block, MLP):
        forward, backward = _act_bytes(block.d_ff, gated=block.gated)
        return forward, backward, 0.0
    if isinstance(block, MoE):
        width = block.top_k * block.expert_ff + block.shared_ff
        forward, backward = _act_bytes(width, gated=block.gated)
        routed = block.latent or block.d_model
        return forward, backward, 2 * (2 + 2) * block.top_k * routed + 3 * 4 * block.experts
    return 0.0, 0.0, 0.0


def _act_bytes(width: int, *, gated: bool) -> tuple[float, float]:
    """Gated: two read and one written, backward three read and two written; else one and one, two and one."""
    return (6.0 * width, 10.0 * width) if gated else (4.0 * width, 6.0 * width)


def _rotated(block: AnyMixer) -> float:
    """Queries and keys read and written once in bf16, by rotary embedding or by the split of the fused projection;
    of another token mixer, its inner width in and out."""
    if isinstance(block, Attention):
        return 4.0 * (block.heads + block.kv_heads) * block.head_dim
    if isinstance(block, MLA):
        return 4.0 * block.heads * (2 * (block.qk_nope + block.qk_rope) + block.v_head_dim)
    if isinstance(block, CompressedAttention):
        return 4.0 * block.heads * block.head_dim
    widths = [size(weight.shape[-1], block.dims) for weight in block.weights if weight.matmul]
    return 4.0 * sum(width for width in widths if width != block.d_model)


def _exchange(mixers: tuple[AnyMixer, ...], ffns: tuple[AnyFfn, ...], uses: int) -> Exchange:
    routed = sum(ffn.top_k * (ffn.latent or ffn.d_model) for ffn in ffns if isinstance(ffn, MoE))
    reductions = len(mixers) + len(ffns)
    kv = sum(_kv_width(mixer) for mixer in mixers)
    matmuls = sum(len(_matmuls(block, 1)) for block in (*mixers, *ffns))
    kernels = matmuls + 4 * len(mixers) + 3 * len(ffns) + (8 if routed else 0)
    top_k = max((ffn.top_k for ffn in ffns if isinstance(ffn, MoE)), default=1)
    unsplit = sum(isinstance(ffn, MoE) and not ffn.shared_ff for ffn in ffns)
    return Exchange(reductions, routed, top_k, kv, kernels, uses, unsplit)


def _kv_width(block: AnyMixer) -> int:
    if isinstance(block, Attention):
        return block.kv_heads * (block.head_dim + block.v_head_dim)
    if isinstance(block, MLA):
        return block.heads * (block.qk_nope + block.qk_rope + block.v_head_dim)
    return block.head_dim if isinstance(block, CompressedAttention) else 0
