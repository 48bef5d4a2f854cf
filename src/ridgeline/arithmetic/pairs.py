"""How many (query, key) pairs attention computes: the factor that all attention FLOPs share.

Three ways to count the causal mask, always named in the output:

* ``full``: every query against every key of the sequence, T^2. PaLM (arXiv:2204.02311, appendix B) counts so.
* ``half``: T^2/2, a window that is shorter than the sequence exact. Megatron-LM counts so.
* ``exact``: what the mask lets through, sum over q of min(q + 1, W).

Legend: T = positions in a sequence, W = window, chunk or sparse budget in keys, q = position of a query from 0,
P = positions that one entry of a compressed past stands for, K = entries that an indexer selects.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ridgeline.arithmetic.params import Leaves, Place
from ridgeline.arithmetic.spec import MLA, Attention, CompressedAttention
from ridgeline.core import formula as formulas
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf

Mask = Literal["full", "half", "exact"]
Reach = Literal["all", "window", "chunk", "entries", "selected"]

MASKS: dict[Mask, str] = {
    "full": "causal mask not halved: every query against every key",
    "half": "causal mask counted as half of all pairs; windows shorter than the sequence exact",
    "exact": "exactly the pairs that the causal mask and the window let through",
}

Attends = Attention | MLA | CompressedAttention
_LIMITED = "min({keys}, {most})*{keys} - floor(min({keys}, {most})*(min({keys}, {most}) - 1)/2)"
_ENTRIES = "floor({keys}/P)*({keys} + 1) - floor(P*floor({keys}/P)*(floor({keys}/P) + 1)/2)"
_T, _SELECTED = "count(T)", "min(count(T), K*P)"

# One row per way of counting and per reach of a query; a compressed past adds its row to that of the window.
PAIRS: dict[tuple[Mask, Reach], str] = {
    ("full", "all"): "count(T)**2",
    ("half", "all"): "count(T)**2/2",
    ("exact", "all"): "floor(count(T)*(count(T) + 1)/2)",
    ("full", "window"): "count(T)*min(count(T), W)",
    ("half", "window"): "where(W < count(T), W*count(T) - W*(W - 1)/2, count(T)**2/2)",
    ("exact", "window"): _LIMITED.format(keys=_T, most="W"),
    ("full", "chunk"): "floor(count(T)/W)*W**2 + (count(T) % W)**2",
    ("half", "chunk"): "floor(count(T)/W)*W**2/2 + (count(T) % W)**2/2",
    ("exact", "chunk"): "floor(count(T)/W)*floor(W*(W + 1)/2) + floor((count(T) % W)*(count(T) % W + 1)/2)",
    ("full", "entries"): "count(T)*floor(count(T)/P)",
    ("half", "entries"): _ENTRIES.format(keys=_T),
    ("exact", "entries"): _ENTRIES.format(keys=_T),
    ("full", "selected"): "count(T)*min(floor(count(T)/P), K)",
    ("half", "selected"): f"{_ENTRIES.format(keys=_SELECTED)} + (count(T) - {_SELECTED})*K",
    ("exact", "selected"): f"{_ENTRIES.format(keys=_SELECTED)} + (count(T) - {_SELECTED})*K",
}


@dataclass(frozen=True)
class Batch:
    """What one step reads: ``sequences`` of ``seq`` positions each.

    ``seq`` is the whole sequence, however many chips share it: context parallelism divides the pairs of the whole
    sequence, and squaring a chip's share of it instead would lose a factor of the context-parallel size.
    ``documents`` are the lengths packed into the step when attention stops at document borders (sum of s_i^2);
    empty: each sequence is one document.
    """

    seq: Quantity
    sequences: Quantity
    documents: tuple[int, ...] = ()

    @classmethod
    def of(cls, seq: int, sequences: int = 1, documents: tuple[int, ...] = ()) -> "Batch":
        """A batch from plain integers. Raises `InputError` for sizes that do not fit."""
        for name, value in (("seq", seq), ("sequences", sequences), *(("documents", d) for d in documents)):
            if value <= 0:
                raise InputError.expected("a whole number above zero", value, where=f"batch.{name}")
        if sum(documents) > seq * sequences:
            raise InputError.expected(f"documents of at most {seq * sequences} tokens", sum(documents), where="batch")
        return cls(given("batch.seq_len", seq, "token"), given("batch.sequences", sequences, "1"), documents)

    @property
    def tokens(self) -> Quantity:
        """Tokens of one step, padding included."""
        return derive("batch.tokens", "seq*sequences", "token", seq=self.seq, sequences=self.sequences)


@dataclass(frozen=True)
class Seen:
    """What a query sees: rows of `PAIRS` that add up, and the block's fields that limit them, by symbol."""

    rows: tuple[Reach, ...]
    fields: dict[str, str]


ALL = Seen(("all",), {})


def seen_by(block: Attends) -> Seen:
    """What a query of this layer attends to."""
    if isinstance(block, CompressedAttention):
        return _seen_compressed(block)
    if isinstance(block, Attention) and block.chunk is not None:
        return Seen(("chunk",), {"W": "chunk"})
    if isinstance(block, Attention) and block.window is not None:
        return Seen(("window",), {"W": "window"})
    return ALL if block.sparse_top_k is None else Seen(("window",), {"W": "sparse_top_k"})


def _seen_compressed(block: CompressedAttention) -> Seen:
    if not block.compress:
        return Seen(("window",), {"W": "window"})
    fields = {"W": "window", "P": "compress"}
    if block.sparse_top_k is None:
        return Seen(("window", "entries"), fields)
    return Seen(("window", "selected"), fields | {"K": "sparse_top_k"})


def indexed_by(block: Attends) -> Seen | None:
    """What an indexer scores to choose from: every key, or every entry of a compressed past. None without one."""
    if not block.dims.get("index_heads"):
        return None
    return Seen(("entries",), {"P": "compress"}) if isinstance(block, CompressedAttention) else ALL


def pairs(name: str, leaves: Leaves, place: Place, batch: Batch, mask: Mask, seen: Seen) -> Quantity:
    """The pairs of one layer over the whole step, a plain number.

    A layer without causal mask (an encoder) always counts every pair.
    """
    block = place.block
    assert isinstance(block, Attends), block
    text = " + ".join(PAIRS[mask if block.causal else "full", row] for row in seen.rows)
    limits = {symbol: leaves.dim(place, field) for symbol, field in seen.fields.items()}
    if batch.documents:
        return _of_documents(name, text, limits, batch)
    one = derive(f"{name}.sequence", text, "1", T=batch.seq, **limits)
    return derive(name, "pairs*sequences", "1", pairs=one, sequences=batch.sequences).titled("", MASKS[mask])


def _of_documents(name: str, text: str, limits: dict[str, Quantity], batch: Batch) -> Quantity:
    """The same formula summed over documents: plain NumPy, a leaf that says what was summed."""
    lengths, repeats = np.unique(np.asarray(batch.documents), return_counts=True)
    parsed = formulas.parse(text)
    plain: dict[str, Any] = {symbol: item.value for symbol, item in limits.items()}
    value = sum(
        int(number) * parsed.evaluate({"T": int(length), **plain})
        for length, number in zip(lengths, repeats, strict=True)
    )
    source = Source("document lengths of the batch", f"{len(batch.documents)} documents")
    return leaf(name, value, "1", "specified", source, note=f"sum over documents of length T of {text}")
