"""The candidates: aligned shapes times key-value heads, mixtures and batches, as equally long integer arrays.

d_model moves in steps of the head dimension times the chips of a replica, so that every chip has whole heads; depth
follows from d_model per layer. One frame is one kind of layer (grouped-query or latent attention, dense or mixture).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import MLA, ModelSpec
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.serve.codesign.need import Need

Ints = np.ndarray[Any, np.dtype[np.int64]]
_SOURCE = Source("co-design", "aligned candidates")
_TILE = "recipes.tile"


@dataclass(frozen=True)
class Frame:
    """One kind of layer over all its sizes. ``columns`` are d_model, layers, heads, kv_heads, d_ff, experts, top_k and
    batch; latent attention has as many kv_heads as heads, of which none is cached, and a dense layer one expert."""

    attention: str
    mixture: bool
    vocab: int
    columns: Mapping[str, Ints]

    @property
    def size(self) -> int:
        """Candidates."""
        return len(self.columns["d_model"])

    def at(self, index: int) -> dict[str, int]:
        """The columns of one candidate."""
        return {name: int(values[index]) for name, values in self.columns.items()}

    def spec(self, index: int) -> ModelSpec:
        """One candidate as a model."""
        return design(self.attention, self.vocab, self.at(index), mixture=self.mixture)

    def vary(self) -> dict[str, Quantity]:
        """The dimensions as arrays, for `params` and the cache; ``chip`` is the share of the model on one chip."""
        c = self.columns
        found = {"model.d_model": c["d_model"], "model.layer0.copies": c["layers"], "chip.layer0.layers": c["layers"],
                 "model.layer0.mixer.heads": c["heads"]}  # fmt: skip
        if self.attention == "gqa":
            found |= {"model.layer0.mixer.kv_heads": c["kv_heads"]}
        if self.mixture:
            found |= {f"model.layer0.ffn.{name}": c[name] for name in ("experts", "top_k")}
            found |= {"model.layer0.ffn.expert_ff": c["d_ff"]}
        else:
            found |= {"model.layer0.ffn.d_ff": c["d_ff"]}
        return {name: leaf(name, values, "1", "specified", _SOURCE) for name, values in found.items()}


def frames(need: Need) -> Iterator[Frame]:
    """Every frame of the axes. Raises `InputError` where no width is left."""
    head = int(constant("recipes.head_dim").value)
    step = head * int(need.chips.value)
    if need.axes.widest < 2 * head:
        raise InputError.expected(f"a width of at least {2 * head}, two heads of {head}", need.axes.widest,
                                  where="$.axes.widest")  # fmt: skip
    if step > need.axes.widest:
        raise InputError.expected(f"at most {need.axes.widest // head} chips at a width of {need.axes.widest}",
                                  int(need.chips.value), where="--chips")  # fmt: skip
    each = max(step, 2 * head)
    widths = np.arange(each, need.axes.widest + 1, each)
    widths = widths[widths >= min(need.axes.narrowest, widths[-1])]
    pairs = {(int(d), max(1, round(d / aspect))) for d in widths for aspect in need.axes.aspects}
    for attention in need.axes.attention:
        for mixture in (False, True) if need.axes.mixtures else (False,):
            yield _frame(need, sorted(pairs), attention, mixture=mixture)


def _frame(need: Need, pairs: list[tuple[int, int]], attention: str, *, mixture: bool) -> Frame:
    head = int(constant("recipes.head_dim").value)
    kv = need.axes.kv_heads if attention == "gqa" else (0,)
    mixtures = np.array(need.axes.mixtures if mixture else ((1, 1),))
    which = (np.arange(len(pairs)), np.array(kv), np.arange(len(mixtures)), np.array(need.batches))
    row, kv_heads, mixed, batch = (side.ravel() for side in np.meshgrid(*which, indexing="ij"))
    d_model, layers = np.array(pairs)[row].T
    heads = d_model // head
    kv_heads = np.where(kv_heads == 0, heads, kv_heads)
    keep = heads % kv_heads == 0
    experts, top_k = mixtures[mixed].T
    columns = {"d_model": d_model, "layers": layers, "heads": heads, "kv_heads": kv_heads,
               "d_ff": _widths(d_model, top_k, int(need.chips.value)), "experts": experts, "top_k": top_k,
               "batch": batch}  # fmt: skip
    return Frame(attention, mixture, need.vocab, {name: values[keep] for name, values in columns.items()})


def _widths(d_model: Ints, top_k: Ints, chips: int) -> Ints:
    """The width of the MLP, or of each of ``top_k`` experts that together have it; whole tiles on every chip."""
    step = int(constant(_TILE).value) * np.where(top_k > 1, 1, chips)
    wide = float(constant("recipes.ff_ratio").value) * d_model / top_k
    found: Ints = (np.maximum(1, np.round(wide / step)) * step).astype(np.int64)
    return found


def design(attention: str, vocab: int, sides: Mapping[str, int], *, mixture: bool) -> ModelSpec:
    """One candidate as a model: pre-norm decoder layers with a gated MLP or a mixture of experts."""
    ffn = {"d_ff": sides["d_ff"]}
    if mixture:
        ffn = {"experts": sides["experts"], "top_k": sides["top_k"], "expert_ff": sides["d_ff"]}
    shape = Shape(
        name=label(sides, attention), layers=sides["layers"], d_model=sides["d_model"], heads=sides["heads"],
        kv_heads=sides["kv_heads"], head_dim=int(constant("recipes.head_dim").value), vocab=vocab, **ffn,
    )  # fmt: skip
    made = model(shape)
    if attention == "gqa":
        return made
    head = int(constant("recipes.head_dim").value)
    ranks = {name: int(constant(f"codesign.mla.{name}").value) for name in ("q_rank", "kv_rank", "qk_rope")}
    latent = MLA(d_model=shape.d_model, heads=shape.heads, qk_nope=head, v_head_dim=head, **ranks)
    return made.model_copy(update={"kinds": tuple(k.model_copy(update={"mixers": (latent,)}) for k in made.kinds)})


def label(sides: Mapping[str, int], attention: str) -> str:
    """``40 x 5120, 8 KV heads`` or ``60 x 7168, MLA, 64/8 experts``."""
    kind = "MLA" if attention == "mla" else f"{sides['kv_heads']} KV head{'s' if sides['kv_heads'] != 1 else ''}"
    mixed = f", {sides['experts']}/{sides['top_k']} experts" if sides["experts"] > 1 else ""
    return f"{sides['layers']} x {sides['d_model']}, {kind}{mixed}"
