"""``examples/gates/recovery``: three benchmarks at 8 bit, of which a small one cannot decide."""

from collections.abc import Mapping

from numpy.random import Generator
from scripts.gate_examples.example import Example, table

# task -> examples, baseline's rate, share lost, share gained
TASKS = {"gsm8k": (1000, 0.75, 0.05, 0.05), "arc": (1200, 0.62, 0.02, 0.015), "aime": (30, 0.40, 0.03, 0.03)}


def _files(rng: Generator) -> Mapping[str, str]:
    base_rows, cand_rows = [], []
    for task, (n, rate, lost, gained) in TASKS.items():
        right = rng.random(n) < rate
        flip = rng.random(n)
        later = (right & (flip >= lost / rate)) | (~right & (flip < gained / (1 - rate)))
        for i in range(n):
            base_rows.append((f"{task}-{i:04d}", task, int(right[i])))
            cand_rows.append((f"{task}-{i:04d}", task, int(later[i])))
    columns = ("id", "task", "exact_match")
    return {"bf16.csv": table(columns, base_rows), "w8a8.csv": table(columns, cand_rows)}


EXAMPLE = Example(
    "recovery",
    "Three benchmarks before and after 8-bit quantization. The rule `round(candidate / baseline, 2) >= 0.95` answers\n"
    "for each. The interval says that the small one, with 30 questions, decides nothing.",
    ("recovery", "--baseline", "{here}/bf16.csv", "--candidate", "{here}/w8a8.csv"),
    _files,
)
