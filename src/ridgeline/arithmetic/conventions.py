"""What published FLOP counters count: one decision table, one walk, and converters between them.

An MFU without a named convention is noise: on the same run of Llama-3.1-70B at 8k two counters of one vendor
differ by 7.6%. Each record says which weights it charges 6 FLOPs per token, how it counts the causal mask and
windows, and whether recompute is in the number. `evaluate` gives every counter term by term.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ridgeline.arithmetic.flops import Term, add, attention_core, term_of
from ridgeline.arithmetic.pairs import MASKS, Batch, Mask
from ridgeline.arithmetic.params import Leaves, weigh
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import Quantity, Source, derive

LAYERS = frozenset({Term.PROJECTIONS, Term.MIXER, Term.MLP, Term.EXPERTS, Term.SHARED_EXPERTS, Term.OTHER})
MATMULS = LAYERS | {Term.HEAD}
EVERY = MATMULS | {Term.ROUTER, Term.EMBEDDING, Term.SMALL}
_WEIGHTS = tuple(term for term in Term if term not in (Term.SCORES, Term.VALUES, Term.INDEXER, Term.MIXER_CORE))


@dataclass(frozen=True)
class Convention:
    """One counter. ``counts`` are the terms whose weights cost 6 FLOPs per token.

    ``mask`` None: attention scores are left out. ``windows``: whether a sliding window shortens attention.
    ``tied_tables``: how
    often a table that serves input and output is charged. ``once``: a layer that is
    used several times is counted as its parameters are, once. ``experts``: the active ones, or all of them.
    ``forward_passes``: 2 when the recomputed forward pass is in the number (HFU), for the layers and for the head.
    """

    name: str
    title: str
    counts: frozenset[Term]
    mask: Mask | None
    source: Source
    windows: bool = False
    tied_tables: int = 1
    once: bool = False
    experts: Literal["active", "all"] = "active"
    layer_passes: int = 1
    head_passes: int = 1
    note: str = ""


_MAXTEXT = Source("MaxText", "maxtext_utils.py, calculate_tflops_training_per_device")
_TITAN = Source("torchtitan", "models/utils.py; pull request 4300")
_BRIDGE = Source("Megatron-Bridge", "training/utils/flop_utils.py at 067f987d", "2026-11-29")
_FOUNDRY = Source("llm-foundry", "scripts/train/benchmarking/README.md")

TABLE: tuple[Convention, ...] = (
    Convention(
        "palm",
        "PaLM, appendix B",
        EVERY,
        "full",
        Source("PaLM: Scaling Language Modeling with Pathways", "arXiv:2204.02311, appendix B"),
        once=True,
        note="6N of all parameters + 12LHQT",
    ),
    Convention(
        "nanogpt",
        "nanoGPT",
        EVERY - {Term.EMBEDDING},
        "full",
        Source("nanoGPT", "model.py, estimate_mfu"),
        once=True,
        note="all parameters but positions, its table being tied; an untied input table is left out here",
    ),
    Convention(
        "narayanan-2021",
        "Narayanan 2021, equation 3",
        MATMULS,
        "full",
        Source("Efficient Large-Scale Language Model Training on GPU Clusters", "arXiv:2104.04473, eq. 3"),
        layer_passes=2,
        note="96Bslh^2(1 + s/6h + V/16lh): hardware FLOPs, every layer's forward pass computed twice",
    ),
    Convention(
        "megatron-lm",
        "Megatron-LM",
        MATMULS | {Term.MTP},
        "half",
        Source("Megatron-LM", "training/training.py, num_floating_point_operations"),
        note="no window in the count",
    ),
    Convention(
        "megatron-bridge", "Megatron-Bridge", MATMULS | {Term.MTP}, "half", _BRIDGE, windows=True, note="windows exact"
    ),
    Convention("dgxc", "NVIDIA DGXC recipes", MATMULS, "full", Source("DGX Cloud benchmarking recipes")),
    Convention("nemo", "NeMo 24.07", MATMULS, "full", Source("NeMo performance summary", "release 24.07")),
    Convention(
        "torchtitan",
        "torchtitan before PR 4300",
        MATMULS | {Term.ROUTER, Term.SMALL},
        "full",
        _TITAN,
        tied_tables=0,
        once=True,
        note="6 per parameter outside the input embedding; a tied table goes out with it",
    ),
    Convention(
        "torchtitan-windows",
        "torchtitan after PR 4300",
        MATMULS | {Term.ROUTER, Term.SMALL, Term.MTP},
        "full",
        _TITAN,
        windows=True,
        tied_tables=0,
        once=True,
        note="a windowed layer sees min(T, W) keys",
    ),
    Convention("maxtext-full", "MaxText before PR 1988", MATMULS | {Term.ROUTER}, "full", _MAXTEXT),
    Convention("maxtext", "MaxText after PR 1988", MATMULS | {Term.ROUTER}, "half", _MAXTEXT, windows=True),
    Convention(
        "maxtext-all-experts",
        "MaxText before PR 678",
        MATMULS | {Term.ROUTER},
        "full",
        _MAXTEXT,
        experts="all",
        note="a bug of its time: every expert was counted, not only the chosen",
    ),
    Convention("llm-foundry", "llm-foundry MFU", EVERY, "full", _FOUNDRY, once=True),
    Convention(
        "llm-foundry-hfu",
        "llm-foundry HFU",
        EVERY,
        "full",
        _FOUNDRY,
        once=True,
        layer_passes=2,
        head_passes=2,
        note="4/3 of its MFU under activation checkpointing",
    ),
    Convention(
        "verl",
        "verl",
        EVERY - {Term.SMALL},
        "half",
        Source("verl", "utils/flops_counter.py"),
        tied_tables=2,
        note="two tables of vocab x d_model, also when they are one",
    ),
    Convention(
        "6n",
        "6N of all active parameters",
        EVERY,
        None,
        Source("Scaling Laws for Neural Language Models", "arXiv:2001.08361, section 2.1"),
        once=True,
    ),
)
CONVENTIONS: Mapping[str, Convention] = {convention.name: convention for convention in TABLE}


@dataclass(frozen=True)
class Counted:
    """One counter's FLOPs: ``sequence`` for a whole sequence (exact integers where it can be), ``per_token``, terms."""

    convention: Convention
    sequence: Quantity
    per_token: Quantity
    terms: Mapping[Term, Quantity]


def find(name: str) -> Convention:
    """The convention of that name, or an `InputError` with the close matches."""
    if name not in CONVENTIONS:
        hint = did_you_mean(name, CONVENTIONS, "known: " + ", ".join(CONVENTIONS))
        raise InputError.expected("a known FLOP convention", name, where="the convention", hint=hint)
    return CONVENTIONS[name]


def evaluate(convention: Convention, spec: ModelSpec, batch: Batch) -> Counted:
    """Training FLOPs of one batch as this counter counts them: ``flops.<convention>.<term>``."""
    leaves = Leaves(spec)
    prefix = f"flops.{convention.name.replace('-', '_')}"
    terms = _weights(convention, leaves, batch, prefix) | _attention(convention, leaves, batch, prefix)
    sequence = add(f"{prefix}.batch", terms, "FLOP").titled(convention.title, _said(convention))
    per_token = derive(f"{prefix}.per_token", "total/tokens", "FLOP/token", total=sequence, tokens=batch.tokens)
    return Counted(convention, sequence, per_token.titled(convention.title, _said(convention)), terms)


def compare(spec: ModelSpec, batch: Batch, names: Iterable[str] = ()) -> list[Counted]:
    """Every counter, or the named ones, on the same model and batch."""
    return [evaluate(find(name), spec, batch) for name in names or CONVENTIONS]


def convert(mfu: Quantity, source: str, target: str, spec: ModelSpec, batch: Batch) -> Quantity:
    """An MFU (or HFU) under one convention as it reads under another: the same run, other FLOPs.

    ``mfu.<target>`` in percent. Raises `InputError` for an unknown convention.
    """
    before, after = (evaluate(find(name), spec, batch).per_token for name in (source, target))
    name = f"mfu.{target.replace('-', '_')}"
    found = derive(name, "mfu*after/before", "%", mfu=mfu, after=after, before=before)
    return found.titled(f"MFU as {find(target).title} counts it")


def _weights(convention: Convention, leaves: Leaves, batch: Batch, prefix: str) -> dict[Term, Quantity]:
    terms: dict[Term, Quantity] = {}
    for term in _WEIGHTS:
        counted = _counted_weights(convention, leaves, term, prefix)
        if counted is not None:
            inputs = {"weights": counted, "tokens": batch.tokens}
            text = f"{_per_weight(convention, term, tied=leaves.spec.tied)}*weights*tokens"
            terms[term] = derive(f"{prefix}.{term}", text, "FLOP", **inputs)
    return terms


def _per_weight(convention: Convention, term: Term, *, tied: bool) -> int:
    """FLOPs per weight and token: 2 for each forward pass, 4 for the backward."""
    if term is not Term.HEAD:
        return 4 + 2 * convention.layer_passes
    return (4 + 2 * convention.head_passes) * (convention.tied_tables if tied else 1)


def _counted_weights(convention: Convention, leaves: Leaves, term: Term, prefix: str) -> Quantity | None:
    """The parameters that the counter charges for in this term, or None."""
    untold = term is Term.HEAD and leaves.spec.tied and not convention.tied_tables
    if term not in convention.counts or untold:
        return None
    active = convention.experts == "active"
    name = f"{prefix}.weights.{term}"
    found = weigh(leaves, name, lambda p, w: term_of(p, w) is term, active=active, used=not convention.once)
    return found if found.kind == "derived" else None


def _attention(convention: Convention, leaves: Leaves, batch: Batch, prefix: str) -> dict[Term, Quantity]:
    if convention.mask is None:
        return {}
    forward = attention_core(f"{prefix}.forward", leaves, batch, convention.mask, windows=convention.windows)
    passes = 2 + convention.layer_passes
    return {
        term: derive(f"{prefix}.{term}", f"{passes}*forward", "FLOP", forward=q)
        for term, q in forward.items()
        if term is not Term.INDEXER
    }


def _said(convention: Convention) -> str:
    """What the counter does, in words, for the label of its number."""
    mask = "attention scores left out" if convention.mask is None else MASKS[convention.mask]
    recompute = "; recompute counted" if convention.layer_passes > 1 else ""
    return f"{mask}{recompute}" + (f"; {convention.note}" if convention.note else "")
