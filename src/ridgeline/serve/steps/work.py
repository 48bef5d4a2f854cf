"""The operations of one serving step of a deployment: matmuls, attention, experts, element-wise kernels, exchanges.

Everything is of one chip. A step's rows are the tokens that it processes in one group of ``tp`` chips; matmuls are
split as `ridgeline.arithmetic.tensor_split` says, experts over the whole stage (``ep`` by expert and the rest inside
each). A pipeline's layers are all counted, since a token passes every stage. Multi-token prediction is not served.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.spec import MLA, MLP, AnyFfn, AnyMixer, Attention, CompressedAttention, Mixer, MoE
from ridgeline.arithmetic.surface_terms import ACT
from ridgeline.arithmetic.tensor_split import split_matmuls
from ridgeline.serve.deployment import Deployment

_STREAM = 4 * ACT  # the stream and the residual read, both written
_ACTIVATION = 3 * ACT  # gate and up read, their product written
_ROTATED = 2 * ACT  # read and written once


@dataclass(frozen=True)
class Matmul:
    """``[rows, k] x [k, n]`` on one chip, ``uses`` times a step.

    ``wide`` marks a weight that keeps 16 bits whatever the deployment's weights (router, head); ``past`` one that runs
    over the cached tokens of a prompt too (keys and values rebuilt from latents); ``copied`` one that every chip of
    the group holds whole.
    """

    name: str
    k: float
    n: float
    uses: int
    wide: bool = False
    past: bool = False
    copied: bool = False


@dataclass(frozen=True)
class Core:
    """Attention of ``uses`` layers on one chip: ``heads`` queries, ``kv_heads`` caches of ``width`` elements (the mean
    of key and value).

    ``latent`` layers hold one latent of ``rank + rope`` instead, ``score`` and ``value`` wide when rebuilt. ``window``
    is how many keys a query reads at most (0: all). ``compress`` says that a window lies beside a past of one entry per
    so many tokens, of which ``selected`` are read (0: all). ``index`` elements a cached token are scored to select.
    """

    uses: int
    heads: int
    kv_heads: int
    width: float
    window: int = 0
    compress: int = 0
    selected: int = 0
    index: float = 0.0
    latent: bool = False
    rank: float = 0.0
    rope: float = 0.0
    score: float = 0.0
    value: float = 0.0


@dataclass(frozen=True)
class Mixture:
    """Routed experts of ``uses`` layers, before they are divided."""

    uses: int
    experts: int
    top_k: int
    width: int
    inner: int
    sides: int


@dataclass(frozen=True)
class State:
    """Token mixers with a state of ``elements`` a sequence on one chip and ``flops`` a token, ``uses`` layers."""

    uses: int
    elements: float
    flops: float


@dataclass(frozen=True)
class Work:
    """One step's operations. ``vector_bytes`` a token and ``kernels`` are of all element-wise kernels of the layers.

    ``reductions`` all-reduces over ``tp`` of ``d_model`` elements a token; ``expert_reductions`` over a stage.
    """

    matmuls: tuple[Matmul, ...]
    head: Matmul
    cores: tuple[Core, ...]
    mixtures: tuple[Mixture, ...]
    states: tuple[State, ...]
    vector_bytes: float
    kernels: int
    reductions: int
    d_model: int
    layers: int


def work(deployment: Deployment) -> Work:
    """The operations of one step."""
    spec, tp = deployment.spec, deployment.tp
    found = _Builder(tp)
    for index, kind in enumerate(spec.kinds):
        uses = spec.uses(index)
        for block in (*kind.mixers, *kind.ffns) if uses else ():
            found.add(block, uses)
    head = Matmul("head", spec.d_model, max(1.0, spec.vocab / tp), 1, wide=True)
    return Work(
        tuple(found.matmuls), head, tuple(found.cores), tuple(found.mixtures), tuple(found.states),
        found.vector_bytes, found.kernels, found.reductions, spec.d_model, spec.layers,
    )  # fmt: skip


class _Builder:
    """Collects what the blocks of a model do on one of ``tp`` chips."""

    def __init__(self, tp: int) -> None:
        self.tp = tp
        self.matmuls: list[Matmul] = []
        self.cores: list[Core] = []
        self.mixtures: list[Mixture] = []
        self.states: list[State] = []
        self.vector_bytes, self.kernels, self.reductions = 0.0, 0, 0

    def add(self, block: AnyMixer | AnyFfn, uses: int) -> None:
        """One block of ``uses`` layers."""
        self._matmuls(block, uses)
        self.reductions += uses
        self._vector(uses, _STREAM * block.d_model, 1)  # residual added and normed in one kernel
        if isinstance(block, MLP):
            self._vector(uses, _ACTIVATION * block.d_ff / self.tp, 1)
        elif isinstance(block, MoE):
            sides = 3 if block.gated else 2
            width = block.latent or block.d_model
            self.mixtures.append(Mixture(uses, block.experts, block.top_k, width, block.expert_ff, sides))
            self._vector(uses, _ACTIVATION * block.shared_ff / self.tp, 2 if block.shared_ff else 1)
        elif isinstance(block, Mixer):
            self.states.append(State(uses, block.state / self.tp, block.core_flops / self.tp))
            inner = sum(item.n for item in split_matmuls(block) if item.split != "row")
            self._vector(uses, _ROTATED * inner / self.tp, 3)
        else:
            self.cores.append(_core(block, uses, self.tp))
            self._vector(uses, _ROTATED * _turned(block) / self.tp, 2)

    def _vector(self, uses: int, moved: float, kernels: int) -> None:
        self.vector_bytes += uses * moved
        self.kernels += uses * kernels

    def _matmuls(self, block: AnyMixer | AnyFfn, uses: int) -> None:
        for item in split_matmuls(block):
            k, n = float(item.k), float(item.n)
            if item.split == "column":
                n = max(1.0, n / self.tp)
            elif item.split == "row":
                k = max(1.0, k / self.tp)
            copied, past = item.split == "copied", item.name == "kv_b_proj"
            self.matmuls.append(Matmul(item.name, k, n, uses * item.copies, item.name == "router", past, copied))


def _core(block: Attention | MLA | CompressedAttention, uses: int, tp: int) -> Core:
    index = float(block.dims.get("index_dim", 0))
    heads = block.heads // tp
    if isinstance(block, MLA):
        return Core(
            uses, heads, 1, (block.kv_rank + block.qk_rope) / 2, block.sparse_top_k or 0, index=index, latent=True,
            rank=block.kv_rank, rope=block.qk_rope, score=block.qk_nope + block.qk_rope, value=block.v_head_dim,
        )  # fmt: skip
    if isinstance(block, CompressedAttention):
        return Core(  # one vector of head_dim a token is key and value, as a latent without a rotary part is
            uses, heads, 1, block.head_dim, block.window, block.compress, block.sparse_top_k or 0, index=index,
            latent=True, rank=block.head_dim, score=block.head_dim, value=block.head_dim,
        )  # fmt: skip
    window = block.chunk or block.window or block.sparse_top_k or 0
    width = (block.head_dim + block.v_head_dim) / 2
    return Core(uses, heads, max(1, block.kv_heads // tp), width, window, index=index)


def _turned(block: Attention | MLA | CompressedAttention) -> float:
    """Elements a token that the rotary embedding and the write to the cache pass over."""
    if isinstance(block, MLA):
        return float(block.heads * (block.qk_nope + block.qk_rope))
    kv = 1 if isinstance(block, CompressedAttention) else 2 * block.kv_heads
    return float((block.heads + kv) * block.head_dim)
