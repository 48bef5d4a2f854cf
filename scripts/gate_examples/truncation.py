"""``examples/gates/truncation``: a recommender that draws on 256 events of a history, scored at five lengths.

`draw` is also what tests measure the gate with: the depth of the signal is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scripts.gate_examples.example import Example, table

Floats = NDArray[np.float64]
DEPTH, LENGTHS = 256, (16, 64, 256, 1024, 4096)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Examples of users: label, history and the score at every length."""

    user: NDArray[np.int64]
    label: NDArray[np.int64]
    history: NDArray[np.int64]
    at: Mapping[int, Floats]


@dataclass(frozen=True)
class Signal:
    """Events older than ``depth`` carry nothing; ``noise`` is that of training the model once more."""

    depth: int = DEPTH
    strength: float = 1.2
    noise: float = 0.05


def draw(
    rng: Generator, users: int, each: int, lengths: Sequence[int] = LENGTHS, signal: Signal | None = None
) -> Drawn:
    """``each`` examples of every user. A score sums events inside both length and depth, and the example's own part.

    Sums of independent normal events are drawn block by block between the lengths, which has the same distribution.
    """
    signal = signal or Signal()
    history = np.clip(np.exp(rng.normal(5.8, 1.3, users)), 4, 8192).astype(np.int64)
    edges = sorted({*lengths, signal.depth})
    total, before, sums = np.zeros(users), 0, {}
    for edge in edges:
        inside = np.clip(np.minimum(history, signal.depth) - before, 0, edge - before)
        total = total + rng.normal(0, 1, users) * np.sqrt(inside / signal.depth)
        sums[edge], before = total, edge
    user = np.repeat(np.arange(users), each)
    own = rng.normal(0, 1, len(user))
    logit = signal.strength * sums[signal.depth][user] + 0.6 * own - 0.3
    label = (rng.random(len(user)) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    at = {}
    for length in lengths:
        seen = signal.strength * sums[length][user] + 0.6 * own
        fits = history[user] <= length
        noisy = seen + signal.noise * rng.normal(0, 1, len(user))
        at[length] = np.where(fits, seen, noisy)
    return Drawn(user, label, history[user], at)


def _files(rng: Generator) -> Mapping[str, str]:
    drawn = draw(rng, 1200, 4)
    ids = [f"{user}-{at % 4}" for at, user in enumerate(drawn.user)]
    about = (ids, drawn.user.tolist(), drawn.label.tolist(), drawn.history.tolist())
    scores = [[f"{score:.4f}" for score in drawn.at[length]] for length in LENGTHS]
    columns = ("id", "user", "label", "history", *(f"score_{length}" for length in LENGTHS))
    linear = drawn.at[LENGTHS[-1]] + rng.normal(0, 0.5, len(ids))  # what the approximation loses
    return {
        "exact.csv": table(columns, zip(*about, *scores, strict=True)),
        "linear.csv": table(("id", "label", "score"), zip(ids, about[2], [f"{x:.4f}" for x in linear], strict=True)),
    }


EXAMPLE = Example(
    "truncation",
    "A recommender scored at histories of 16 to 4,096 events; events older than 256 carry nothing. The gate finds\n"
    "that 256 hold and 64 do not. Linear attention over the whole history loses to exact attention over 256 events.",
    ("truncation", "{here}/exact.csv", "--approximate", "{here}/linear.csv", "--model", "llama-3-8b"),
    _files,
    {"64": ("truncation", "{here}/exact.csv", "--length", "64")},
)
