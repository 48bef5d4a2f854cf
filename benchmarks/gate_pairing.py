"""How long two runs of a million rows and a hundred slices take to be read, paired and judged.

    python benchmarks/gate_pairing.py [--rows 1000000] [--slices 100] [--metric acc|log_loss] [--form csv|parquet|jsonl]

Writes two tables of the same examples in different orders, and judges them in a fresh process as `ridgeline gate
precision` does: every slice, the lowest-volume decile, where the errors went, the rules about the evidence. Time is
that of the process without imports, memory its peak resident set.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

_JUDGE = """
import json, resource, sys, time
import numpy, polars, scipy.stats
from ridgeline.gate.evidence.pairing import pair
from ridgeline.gate.evidence.reader import read
from ridgeline.gate.case import case_of
from ridgeline.gate.gates.precision import decide
from ridgeline.gate.registration.plan import Plan
marks = [("", time.perf_counter(), time.process_time())]
def mark(name):
    marks.append((name, time.perf_counter(), time.process_time()))
runs = [read(path) for path in sys.argv[1:3]]
mark("read")
pairs = pair(*runs)
mark("pair")
decided = decide(pairs, Plan(gate="precision", slices="slice"))
mark("judge")
case = case_of(decided)
mark("report")
both = zip(marks, marks[1:])
print(json.dumps({
    "stages": {now[0]: [now[1] - was[1], now[2] - was[2]] for was, now in both},
    "wall_s": marks[-1][1] - marks[0][1], "cpu_s": marks[-1][2] - marks[0][2],
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "pairs": len(pairs), "checks": len(decided.checks), "outcome": str(decided.outcome),
}))
"""


def write(folder: Path, rows: int, slices: int, metric: str, form: str) -> list[Path]:
    """Two tables: baseline in order, candidate shuffled, with slices of falling size."""
    rng = np.random.default_rng(7)
    weight = 1 / np.arange(1, slices + 1)
    names = np.array([f"slice_{n:03d}" for n in range(slices)])
    frame = pl.DataFrame({
        "id": [f"example-{n:08d}" for n in range(rows)],
        "slice": names[rng.choice(slices, rows, p=weight / weight.sum())],
        "prompt_hash": [f"{n * 2654435761 % 2**64:016x}" for n in range(rows)],
    })  # fmt: skip
    loss = rng.gamma(2.0, 0.5, rows)
    right = rng.random(rows) < 0.7
    scores = {
        "acc": (right.astype(int), (right ^ (rng.random(rows) < 0.04)).astype(int)),
        "log_loss": (loss, loss + rng.normal(0, 0.05, rows)),
    }[metric]
    paths = []
    for name, column, order in zip("ab", scores, (np.arange(rows), rng.permutation(rows)), strict=True):
        table = frame.with_columns(pl.Series(metric, column))[order]
        path = folder / f"{name}.{form}"
        if form == "csv":
            table.write_csv(path)
        elif form == "parquet":
            table.write_parquet(path)
        else:
            table.write_ndjson(path)
        paths.append(path)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--slices", type=int, default=100)
    parser.add_argument("--metric", choices=("acc", "log_loss"), default="acc")
    parser.add_argument("--form", choices=("csv", "parquet", "jsonl"), default="csv")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), asked.rows, asked.slices, asked.metric, asked.form)
        done = subprocess.run(
            [sys.executable, "-c", _JUDGE, *map(str, paths)], capture_output=True, text=True, check=True
        )
    found = json.loads(done.stdout)
    print(f"{asked.form}, {asked.metric}: {found['pairs']:,} pairs, {found['checks']} checks, {found['outcome']}")
    print(f"wall {found['wall_s']:.1f} s, CPU {found['cpu_s']:.1f} s, peak {found['peak_mib']:,.0f} MiB")
    for name, (wall_s, cpu_s) in found["stages"].items():
        print(f"  {name:8s} wall {wall_s:5.2f} s, CPU {cpu_s:5.2f} s")


if __name__ == "__main__":
    main()
