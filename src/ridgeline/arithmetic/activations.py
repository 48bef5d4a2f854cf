"""Activation memory from the shapes of the layers: what the forward pass keeps for the backward pass.

Every matmul keeps its input, every nonlinearity its input, every dropout its mask. A tensor inside a
tensor-parallel region is split over ``tp``; one as wide as the residual stream only under sequence parallelism.
For a GPT block with dropout and unfused attention this gives the closed forms of Korthikanti et al. 2022
(arXiv:2205.05198): sbhL(10 + 24/t + 5as/(ht)), and 34sbhL/t with selective recompute and sequence parallelism.
A fused (flash) attention keeps one logarithm per query and head instead of the scores.

Left out: rotary tables, temporary buffers, fragmentation, multi-token prediction, vision towers. A mixture of experts
is counted as perfectly balanced; the tensors of other token mixers are the inputs and outputs of their matmuls.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.arithmetic.flops import Recompute, add
from ridgeline.arithmetic.inputs import require_positive, under
from ridgeline.arithmetic.kept import Kept, Kernel, kept_by
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import Leaves, Place, places
from ridgeline.arithmetic.sharding import Sharding, dtype_bytes
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import formula as formulas
from ridgeline.core.catalog import constant
from ridgeline.core.quantity import Quantity, derive, leaf

_ALL = "count(tokens)*(wide/seq_split + (split + core)/tp)"
# Bytes that one layer keeps of one micro-batch, and what it needs again while the backward pass is in it.
KEPT: Mapping[Recompute, str] = {
    "none": _ALL,
    "selective": "count(tokens)*(wide/seq_split + split/tp)",
    "full": "count(tokens)*act*d_model/seq_split",
}
WORKING: Mapping[Recompute, str] = {"none": "", "selective": "count(tokens)*core/tp", "full": _ALL}


@dataclass(frozen=True)
class Activations:
    """Bytes on the fullest pipeline stage, the first.

    ``kept`` through the forward pass, ``working`` of the layer that is being recomputed, ``logits`` of the head
    (zero with a pipeline, where another stage holds them), and their ``total``; ``layers`` by kind, per micro-batch.
    """

    kept: Quantity
    working: Quantity
    logits: Quantity
    total: Quantity
    layers: Mapping[str, Quantity]

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        return (self.kept, self.working, self.logits, self.total)


@dataclass(frozen=True)
class Keeping:
    """What decides which tensors exist: recompute, the attention kernel, dropout, the type of activations."""

    recompute: Recompute = "none"
    kernel: Kernel = "flash"
    dropout: bool = False
    dtype: str = "bf16"


def activations(
    spec: ModelSpec,
    micro_batch: Batch,
    sharding: Sharding,
    keeping: Keeping,
    vary: Mapping[str, Quantity] | None = None,
) -> Activations:
    """``memory.activations.*`` (B) of one device.

    ``micro_batch`` is what one data-parallel replica runs at once. Under 1F1B the first of p stages holds min(p, m)
    micro-batches of L/p layers each; v interleaved chunks hold (1 + (p - 1)/(p*v)) times as much.
    ``vary`` replaces dimensions by arrays of candidates as in `params`.
    """
    leaves = Leaves(spec, vary)
    tokens = derive("memory.tokens", "tokens/cp", "token", tokens=micro_batch.tokens, cp=sharding.cp)
    common = {
        "tokens": tokens,
        "tp": sharding.tp,
        "seq_split": sharding.seq_split(),
        "act": dtype_bytes(keeping.dtype),
        "d_model": leaves.get("model.d_model", spec.d_model),
    }
    kinds = _layers(leaves, micro_batch, keeping)
    kept = {label: _layer(f"{label}.kept", KEPT[keeping.recompute], parts | common) for label, parts in kinds.items()}
    again = {
        label: _layer(f"{label}.working", WORKING[keeping.recompute], parts | common)
        for label, parts in kinds.items()
        if WORKING[keeping.recompute]
    }
    return _total(leaves, kept, again, _logits(leaves, tokens, sharding, keeping), sharding)


def _layers(leaves: Leaves, batch: Batch, keeping: Keeping) -> dict[str, dict[str, Quantity]]:
    """Bytes per token of every kind of layer, by how they are split: wide, split, core."""
    rows: dict[str, dict[str, dict[str, Quantity]]] = {}
    for place in places(leaves.spec):
        label, _, what = place.label.partition(".")
        if label == "outside" or place.mtp:
            continue
        kept = kept_by(place.block, kernel=keeping.kernel, dropout=keeping.dropout)
        for part, texts in kept.parts.items():
            name = f"memory.activations.{place.label}.{part}"
            if texts:
                value = _per_token(name, texts, leaves, place, batch, keeping)
                rows.setdefault(label, {}).setdefault(part, {})[what] = value
    nothing = {part: leaf("memory.activations.nothing", 0, "B") for part in Kept.PARTS}
    return {
        label: nothing | {part: add(f"memory.activations.{label}.{part}", q, "B") for part, q in parts.items()}
        for label, parts in rows.items()
    }


def _per_token(
    name: str, texts: tuple[str, ...], leaves: Leaves, place: Place, batch: Batch, keeping: Keeping
) -> Quantity:
    text = " + ".join(texts)
    known = {"act": dtype_bytes(keeping.dtype), "T": batch.seq} | {t: dtype_bytes(t) for t in ("mask", "fp32")}
    symbols = formulas.parse(text).names
    return derive(name, text, "B", **{s: known[s] if s in known else leaves.dim(place, s) for s in symbols})


def _layer(name: str, text: str, inputs: Mapping[str, Quantity]) -> Quantity:
    symbols = formulas.parse(text).names
    return derive(f"memory.activations.{name}", text, "B", **{symbol: inputs[symbol] for symbol in symbols})


def _total(
    leaves: Leaves,
    kept: Mapping[str, Quantity],
    again: Mapping[str, Quantity],
    logits: Quantity,
    sharding: Sharding,
) -> Activations:
    terms = {f"n_{label}": leaves.times(_place(leaves, label), used=True) for label in kept}
    text = " + ".join(f"n_{label}*{label}" for label in kept)
    all_layers = derive("memory.activations.layers", text, "B", **terms, **kept)
    inputs = {"p": sharding.pp, "m": sharding.micro_batches, "v": sharding.chunks}
    flight_text = "min(p, m)/p*where(v > 1, 1 + (p - 1)/(p*v), 1)"
    flight = derive("memory.in_flight", flight_text, "1", **inputs).titled("Share of all layers' activations held")
    held = derive("memory.activations.kept", "layers*in_flight", "B", layers=all_layers, in_flight=flight)
    working = leaf("memory.activations.working", 0, "B", note="nothing is recomputed")
    if again:
        largest = f"max({', '.join(again)})" if len(again) > 1 else next(iter(again))
        working = derive("memory.activations.working", largest, "B", **again)
    parts = {"kept": held, "working": working, "logits": logits}
    total = derive("memory.activations.total", "kept + working + logits", "B", **parts)
    return Activations(
        held.titled("Activations kept"),
        working.titled("Activations of the layer being recomputed"),
        logits,
        total.titled("Activations per device"),
        kept,
    )


def _place(leaves: Leaves, label: str) -> Place:
    return next(place for place in places(leaves.spec) if place.label.startswith(f"{label}."))


def _logits(leaves: Leaves, tokens: Quantity, sharding: Sharding, keeping: Keeping) -> Quantity:
    """While the loss is differentiated: fp32 log-probabilities, their fp32 gradient, and that of the head's output.

    A loss that is computed in chunks of tokens needs a chunk's share of it.
    """
    inputs = {"tokens": tokens, "tp": sharding.tp, "p": sharding.pp, "fp32": dtype_bytes("fp32")}
    inputs |= {"vocab": leaves.get("model.vocab", leaves.spec.vocab), "act": dtype_bytes(keeping.dtype)}
    text = "where(p > 1, 0, count(tokens)*vocab*(act + 2*fp32)/tp)"
    return derive("memory.logits", text, "B", **inputs).titled("Logits and their gradient")


def rough_activations(
    tokens: Quantity, layers: Quantity, d_model: Quantity, recompute: Recompute = "none", prefix: str = ""
) -> Quantity:
    """``memory.activations_rough`` (B): c bf16 tensors of residual width per layer and token, c = 16.

    Selective recompute keeps an assumed share of them, full recompute the layer's input alone. A napkin: it knows no
    d_ff, no kernel and no parallelism; `activations` does.
    """
    require_positive(tokens, layers, d_model)
    inputs = {"tokens": tokens, "L": layers, "d": d_model, "bytes": dtype_bytes("bf16")}
    text = "count(tokens)*L*d*bytes"
    if recompute != "full":
        text, inputs = f"c*{text}", {"c": constant("activations.rough.tensors"), **inputs}
    if recompute == "selective":
        text, inputs = f"kept*{text}", {"kept": constant("activations.rough.selective"), **inputs}
    return derive(under(prefix, "memory.activations_rough"), text, "B", **inputs).titled("Activations, rough")
