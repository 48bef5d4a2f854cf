"""``examples/gates/cascade``: a confidence that knows the frequent slices and is sure of itself in the rarest."""

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from scripts.gate_examples.example import Example, table

SLICES = {"chat": 2600, "code": 1500, "summaries": 1000, "mathematics": 500, "translation": 250, "law": 250}
SURE = "law"  # where the weak model is wrong and confident
WEAK_THERE, CONFIDENT = 0.60, 0.97
STRONG_GAIN = 1.6  # logits that the strong model has on top


def _files(rng: Generator) -> Mapping[str, str]:
    rows = []
    for name, n in SLICES.items():
        logit = rng.normal(3.0, 2.6, n)
        chance = 1 / (1 + np.exp(-logit))
        better = 1 / (1 + np.exp(-(logit + STRONG_GAIN)))
        said = chance.copy()
        if name == SURE:
            chance, better, said = np.full(n, WEAK_THERE), np.full(n, 0.9), np.full(n, CONFIDENT)
        draw = rng.random(n)  # one draw for both: what the weak model solves, the strong one mostly does too
        weak, strong = draw < chance, np.where(rng.random(n) < 0.01, draw >= better, draw < better)
        said = np.clip(said + rng.normal(0, 0.02, n), 0.001, 0.999)
        length = rng.integers(50, 400, n)
        for i in range(n):
            costs = f"{0.02 * length[i]:.2f}", f"{0.4 * length[i]:.2f}"
            rows.append((f"{name}-{i:04d}", name, int(weak[i]), int(strong[i]), f"{said[i]:.3f}", *costs))
    columns = ("id", "slice", "weak", "strong", "confidence", "cost_weak", "cost_strong")
    return {"routed.csv": table(columns, [rows[i] for i in rng.permutation(len(rows))])}


def _command(router: str) -> tuple[str, ...]:
    return ("cascade", "--weak", "{here}/routed.csv#weak", "--strong", "{here}/routed.csv#strong", "--router", router,
            "--cost", "cost_weak:cost_strong", "--slices", "slice", "--margin", "2%")  # fmt: skip


EXAMPLE = Example(
    "cascade",
    "The weak model's confidence finds the hard examples and saves half of the compute; on average the cascade loses\n"
    "less than its margin. In one rare slice, 4% of the traffic, the weak model is sure of itself and wrong, and\n"
    "nothing escalates. An average alone would ship it; the gate does not. A router of slices has no threshold inside\n"
    "the margin on these examples: it escalates all of them, and saves nothing.",
    _command("confidence"),
    _files,
    variants={"by slice": _command("slice")},
)
