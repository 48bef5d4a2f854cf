"""The cache that decoding reads: bytes per token and per sequence, by architecture, whole or on one chip.

Attention caches keys and values of its key-value heads; latent attention (MLA) one latent and one rotary key per
token whatever its heads; a windowed or chunked layer no more than its window; a layer that shares an earlier
layer's keys and values nothing; a state-space or linear-attention mixer a state of constant size.
An indexer (DeepSeek sparse attention) caches one key more; sparse reading does not shorten the cache. A compressed
past (DeepSeek-V4) keeps one entry per span of tokens beside its window.
Tensor parallelism divides key-value heads until each chip has one, then copies them; latents, index keys and
compressed entries are copied to every chip; states are divided with their heads.
Sources: Shazeer 2019 (arXiv:1911.02150) for multi-query, Ainslie et al. 2023 (arXiv:2305.13245) for grouped-query,
DeepSeek-V2 (arXiv:2405.04434), section 2.1, for latent attention, Kwon et al. 2023 (arXiv:2309.06180) for pages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ridgeline.arithmetic.flops import add
from ridgeline.arithmetic.inputs import require_not_negative, require_positive, under
from ridgeline.arithmetic.params import Leaves, Place, places, size
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLA, Attention, Block, CompressedAttention, Mixer, ModelSpec
from ridgeline.core import formula as formulas
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive, leaf

DS_MLA = "fp8_ds_mla"  # latents in 8 bits with their own scales, rotary keys in 16
_PAST = "compressed past"
# What one layer of a row is, by `Row.what`, in words.
KINDS = {
    "full": "full attention layer", "window": "windowed layer", "chunk": "chunked layer", "latent": "layer of latents",
    _PAST: "layer of compressed past", "state": "layer with a state",
}  # fmt: skip
FORMATS = ("bf16", "fp16", "fp8", DS_MLA, "int8", "int4", "fp4", "mxfp4")


@dataclass(frozen=True)
class Caching:
    """How an engine keeps the cache.

    ``dtype`` is one of `FORMATS` (or fp32); ``state_dtype`` that of recurrent states, ``conv_dtype`` that of the inputs
    a convolution remembers (empty: as the states). ``windows`` False: the allocator keeps windowed and chunked layers
    whole. ``mtp``: the multi-token-prediction modules are served, for speculation, and cache too. ``page`` (token): the
    cache is given out in pages of so many tokens; None: to the byte. ``aligned``: a state takes a page of its own.
    ``index`` scaled: the index keys of sparse latent attention are kept in 8 bits with a scale per block, as engines do
    whatever the cache's type; plain: in that type. ``drafts`` tokens of speculation lengthen what a convolution
    remembers, and each has a state of its own until it is accepted.
    """

    dtype: str = "bf16"
    state_dtype: str = "fp32"
    conv_dtype: str = ""
    windows: bool = True
    mtp: bool = False
    page: Quantity | None = None
    aligned: bool = False
    index: Literal["plain", "scaled"] = "plain"
    drafts: int = 0


@dataclass(frozen=True)
class Share:
    """The part of a model on one chip: ``tp`` ways split, and the ``layers`` of each kind by label (``layer0``)."""

    tp: Quantity
    layers: Mapping[str, int]
    name: str = "chip"


@dataclass(frozen=True)
class KvCache:
    """``kv.per_token`` (B/token): what one token adds before any window is full. ``kv.per_sequence`` (B) at the
    given context, windows respected. ``kv.state`` (B): the part of it that does not grow with the context.
    ``rows`` lists what each kind of layer keeps."""

    per_token: Quantity
    per_sequence: Quantity
    state: Quantity
    rows: tuple["Row", ...] = ()

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        return (self.per_token, self.state, self.per_sequence)


@dataclass(frozen=True)
class Row:
    """One thing that one kind of layer keeps, over all layers of the kind: ``per_token`` (B/token, None for a state),
    its bytes at the context in ``whole``, and the ``window`` (token) that bounds it, 0 for none."""

    label: str
    what: str
    per_token: Quantity | None
    whole: Quantity
    window: int = 0


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
    return kept(Leaves(spec, vary), context, Caching(dtype, state_dtype))


def kept(leaves: Leaves, context: Quantity, caching: Caching, share: Share | None = None) -> KvCache:
    """The cache of one sequence as an engine keeps it: whole, or on the chip that ``share`` describes.

    Names are ``kv.*``, with pages ``kv.paged.*``, on a chip ``<share.name>.kv.*``. Raises `InputError` for an element
    type that is not known or does not suit the model.
    """
    require_positive(context)
    walk = _Walk(leaves, context, caching, share)
    rows = [row for place in walk.places for row in (*walk.rows(place), *walk.state(place))]
    growing = {_symbol(row): row.per_token for row in rows if row.per_token is not None}
    fixed = {_symbol(row): row.whole for row in rows if row.per_token is None}
    state = walk.total("state", fixed, "B").titled("Recurrent state per sequence")
    moving = {_symbol(row): row.whole for row in rows if row.per_token is not None}
    return KvCache(
        walk.total("per_token", growing, "B/token").titled("KV cache per token"),
        add(walk.name("per_sequence"), moving | {"state": state}, "B").titled("KV cache per sequence"),
        state,
        tuple(rows),
    )


@dataclass(frozen=True)
class _Walk:
    """One pass over the blocks of a model with everything that names and sizes depend on."""

    leaves: Leaves
    context: Quantity
    caching: Caching
    share: Share | None
    places: tuple[Place, ...] = field(init=False)

    def __post_init__(self) -> None:
        every = [place for place in places(self.leaves.spec) if not place.mtp or self.caching.mtp]
        here = [place for place in every if self.share is None or self.share.layers.get(_layer(place), 0)]
        object.__setattr__(self, "places", tuple(here))

    def name(self, what: str, label: str = "") -> str:
        """``kv.per_token.layer0.mixer``, under the chip's name and with ``paged`` where it applies."""
        family = "kv.paged" if self.caching.page is not None and what != "per_token" else "kv"
        return under(self.share.name if self.share else "", f"{family}.{what}" + (f".{label}" if label else ""))

    def total(self, what: str, terms: dict[str, Quantity], unit: str) -> Quantity:
        """The sum of what the layers keep; nothing is a figure too."""
        if terms:
            return add(self.name(what), terms, unit)
        return leaf(self.name(what), 0, unit, note="no layer keeps any")

    def rows(self, place: Place) -> list[Row]:
        """What the keys and values of one kind of layer take."""
        found = []
        for what, (text, bound) in cached(place.block).items():
            label = f"{place.label}{what}"
            each = self.per_token(place, label, text)
            bound = bound if self.caching.windows else ""
            window = place.block.dims[bound] if bound else 0
            found.append(
                Row(place.label, _called(place.block, what), each, self.whole(place, label, each, bound), window)
            )
        return found

    def per_token(self, place: Place, label: str, text: str) -> Quantity:
        """Bytes that one token adds in all layers of the kind."""
        if self.share and isinstance(place.block, Attention):
            text = text.replace("kv_heads*", "ceil(kv_heads/tp)*")
        formula = _formula(place.block, text, self.caching)
        known = _scaled_inputs() | {"layers": self.times(place)}
        if "bytes" in formulas.parse(formula).names:
            known |= {"bytes": element_bytes(self.caching.dtype)}
        inputs = {symbol: known[symbol] for symbol in formulas.parse(formula).names if symbol in known}
        inputs |= {"tp": self.share.tp} if self.share and "/tp)" in formula else {}
        own = [symbol for symbol in formulas.parse(formula).names if symbol not in inputs]
        inputs |= {symbol: self.leaves.dim(place, symbol) for symbol in own}
        found = derive(self.name("per_token", label), formula, "B/token", **inputs)
        return found.titled(f"Cache of a token, every {KINDS[_called(place.block, label.removeprefix(place.label))]}")

    def whole(self, place: Place, label: str, each: Quantity, bound: str) -> Quantity:
        """Bytes at the context: every token, or those of the window, in whole pages where there are pages."""
        page = self.caching.page
        name = self.name("per_sequence", label)
        if not bound and page is None:
            return derive(name, "each*T", "B", each=each, T=self.context)
        inputs = {"T": self.context}
        text = "count(T)" if page is None else "P*ceil(T/P)"
        if page is not None:
            inputs |= {"P": page}
        if bound:
            inputs |= {"W": self.leaves.dim(place, bound)}
            # a window that slides over page borders touches one page more than it fills
            text = "min(count(T), W)" if page is None else "min(P*ceil(T/P), P*(1 + ceil(W/count(P))))"
        tokens = derive(self.name("tokens_kept", label), text, "token", **inputs)
        return derive(name, "each*kept", "B", each=each, kept=tokens)

    def state(self, place: Place) -> list[Row]:
        """What a recurrent mixer keeps between tokens: its state, and the last inputs of its convolution."""
        block = place.block
        if not isinstance(block, Mixer) or not block.state:
            return []
        inputs = {"state": self.leaves.dim(place, "state"), "bytes": dtype_bytes(self.caching.state_dtype)}
        inputs |= {"layers": self.times(place)}
        text, conv, drafts = "bytes*state", _remembered(block), self.caching.drafts
        if conv and (self.caching.conv_dtype or drafts):
            symbols = {s: self.leaves.dim(place, s) for s in formulas.parse(conv).names}
            inputs |= symbols | {"narrow": dtype_bytes(self.caching.conv_dtype or self.caching.state_dtype)}
            longer = conv.replace("conv_kernel - 1", "conv_kernel - 1 + drafts") if drafts else conv
            text = f"bytes*(state - {conv}) + narrow*{longer}"
        if drafts:
            inputs |= {"drafts": leaf("kv.drafts", drafts, "1")}
        if self.share:
            text, inputs = f"({text})/tp", inputs | {"tp": self.share.tp}
        if self.caching.aligned and self.caching.page is not None:
            return [Row(place.label, "state", None, self._aligned(place, text, inputs))]
        text = f"layers*(1 + drafts)*({text})" if drafts else f"layers*({text})"
        whole = derive(self.name("state", place.label), text, "B", **inputs)
        return [Row(place.label, "state", None, whole)]

    def _aligned(self, place: Place, text: str, inputs: dict[str, Quantity]) -> Quantity:
        """A state in a page as large as a page of the widest attention layer."""
        widest = max((self._one_layer(p) for p in self.places), key=lambda q: float(q.value), default=None)
        assert widest is not None, place
        assert self.caching.page is not None, place
        more = {"each": widest, "P": self.caching.page}
        pages = "layers*(1 + drafts)" if self.caching.drafts else "layers"
        return derive(self.name("state", place.label), f"{pages}*max({text}, each*P)", "B", **inputs, **more)

    def _one_layer(self, place: Place) -> Quantity:
        name = self.name("per_token", f"{place.label}.one")
        rows = [row.per_token for row in self.rows(place) if row.per_token is not None]
        if not rows:
            return leaf(name, 0, "B/token")
        terms = {f"part{index}": row for index, row in enumerate(rows)}
        return derive(name, f"({' + '.join(terms)})/layers", "B/token", layers=self.times(place), **terms)

    def times(self, place: Place) -> Quantity:
        """How many layers of the kind cache: all, or those on the chip."""
        if self.share is None:
            return self.leaves.times(place, used=True)
        layer = _layer(place)
        return self.leaves.get(f"{self.share.name}.{layer}.layers", self.share.layers[layer])


def cached(block: Block) -> dict[str, tuple[str, str]]:
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


def element_bytes(dtype: str) -> Quantity:
    """Bytes of one cached element with its share of the scale of its block. Raises `InputError` for an unknown type."""
    if dtype == DS_MLA:
        raise InputError.expected("an element type", dtype, where="kv", hint="that layout exists for latent attention")
    plain = constant(f"kv.element.{dtype}", missing_ok=True) or dtype_bytes(dtype)
    scale = constant(f"kv.scale.{dtype}", missing_ok=True)
    if scale is None:
        return plain
    return derive(f"kv.element.{dtype}.scaled", "element + scale", "B", element=plain, scale=scale)


def aligned_page(leaves: Leaves, caching: Caching, page: Quantity, share: Share | None = None) -> Quantity:
    """``kv.aligned_page`` (token): pages as an allocator with one page size makes them for a model with states.

    The tokens of a page grow, in steps of ``page``, until one layer's page of keys and values holds one layer's state
    (vLLM's hybrid allocator). A model without both keeps ``page``.
    """
    walk = _Walk(leaves, leaf("kv.aligned_page.context", 1, "token"), caching, share)
    states = [_per_layer(walk, row) for place in walk.places for row in walk.state(place)]
    layers = [walk._one_layer(place) for place in walk.places if cached(place.block)]
    if not states or not layers:
        return page
    inputs = {"state": max(states, key=_value), "each": max(layers, key=_value), "step": page}
    name = under(share.name if share else "", "kv.aligned_page")
    text = "max(step, step*ceil(state/each/step))"
    return derive(name, text, "token", **inputs).titled("Tokens of a page, aligned to the state")


def _per_layer(walk: _Walk, row: Row) -> Quantity:
    place = next(p for p in walk.places if p.label == row.label)
    inputs = {"whole": row.whole, "layers": walk.times(place)}
    text = "whole/layers"
    if walk.caching.drafts:
        text, inputs = "whole/layers/(1 + drafts)", inputs | {"drafts": leaf("kv.drafts", walk.caching.drafts, "1")}
    return derive(f"{row.whole.name}.one", text, "B", **inputs)


def _value(quantity: Quantity) -> float:
    return float(quantity.value)


def _layer(place: Place) -> str:
    return place.label.partition(".")[0]


def _symbol(row: Row) -> str:
    return row.label.replace(".", "_") + ("_past" if row.what == _PAST else "")


def _called(block: Block, what: str) -> str:
    if isinstance(block, MLA):
        return "latent"
    if what:
        return _PAST
    if isinstance(block, CompressedAttention):
        return "window"
    assert isinstance(block, Attention)
    return "chunk" if block.chunk else "window" if block.window else "full"


def _remembered(block: Mixer) -> str:
    """Elements of the inputs that the convolution of a mixer remembers, as an expression; empty for none."""
    conv = next((weight for weight in block.extra if weight.name == "conv"), None)
    if conv is None or size("conv_kernel", block.dims) < 2:
        return ""
    return f"({conv.shape[0]})*(conv_kernel - 1)"


_SCALED = "(narrow + scale/block)"  # one 8-bit element with its share of the scale


def _formula(block: Block, text: str, caching: Caching) -> str:
    """Bytes that one token adds in all layers of a kind, from its elements.

    In the fp8_ds_mla layout latents are kept in 8 bits with a scale per block and rotary keys in 16 bits.
    """
    index = " + index_dim" if isinstance(block, MLA) and text.endswith(" + index_dim") else ""
    scaled = f" + index_dim*{_SCALED}" if index else ""
    if caching.dtype == DS_MLA:
        if not isinstance(block, MLA):
            raise InputError.expected("a layer of latent attention for the layout fp8_ds_mla", type(block).__name__,
                                      where="kv", hint="use fp8 for this model")  # fmt: skip
        return f"layers*(kv_rank*{_SCALED} + qk_rope*wide{scaled})"
    if index and caching.index == "scaled":
        return f"layers*(bytes*({text.removesuffix(index)}){scaled})"
    return f"bytes*layers*({text})"


def _scaled_inputs() -> dict[str, Quantity]:
    figures = {name: constant(f"kv.ds_mla.{name}") for name in ("scale", "block")}
    return figures | {"narrow": dtype_bytes("fp8"), "wide": dtype_bytes("bf16")}


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
