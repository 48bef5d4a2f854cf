"""Train the ladder: one run per row, each with its own warm-up and cosine schedule that ends with its tokens.

    PYTHONPATH=src python examples/ladder/train.py --out examples/ladder

Needs the extra ``lab`` (JAX); AdamW is written out below. Parameters and FLOPs are the exact counts of
`ridgeline.arithmetic`. Every batch is new text: no token is read twice.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import language
import numpy as np
import transformer
from numpy.typing import NDArray

from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.shape import model

LAYERS, CONTEXT, SEQUENCES = 2, 16, 32  # a step reads 512 tokens
WIDTH_LR = 0.3  # learning rate = WIDTH_LR / d_model
DECAY, BETA1, BETA2, WARMUP = 0.1, 0.9, 0.95, 0.05
SKIP = 2  # predictions of a sequence that have less than three words before them are not scored
HELD_OUT = 2**19
CHUNK = 64  # steps that one call runs

SWEEP = {1e10: (8, 16, 24, 32), 3e10: (8, 16, 24, 32, 48), 1e11: (16, 24, 32, 48, 64),
         3e11: (16, 24, 32, 48, 64)}  # fmt: skip
REPLICATES = {1e10: (16,), 1e11: (24, 48)}  # two more seeds each
HELD_BACK = {1e12: (32, 48, 64), 3e12: (64,)}  # what the ladder is to forecast
CANDIDATE = {1e10: (8, 16, 24), 3e10: (8, 16, 24, 32), 1e11: (16, 24, 32, 48), 3e11: (16, 24, 32, 48)}


@dataclass(frozen=True)
class Run:
    """One run of a file: its budget in FLOP, width, seed and recipe (``smear`` adds the previous word's embedding)."""

    file: str
    budget_flops: float
    width: int
    seed: int = 0
    recipe: str = "plain"


def runs() -> Iterator[Run]:
    """Every run, cheapest first within its file."""
    for budget, widths in SWEEP.items():
        yield from (Run("points", budget, width) for width in widths)
    for budget, widths in REPLICATES.items():
        yield from (Run("points", budget, width, seed) for width in widths for seed in (1, 2))
    for budget, widths in CANDIDATE.items():
        yield from (Run("candidate", budget, width, recipe="smear") for width in widths)
    for budget, widths in HELD_BACK.items():
        yield from (Run("held_back", budget, width) for width in widths)


def row(run: Run, text: NDArray[np.int8], held_out: NDArray[np.int8]) -> dict[str, object]:
    """Train one run and return its line of the table: sizes as counts, the held-out loss in nats per token."""
    shape = transformer.shape(run.width, LAYERS, language.VOCAB, CONTEXT)
    spec = model(shape)
    counted, step = params(spec), flops(spec, Batch.of(CONTEXT, SEQUENCES), mask="exact")
    per_token = float(step.per_token.value)
    steps = max(1, round(run.budget_flops / (per_token * CONTEXT * SEQUENCES)))
    tokens = steps * CONTEXT * SEQUENCES
    extra = language.VOCAB * run.width if run.recipe == "smear" else 0
    budget = f"{run.budget_flops:.0e}".replace("e+", "e")
    weights = train(run, shape, batches(text, steps, run.seed), steps)
    assert sum(w.size for w in weights.values()) == counted.total.value + extra
    return {
        "run": f"{run.recipe}-d{run.width}-{budget}-s{run.seed}", "recipe": run.recipe,
        "seed": run.seed, "budget": budget, "params_total": int(counted.total.value) + extra,
        "params_non_embedding": int(counted.non_embedding.value), "tokens": tokens, "horizon_tokens": tokens,
        "flops": per_token * tokens, "loss": round(score(weights, held_out), 5), "lr": round(WIDTH_LR / run.width, 7),
        "batch_tokens": CONTEXT * SEQUENCES, "d_model": run.width, "layers": LAYERS, "heads": shape.heads,
        "vocab": shape.vocab, "seq_len": CONTEXT, "schedule": "cosine to 0",
    }  # fmt: skip


def batches(text: NDArray[np.int8], steps: int, seed: int) -> NDArray[np.int8]:
    """Sequences in an order of the seed's own, shape (steps, SEQUENCES, CONTEXT + 1)."""
    pieces = text[:, : text.shape[1] // (CONTEXT + 1) * (CONTEXT + 1)].reshape(-1, CONTEXT + 1)
    picked = np.random.default_rng(seed).permutation(len(pieces))[: steps * SEQUENCES]
    return pieces[picked].reshape(steps, SEQUENCES, CONTEXT + 1)


def train(run: Run, shape: transformer.Shape, data: NDArray[np.int8], steps: int) -> transformer.Tree:
    """The weights after ``steps`` steps of AdamW."""
    weights = transformer.init(shape, jax.random.key(run.seed))
    if run.recipe == "smear":
        weights["before"] = jnp.zeros_like(weights["embed"])
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = (weights, zeros, zeros, jnp.zeros(()))
    ends = [*range(CHUNK, steps + 1, CHUNK), *range(steps // CHUNK * CHUNK + 1, steps + 1)]
    begin = 0
    for end in ends:
        state = advance(state, jnp.asarray(data[begin:end].astype(np.int32)), WIDTH_LR / run.width, float(steps))
        begin = end
    return jax.block_until_ready(state[0])


@jax.jit
def advance(state: tuple, data: jax.Array, lr: float, steps: float) -> tuple:
    """One step per batch of ``data``."""
    return jax.lax.scan(lambda carry, batch: (_adamw(carry, batch, lr, steps), None), state, data)[0]


def _adamw(state: tuple, batch: jax.Array, lr: float, steps: float) -> tuple:
    weights, first, second, count = state
    slope = jax.grad(transformer.loss)(weights, batch)
    count = count + 1
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, first, slope)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, second, slope)
    rate = lr * jnp.minimum(count / jnp.maximum(1.0, WARMUP * steps), 0.5 * (1 + jnp.cos(jnp.pi * count / steps)))

    def move(w: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        direction = m / (1 - BETA1**count) / (jnp.sqrt(v / (1 - BETA2**count)) + 1e-8)
        return w - rate * (direction + (DECAY * w if w.ndim > 1 else 0.0))

    return jax.tree.map(move, weights, first, second), first, second, count


def score(weights: transformer.Tree, held_out: NDArray[np.int8]) -> float:
    """Held-out loss over whole sequences."""
    pieces = held_out[:, : held_out.shape[1] // (CONTEXT + 1) * (CONTEXT + 1)].reshape(-1, CONTEXT + 1)
    mean = jax.jit(lambda w, x: transformer.loss(w, x, SKIP))
    parts = np.array_split(pieces, len(pieces) // 4096)
    values = [float(mean(weights, jnp.asarray(part.astype(np.int32)))) for part in parts]
    return float(np.average(values, weights=[len(part) for part in parts]))


def main() -> None:
    """Train what was asked for and write one table per file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--only", choices=("points", "candidate", "held_back"), help="one of the tables")
    options = parser.parse_args()
    cumulative = language.table()
    held_out = language.draw(cumulative, HELD_OUT, seed=1)
    say(f"entropy of the held-out text: {language.entropy(cumulative, held_out):.5f} nats per token")
    text = language.draw(cumulative, 2**24, seed=0)
    for name in ("points", "candidate", "held_back"):
        if options.only in (None, name):
            write(options.out / f"{name}.csv", (row(run, text, held_out) for run in runs() if run.file == name))


def say(*words: object) -> None:
    """Progress, on stderr."""
    sys.stderr.write(" ".join(map(str, words)) + "\n")


def write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """One table, a line as soon as its run has ended."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for found in rows:
            if writer is None:
                writer = csv.DictWriter(file, found.keys(), lineterminator="\n")
                writer.writeheader()
            writer.writerow(found)
            file.flush()
            say(*found.values())


if __name__ == "__main__":
    main()
