"""``examples/gates/regression``: a checkpoint whose average stays while one of eight tasks is lost."""

from collections.abc import Mapping

from numpy.random import Generator
from scripts.gate_examples.example import Example, table

TASKS = {"arc": 1100, "boolq": 900, "csqa": 1200, "hellaswag": 1500, "piqa": 900, "siqa": 900, "winogrande": 1200,
         "xnli-sw": 700}  # fmt: skip
LOST, GAINED = "xnli-sw", "hellaswag"


def _files(rng: Generator) -> Mapping[str, str]:
    base_rows, cand_rows = [], []
    for task, n in TASKS.items():
        right = rng.random(n) < 0.7
        lose, gain = (0.09, 0.01) if task == LOST else (0.005, 0.06) if task == GAINED else (0.01, 0.02)
        flip = rng.random(n)
        later = (right & (flip >= lose / 0.7)) | (~right & (flip < gain / 0.3))
        for i in range(n):
            base_rows.append((f"{task}-{i:04d}", task, int(right[i])))
            cand_rows.append((f"{task}-{i:04d}", task, int(later[i])))
    columns = ("id", "task", "acc")
    return {"step-90k.csv": table(columns, base_rows), "step-100k.csv": table(columns, cand_rows)}


EXAMPLE = Example(
    "regression",
    "Eight tasks at two checkpoints. The average rises, because one task gained much; another lost eight points, and\n"
    "the gate names it.",
    ("regression", "--baseline", "{here}/step-90k.csv", "--candidate", "{here}/step-100k.csv"),
    _files,
)
