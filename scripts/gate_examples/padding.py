"""``examples/gates/padding``: one step's batch of chat, code and documents, padded to 4,096; and a small mask."""

from collections.abc import Mapping
from io import BytesIO

import numpy as np
from numpy.random import Generator
from scripts.gate_examples.example import Example, table

LONGEST = 4096
# kind -> sequences, median tokens, spread of their logarithm
KINDS = {"chat": (640, 420, 0.9), "code": (256, 1100, 0.8), "document": (96, 3600, 0.5), "tool-call": (32, 160, 0.4)}
ROWS, WIDTH = 48, 128  # of the mask


def _files(rng: Generator) -> Mapping[str, str | bytes]:
    rows: list[tuple[object, ...]] = []
    for kind, (n, median, spread) in KINDS.items():
        drawn = np.exp(rng.normal(np.log(median), spread, n))
        rows += [(int(length), kind) for length in np.clip(drawn, 8, LONGEST)]
    order = rng.permutation(len(rows))
    return {"lengths.csv": table(("length", "kind"), [rows[at] for at in order]), "mask.npy": _mask(rng)}


def _mask(rng: Generator) -> bytes:
    """Rows of a generation batch: padded on the left, as decoding wants them."""
    true = rng.integers(WIDTH // 2, WIDTH + 1, ROWS)
    mask = np.arange(WIDTH)[None, :] >= (WIDTH - true)[:, None]
    out = BytesIO()
    np.save(out, mask.astype(np.int8))
    return out.getvalue()


EXAMPLE = Example(
    "padding",
    "1,024 sequences of one step, padded to 4,096 tokens: chat turns are short and documents are not. A quarter of\n"
    "the slots hold a token. The mask is a small batch for generation, padded on the left.",
    ("padding", "{here}/lengths.csv", "--max-length", "4096", "--model", "llama-3-8b", "--batch-size", "32",
     "--column", "slice=kind"),
    _files,
    {"mask": ("padding", "{here}/mask.npy")},
)  # fmt: skip
