"""``examples/gates/precision``: bf16 against a cheaper format that is worse in one rare slice."""

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from scripts.gate_examples.example import Example, table

SLICES = {"prose": 1600, "code": 1100, "dialogue": 700, "mathematics": 400, "tables": 240, "low-resource": 160}
HARMED, LOSS = "low-resource", 0.20  # of its examples that were right turn wrong
DISCORDANT = 0.006  # of all others, half in each direction


def _files(rng: Generator) -> Mapping[str, str]:
    base_rows, cand_rows = [], []
    for name, n in SLICES.items():
        logit = rng.normal(1.4, 1.1, n)
        right = 1 / (1 + np.exp(-logit))
        correct = rng.random(n) < right
        flip = rng.random(n) < DISCORDANT
        later = np.where(flip, ~correct, correct)
        if name == HARMED:
            later &= ~(rng.random(n) < LOSS)
        moved = 1 / (1 + np.exp(-(logit + rng.normal(0, 0.02, n))))
        for i in range(n):
            key = f"{name}-{i:04d}"
            base_rows.append(_row(key, name, correct[i], right[i]))
            cand_rows.append(_row(key, name, later[i], moved[i]))
    order = rng.permutation(len(cand_rows))  # pairs are found by content, not by row
    columns = ("id", "slice", "accuracy", "log_loss", "confidence")
    return {
        "bf16.csv": table(columns, base_rows),
        "mxfp8.csv": table(columns, [cand_rows[i] for i in order]),
        "spec.toml": _SPEC,
    }


def _row(key: str, name: str, correct: bool, confidence: float) -> tuple[object, ...]:
    loss = -np.log(confidence if correct else 1 - confidence)
    return key, name, int(correct), f"{loss:.4f}", f"{confidence:.4f}"


_SPEC = """\
gate = "precision"
metrics = ["accuracy"]
margin = "1%"
slice_margin = "3%"
slices = "slice"
note = "Six kinds of text; the rarest decides as much as the most frequent."
"""

EXAMPLE = Example(
    "precision",
    "The cheaper format loses nothing on average and a fifth of its right answers in the rarest slice, 4% of the\n"
    "traffic. An average alone would ship it; the gate does not.",
    ("precision", "--baseline", "{here}/bf16.csv", "--candidate", "{here}/mxfp8.csv", "--slices", "slice",
     "--metric", "accuracy"),
    _files,
)  # fmt: skip
