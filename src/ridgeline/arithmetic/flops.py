"""FLOPs of a training step by part: forward, backward, recompute.

One walk over the weights of a model gives every term; a multiplication and an addition are two FLOPs.
Left out, as everywhere in the field: softmax, norms, activations, rotary embeddings, the optimizer (together
well under 1% of a large model's FLOPs, though not of its time).
The closed forms of the napkin are in `napkin`, the pairs that attention computes in `pairs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from ridgeline.arithmetic.pairs import ALL, MASKS, Attends, Batch, Mask, Seen, indexed_by, pairs, seen_by
from ridgeline.arithmetic.params import Leaves, Place, places, weigh
from ridgeline.arithmetic.spec import MLA, CompressedAttention, Mixer, ModelSpec, Part, Weight
from ridgeline.core import formula as formulas
from ridgeline.core.quantity import Quantity, derive, leaf

Recompute = Literal["none", "selective", "full"]


class Term(StrEnum):
    """What a FLOP count may contain. The names are those of ``flops.forward.<term>`` in a Case."""

    PROJECTIONS = "attention_projections"
    SCORES = "attention_scores"  # queries x keys
    VALUES = "attention_values"  # probabilities x values
    INDEXER = "attention_indexer"  # index queries x every key (DeepSeek sparse attention)
    MIXER = "mixer"  # the matmuls of other token mixers
    MIXER_CORE = "mixer_core"  # their scan or recurrence
    MLP = "mlp"
    EXPERTS = "experts"
    SHARED_EXPERTS = "shared_experts"
    ROUTER = "router"
    OTHER = "other"
    HEAD = "head"
    MTP = "mtp"  # multi-token prediction, with the head that each module applies again
    # Not multiplications, so never in `flops`; some counters charge 6 FLOPs for each of them all the same.
    EMBEDDING = "embedding"
    SMALL = "norms_and_biases"


# What the backward pass computes again. The head's input is kept, so the head never is.
AGAIN: Mapping[Recompute, tuple[Term, ...]] = {
    "none": (),
    "selective": (Term.SCORES, Term.VALUES, Term.INDEXER),
    "full": tuple(term for term in Term if term not in (Term.HEAD, Term.MTP)),
}
_BY_PART: Mapping[Part, Term] = {
    Part.ATTENTION: Term.PROJECTIONS,
    Part.MIXER: Term.MIXER,
    Part.MLP: Term.MLP,
    Part.EXPERTS: Term.EXPERTS,
    Part.SHARED_EXPERTS: Term.SHARED_EXPERTS,
    Part.ROUTER: Term.ROUTER,
    Part.HEAD: Term.HEAD,
    Part.EMBEDDING: Term.HEAD,  # a tied table multiplies as the head
}


def term_of(place: Place, weight: Weight) -> Term | None:
    """Which term a weight belongs to; None for a vision tower, which text tokens do not pass."""
    if weight.part is Part.VISION:
        return None
    if place.mtp:
        return Term.MTP
    if weight.matmul:
        return _BY_PART.get(weight.part, Term.OTHER)
    return Term.EMBEDDING if weight.part is Part.EMBEDDING else Term.SMALL


@dataclass(frozen=True)
class Flops:
    """FLOPs of one step over the whole batch. ``parts`` is the forward pass; names are ``flops.*``."""

    mask: Mask
    recompute_mode: Recompute
    tokens: Quantity
    parts: Mapping[Term, Quantity]
    forward: Quantity
    backward: Quantity
    recompute: Quantity
    train_step: Quantity  # forward and backward: the F of MFU
    hardware_step: Quantity  # recompute included: the F of HFU
    per_token: Quantity
    step_parts: Mapping[Term, Quantity]

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        return (*self.step_parts.values(), self.per_token, self.hardware_step)


def flops(
    spec: ModelSpec,
    batch: Batch,
    *,
    mask: Mask,
    recompute: Recompute = "none",
    vary: Mapping[str, Quantity] | None = None,
) -> Flops:
    """FLOPs of one training step of the whole model over ``batch``, all chips together.

    ``mask`` says how the causal mask is counted and is repeated in every label. ``vary`` replaces leaves by arrays
    of candidates as in `params`. Source: the matmul count of Narayanan et al. 2021 (arXiv:2104.04473), term by term.
    """
    leaves = Leaves(spec, vary)
    tokens = batch.tokens
    parts = forward_parts(leaves, batch, mask)
    forward = add("flops.forward", parts, "FLOP").titled("Forward pass", MASKS[mask])
    backward = derive("flops.backward", "2*forward", "FLOP", forward=forward).titled("Backward pass: exactly twice")
    again = _recomputed(parts, recompute)
    step = derive("flops.train_step", "forward + backward", "FLOP", forward=forward, backward=backward)
    hardware = derive("flops.hardware_step", "step + recompute", "FLOP", step=step, recompute=again)
    return Flops(
        mask,
        recompute,
        tokens,
        parts,
        forward,
        backward,
        again,
        step.titled("FLOPs of a training step", MASKS[mask]),
        hardware.titled(f"FLOPs of a step, recompute {recompute}", MASKS[mask]),
        derive("flops.per_token", "step/tokens", "FLOP/token", step=step, tokens=tokens).titled("FLOPs per token"),
        {term: derive(f"flops.train_step.{term}", "3*forward", "FLOP", forward=q) for term, q in parts.items()},
    )


def forward_parts(leaves: Leaves, batch: Batch, mask: Mask) -> dict[Term, Quantity]:
    """The forward FLOPs of every term that the model has."""
    tokens = batch.tokens
    found = {term: weights(leaves, term) for term in _BY_PART.values()} | {Term.OTHER: weights(leaves, Term.OTHER)}
    parts = {
        term: derive(f"flops.forward.{term}", "2*weights*tokens", "FLOP", weights=q, tokens=tokens)
        for term, q in found.items()
        if q.kind == "derived"
    }
    parts |= attention_core("flops.forward", leaves, batch, mask)
    parts |= _mixer_core(leaves, tokens)
    predicted = _mtp(leaves, batch, mask, parts)
    return {term: parts[term] for term in Term if term in parts} | predicted


def weights(leaves: Leaves, term: Term) -> Quantity:
    """The weights that one token multiplies by in this term, experts as chosen, shared layers at each use."""
    return weigh(
        leaves,
        f"flops.weights.{term}",
        lambda place, weight: weight.matmul and term_of(place, weight) is term,
        active=True,
        used=True,
    )


def attention_core(
    prefix: str, leaves: Leaves, batch: Batch, mask: Mask, *, windows: bool = True, mtp: bool = False
) -> dict[Term, Quantity]:
    """Forward FLOPs of what attention does between its projections, over all attention layers.

    ``windows=False`` ignores windows, chunks and sparse reading.
    """
    found: dict[Term, dict[str, Quantity]] = {}
    for place in places(leaves.spec):
        if place.mtp != mtp or not isinstance(place.block, Attends):
            continue
        for term, (widths, seen) in _core(place.block, windows=windows).items():
            inputs = {symbol: leaves.dim(place, symbol) for symbol in formulas.parse(widths).names}
            kind = "indexed_pairs" if term is Term.INDEXER else "pairs"
            inputs["pairs"] = pairs(f"{prefix}.{kind}.{place.label}", leaves, place, batch, mask, seen)
            inputs["layers"] = leaves.times(place, used=True)
            text, symbol = f"2*layers*{widths}*pairs", place.label.replace(".", "_")
            found.setdefault(term, {})[symbol] = derive(f"{prefix}.{term}.{place.label}", text, "FLOP", **inputs)
    return {term: add(f"{prefix}.{term}", terms, "FLOP") for term, terms in found.items()}


def _core(block: Attends, *, windows: bool) -> dict[Term, tuple[str, Seen]]:
    """Multiplications per (query, key) pair in each term, and the pairs that it does."""
    seen = seen_by(block) if windows else ALL
    score = "heads*(qk_nope + qk_rope)" if isinstance(block, MLA) else "heads*head_dim"
    value = "heads*head_dim" if isinstance(block, CompressedAttention) else "heads*v_head_dim"
    rows = {Term.SCORES: (score, seen), Term.VALUES: (value, seen)}
    scored = indexed_by(block)
    return rows | ({Term.INDEXER: ("index_heads*index_dim", scored)} if scored else {})


def _mixer_core(leaves: Leaves, tokens: Quantity) -> dict[Term, Quantity]:
    terms = {}
    for place in places(leaves.spec):
        if isinstance(place.block, Mixer) and place.block.core_flops and not place.mtp:
            name = f"flops.forward.{Term.MIXER_CORE}.{place.label}"
            core, layers = leaves.dim(place, "core_flops"), leaves.times(place, used=True)
            inputs = {"core_flops": core, "layers": layers, "tokens": tokens}
            terms[place.label.replace(".", "_")] = derive(name, "core_flops*layers*count(tokens)", "FLOP", **inputs)
    return {Term.MIXER_CORE: add(f"flops.forward.{Term.MIXER_CORE}", terms, "FLOP")} if terms else {}


def _mtp(leaves: Leaves, batch: Batch, mask: Mask, parts: Mapping[Term, Quantity]) -> dict[Term, Quantity]:
    """Multi-token prediction: its own weights, its attention, and the head once more per module."""
    own = weights(leaves, Term.MTP)
    if own.kind != "derived":
        return {}
    modules = leaves.get("model.mtp_modules", max(1, len(leaves.spec.mtp)))
    core = attention_core("flops.forward.mtp", leaves, batch, mask, mtp=True)
    name = f"flops.forward.{Term.MTP}"
    inputs = {"weights": own, "tokens": batch.tokens, "modules": modules, "head": parts[Term.HEAD]}
    linear = derive(f"{name}.matmuls", "2*weights*tokens + modules*head", "FLOP", **inputs)
    return {Term.MTP: add(name, {"matmuls": linear, **core}, "FLOP")}


def _recomputed(parts: Mapping[Term, Quantity], mode: Recompute) -> Quantity:
    terms = {term: q for term, q in parts.items() if term in AGAIN[mode]}
    if not terms:
        return leaf("flops.recompute", 0, "FLOP", "specified", note=f"recompute {mode}: nothing is computed twice")
    return add("flops.recompute", terms, "FLOP").titled(f"Recomputed in the backward pass ({mode})")


def add(name: str, terms: Mapping[Any, Quantity], unit: str) -> Quantity:
    """The sum of named terms; the keys are their symbols."""
    inputs = {str(key): value for key, value in terms.items()}
    return derive(name, " + ".join(inputs), unit, **inputs)
