"""Requests per CPU second and memory of the simulator on public traces; prints the page.

Run: python benchmarks/simulate_speed.py [FOLDER_OF_TRACES]
"""

import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numba
import numpy as np
import polars as pl

from ridgeline.serve.simulate.costs.table import Curve, Grid, StepTable
from ridgeline.serve.simulate.engine import reference
from ridgeline.serve.simulate.engine.cache import hit_rate
from ridgeline.serve.simulate.engine.engine import Engine, Pools, Speculation
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.engine.result import Result
from ridgeline.serve.simulate.traffic.workload import Workload

TRIES = 3


def a_table() -> StepTable:
    """Roughly an 8B model on an 80 GB accelerator: 4-D attention of 8 x 7 x 10 x 9 nodes, and a skew grid."""
    tokens = np.array([1, 64, 128, 256, 512, 1024, 2048, 4096, 8192], dtype=float)
    chunk = np.array([0, 16, 64, 128, 256, 512, 1024, 2048], dtype=float)
    past = np.array([0, 512, 1024, 2048, 4096, 8192, 16384], dtype=float)
    decodes = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256], dtype=float)
    context = np.array([0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384], dtype=float)
    c, p, n, m = np.meshgrid(chunk, past, decodes, context, indexing="ij")
    attention = 1e-4 + c * (p + c / 2) * 4 * 4096 * 32 / 1.5e14 + n * m * 131_072 / 1.4e12
    skew = Grid(
        (chunk[[0, -1]], decodes[[1, -1]], context[[0, -1]], np.array([1.0, 2.0, 8.0])), np.full((2, 2, 2, 3), 0.1)
    )
    return StepTable(
        dense=Curve(tokens, np.maximum(0.0095 + tokens * 1e-6, tokens * 16e9 / 2.2e14)),
        head=Curve(np.array([0.0, 256.0]), np.array([5e-4, 8e-4])),
        attention=Grid((chunk, past, decodes, context), attention),
        skew=skew,
        host_step_s=5e-4,
        host_sequence_s=5e-6,
    )


def azure(folder: Path) -> Workload:
    """The Azure 2023 conversation trace: 19,366 requests."""
    table = pl.read_parquet(folder / "azure2023_conv.parquet")
    return Workload(table["arrival_s"].to_numpy(), table["input_tokens"].to_numpy(), table["output_tokens"].to_numpy())


def mooncake(folder: Path) -> Workload:
    """The Mooncake conversation trace with its block hashes, eight times as slow: long prompts."""
    table = pl.read_parquet(folder / "mooncake_conversation.parquet")
    lengths = table["hash_ids"].list.len().to_numpy().astype(np.int64)
    return Workload(
        8 * table["arrival_s"].to_numpy(),
        table["input_tokens"].to_numpy(),
        np.maximum(table["output_tokens"].to_numpy(), 1),
        hashes=table["hash_ids"].explode().to_numpy(),
        hash_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        hash_tokens=512,
    )


def runs(folder: Path) -> dict[str, Callable[[], tuple[Workload, Engine]]]:
    """Name of a row -> what it runs."""
    one = Engine(kv_blocks=24_000)
    pools = Pools(2, 2, 5e10, 1e-3)
    return {
        "Azure conversation": lambda: (azure(folder), one),
        "Azure conversation, 20 times over": lambda: (azure(folder).tiled(20), one),
        "Azure conversation, 2,000 blocks: preemption": lambda: (
            azure(folder),
            Engine(kv_blocks=2_000),
        ),
        "Azure conversation, SGLang-like": lambda: (azure(folder), Engine(kv_blocks=24_000, scheduler="sglang")),
        "Azure conversation, 8 replicas, least loaded": lambda: (
            azure(folder).rate_scaled(4),
            Engine(kv_blocks=24_000, replicas=8, routing="least-loaded"),
        ),
        "Azure conversation, 2 prefill and 2 decode workers": lambda: (
            azure(folder),
            Engine(kv_blocks=24_000, pools=pools, kv_bytes_per_token=131_072),
        ),
        "Azure conversation, 3 drafts of which 1.5 are accepted": lambda: (
            azure(folder),
            Engine(kv_blocks=24_000, speculation=Speculation.of_length(3, 2.5)),
        ),
        "Mooncake conversation / 8, prefix cache of 10,000 blocks of 512": lambda: (
            mooncake(folder),
            Engine(kv_blocks=320_000, max_num_batched_tokens=8192),
        ),
    }


def row(name: str, folder: Path) -> str:
    """One row, measured in this process, which has done nothing else: compiled code comes from the cache."""
    workload, engine = runs(folder)[name]()
    table = a_table()
    simulate(workload.take(slice(0, 20)), table, engine)
    taken = []
    for _ in range(TRIES):
        begun = time.process_time()
        result = simulate(workload, table, engine)
        taken.append(time.process_time() - begun)
    check(result)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu, rate = min(taken), len(workload) / min(taken)
    steps, preempted = result.totals.steps.sum(), result.preemptions.sum()
    return f"| {name} | {len(workload):,} | {preempted:,} | {steps:,} | {cpu:.3f} | {rate:,.0f} | {peak:,.0f} |"


def check(result: Result) -> None:
    """Every token asked for came out and every block is free again."""
    assert (result.emitted[result.served] == result.workload.output_tokens[result.served]).all()
    assert (result.free_blocks == result.engine.kv_blocks).all()


def twin(folder: Path) -> str:
    """The plain twin on the first 1,000 requests of the Azure trace."""
    workload, table, engine = azure(folder).take(slice(0, 1000)), a_table(), Engine(kv_blocks=24_000)
    begun = time.process_time()
    slow = reference.simulate(workload, table, engine)
    seconds = time.process_time() - begun
    same = np.array_equal(slow.finished_s, simulate(workload, table, engine).finished_s)
    return f"The plain twin: {len(workload) / seconds:,.0f} requests per CPU s on the first 1,000; same times: {same}."


def main(folder: str = "") -> None:
    """Print the page."""
    root = Path(folder or Path(os.environ.get("RIDGELINE_DATA", "../shared/data")) / "serve" / "traces")
    print("# Speed of the simulator\n")
    print(f"`python benchmarks/simulate_speed.py`, {datetime.now(UTC).date()}, {platform.machine()}, "
          f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}, "
          f"Numba {numba.__version__}. The fastest of {TRIES} runs, each row in a process of its own.\n")  # fmt: skip
    columns = ("workload", "requests", "preemptions", "steps", "CPU s", "requests per CPU s", "peak memory, MiB")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    context = multiprocessing.get_context("spawn")
    for name in runs(root):
        with context.Pool(1) as pool:
            print(pool.apply(row, (name, root)), flush=True)
    print(f"\n{twin(root)}\n")
    begun = time.process_time()
    rates = [f"{100 * hit_rate(mooncake(root), blocks):.2f}%" for blocks in (None, 30_000, 10_000, 1_000)]
    print(f"Prefix-cache oracle, Mooncake conversation, unlimited / 30,000 / 10,000 / 1,000 blocks: "
          f"{' / '.join(rates)} in {time.process_time() - begun:.2f} CPU s with reading.")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
