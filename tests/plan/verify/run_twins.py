"""Runs twins on virtual devices and prints loss and summed gradients: started by ``test_program`` as a process.

Whole tensors are drawn once and cut as a rank of the plan holds them, so that every plan starts from one model.
"""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ridgeline.arithmetic.shape import Shape
from ridgeline.plan.job import Plan
from ridgeline.plan.verify import program
from ridgeline.plan.verify.twin import Twin
from ridgeline.plan.verify.weights import Unit, units

SHAPE = Shape(layers=2, d_model=64, d_ff=128, heads=8, kv_heads=4, head_dim=16, vocab=256)
SEQ, SEQUENCES = 32, 4
ROWS = {"table", "out", "down"}  # cut by rows; qkv and up by columns of each of their parts
PARTS = {"qkv": [128, 192], "up": [128]}


def cut(name: str, whole: Any, rank: int, tp: int) -> Any:
    """What one rank of tp holds of a tensor."""
    if name in ROWS:
        return np.split(whole, tp, 0)[rank]
    if name in PARTS:
        return np.concatenate([np.split(part, tp, 1)[rank] for part in np.split(whole, PARTS[name], 1)], 1)
    return whole


def join(name: str, held: list[Any]) -> Any:
    """The whole tensor from the parts of all ranks of tp."""
    if name in ROWS:
        return np.concatenate(held, 0)
    if name in PARTS:
        tp = len(held)
        edges = [edge // tp for edge in PARTS[name]]
        split = [np.split(part, edges, 1) for part in held]
        return np.concatenate([np.concatenate(parts, 1) for parts in zip(*split, strict=True)], 1)
    return held[0]


def run(twin: Twin, whole: dict[str, dict[str, Any]], tokens: Any, targets: Any) -> tuple[float, dict[str, Any]]:
    """Mean loss, and the gradients of whole tensors read from the first moment."""
    tp, every = twin.plan.tp, units(twin)
    params = {
        unit.name: np.stack(
            [np.concatenate([cut(n, w, r, tp).ravel() for n, w in whole[unit.name].items()]) for r in range(tp)]
        )
        for unit in every
    }
    if twin.plan.zero < 3:
        params = {"dense": np.concatenate([params[unit.name] for unit in every], 1)}
    empty = jax.tree.map(np.zeros_like, params)
    compiled = program.lowered(twin).compile()
    placed = jax.device_put(
        ({"params": params, "first": empty, "second": empty}, tokens, targets), compiled.input_shardings[0]
    )
    state, loss = compiled(*placed)
    first = {name: np.asarray(item) for name, item in state["first"].items()}
    if twin.plan.zero < 3:
        ends = np.cumsum([unit.size for unit in every])[:-1]
        first = dict(zip([unit.name for unit in every], np.split(first["dense"], ends, 1), strict=True))
    grads = {f"{unit.name}.{name}": value for unit in every for name, value in whole_of(unit, first[unit.name]).items()}
    scale = (1 - program._BETA_1) * twin.plan.dp * twin.micro_batches
    return float(np.mean(np.asarray(loss))) / twin.micro_batches, {name: value / scale for name, value in grads.items()}


def whole_of(unit: Unit, vectors: Any) -> dict[str, Any]:
    """The whole tensors of a unit from the vectors of all ranks of tp."""
    held = [unit.unpack(vector) for vector in vectors]
    return {name: join(name, [part[name] for part in held]) for name in unit.shapes}


def drawn(draw: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A tensor: gains around one, weights around zero."""
    return draw.normal(1.0 if len(shape) == 1 else 0.0, 0.1, shape).astype(np.float32)


def main() -> None:
    """Plans from stdin; loss and the largest difference of any gradient from the first plan's to stdout."""
    plans = [Plan.of(**columns) for columns in json.load(sys.stdin)]
    draw = np.random.default_rng(7)
    base = units(Twin(SHAPE, Plan.of(), SEQ))
    whole = {
        u.name: {n: draw.normal(1.0 * (len(s) == 1), 0.1, s).astype(np.float32) for n, s in u.shapes.items()}
        for u in base
    }
    tokens, targets = draw.integers(0, SHAPE.vocab, (2, SEQUENCES, SEQ)).astype(np.int32)
    found: list[dict[str, float]] = []
    reference: dict[str, Any] = {}
    for plan in plans:
        micro = SEQUENCES // (plan.dp * plan.micro_batch)
        made = Twin(SHAPE, plan, SEQ, micro)
        shape = (micro, plan.dp * plan.micro_batch, SEQ)
        loss, grads = run(made, whole, jnp.asarray(tokens.reshape(shape)), jnp.asarray(targets.reshape(shape)))
        reference = reference or grads
        off = max(float(np.abs(grads[n] - g).max() / np.abs(g).max()) for n, g in reference.items())
        found.append({"loss": loss, "off": off})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
