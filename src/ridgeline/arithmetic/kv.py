"""The cache that decoding reads: bytes per token and per sequence, by architecture.

Attention caches keys and values of its key-value heads; latent attention (MLA) one latent and one rotary key per
token whatever its heads; a windowed or chunked layer no more than its window; a layer that shares an earlier
layer's keys and values nothing; a state-space or linear-attention mixer a state of constant size.
An indexer (DeepSeek sparse attention) caches one key more; sparse reading does not shorten the cache. A compressed
past (DeepSeek-V4) keeps one entry per span of tokens beside its window.
Sources: Shazeer 2019 (arXiv:1911.02150) for multi-query, Ainslie et al. 2023 (arXiv:2305.13245) for grouped-query,
DeepSeek-V2 (arXiv:2405.04434), section 2.1, for latent attention.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.arithmetic.flops import add
from ridgeline.arithmetic.inputs import require_not_negative, require_positive, under
from ridgeline.arithmetic.params import Leaves, Place, places
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLA, Attention, Block, CompressedAttention, Mixer, ModelSpec
from ridgeline.core import formula as formulas
from ridgeline.core.quantity import Quantity, derive, leaf


@dataclass(frozen=True)
class KvCache:
    """``kv.per_token`` (B/token): what one token adds before any window is full. ``kv.per_sequence`` (B) at the
    given context, windows respected. ``kv.state`` (B): the part of it that does not grow with the context."""

    per_token: Quantity
    per_sequence: Quantity
    state: Quantity

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        return (self.per_token, self.state, self.per_sequence)


def kv_cache(
    spec: ModelSpec,
    context: Quantity,
    *,
    dtype: str = "bf16",
    state_dtype: str = "fp32",
    vary: Mapping[str, Quantity] | None = None,
) -> KvCache:
    """The cache of one sequence of ``context`` tokens (token). Multi-token-prediction modules are not served.

    ``state_dtype`` is that of recurrent states, which are usually kept in fp32. ``vary`` replaces dimensions by
    arrays of candidates as in `params`. Raises `InputError` for an unknown element type.
    """
    require_positive(context)
    leaves = Leaves(spec, vary)
    element = dtype_bytes(dtype)
    each: dict[str, Quantity] = {}
    whole: dict[str, Quantity] = {}
    for place in places(spec):
        for what, (text, field) in ({} if place.mtp else _rows(place.block)).items():
            symbol = f"{place.label}{what}".replace(".", "_")
            each[symbol] = _per_token(leaves, place, f"{place.label}{what}", text, element)
            whole[symbol] = _whole(leaves, place, each[symbol], context, field)
    states = {p.label.replace(".", "_"): _state(leaves, p, state_dtype) for p in places(spec) if _has_state(p)}
    state = add("kv.state", states, "B") if states else leaf("kv.state", 0, "B", note="no layer keeps a state")
    per_token = add("kv.per_token", each, "B/token") if each else leaf("kv.per_token", 0, "B/token")
    return KvCache(
        per_token.titled("KV cache per token"),
        add("kv.per_sequence", whole | {"state": state}, "B").titled("KV cache per sequence"),
        state.titled("Recurrent state per sequence"),
    )


def _rows(block: Block) -> dict[str, tuple[str, str]]:
    """What one layer caches: elements per token, and the field of the window that bounds them, if any."""
    if isinstance(block, CompressedAttention):
        past = {"_past": ("(head_dim + index_dim)/compress", "")} if block.compress else {}
        return {"": ("head_dim", "window")} | past
    index = " + index_dim" if "index_dim" in block.extra_dims else ""
    if isinstance(block, MLA):
        return {"": (f"kv_rank + qk_rope{index}", "")}
    if isinstance(block, Attention) and not block.kv_shared:
        bound = "chunk" if block.chunk else "window" if block.window else ""
        return {"": (f"kv_heads*(head_dim + v_head_dim){index}", bound)}
    return {}


def _per_token(leaves: Leaves, place: Place, label: str, text: str, element: Quantity) -> Quantity:
    inputs = {symbol: leaves.dim(place, symbol) for symbol in formulas.parse(text).names}
    inputs |= {"bytes": element, "layers": leaves.times(place, used=True)}
    return derive(f"kv.per_token.{label}", f"bytes*layers*({text})", "B/token", **inputs)


def _whole(leaves: Leaves, place: Place, each: Quantity, context: Quantity, field: str) -> Quantity:
    name = each.name.replace("per_token", "per_sequence")
    if not field:
        return derive(name, "each*T", "B", each=each, T=context)
    inputs = {"T": context, "W": leaves.dim(place, field)}
    kept = derive(f"kv.tokens_kept.{place.label}", "min(count(T), W)", "token", **inputs)
    return derive(name, "each*kept", "B", each=each, kept=kept)


def _has_state(place: Place) -> bool:
    return isinstance(place.block, Mixer) and place.block.state > 0 and not place.mtp


def _state(leaves: Leaves, place: Place, dtype: str) -> Quantity:
    inputs = {
        "state": leaves.dim(place, "state"),
        "layers": leaves.times(place, used=True),
        "bytes": dtype_bytes(dtype),
    }
    return derive(f"kv.state.{place.label}", "bytes*layers*state", "B", **inputs)


def plain_kv_cache(
    layers: Quantity, kv_heads: Quantity, head_dim: Quantity, context: Quantity, batch: Quantity, prefix: str = ""
) -> Quantity:
    """``kv.cache`` (B) of a batch in bf16: 2 bytes x (key + value) x L x kv_heads x head_dim x T x batch."""
    require_positive(layers, kv_heads, head_dim, context, batch)
    inputs = {"L": layers, "kv_heads": kv_heads, "head_dim": head_dim, "T": context, "batch": batch}
    text = "2*bytes*L*kv_heads*head_dim*count(T)*count(batch)"
    found = derive(under(prefix, "kv.cache"), text, "B", bytes=dtype_bytes("bf16"), **inputs)
    return found.titled("KV cache")


def concurrent_requests(
    memory: Quantity, weights: Quantity, workspace: Quantity, per_sequence: Quantity, prefix: str = ""
) -> Quantity:
    """``serve.concurrent`` (request): whole caches that fit beside weights and workspace, all in B; 0 when none does.

    An upper bound: pages are lost at the end of each sequence, and prefixes that requests share are counted each time.
    """
    require_positive(memory, per_sequence)
    require_not_negative(weights, workspace)
    inputs = {"memory": memory, "weights": weights, "workspace": workspace, "kv": per_sequence}
    text = "max(0, floor((memory - weights - workspace)/kv))"
    return derive(under(prefix, "serve.concurrent"), text, "request", **inputs).titled("Concurrent requests")
