"""How fast the search is, beside a peer: the page is beside this file.

Run: python benchmarks/search.py [--peer CHECKOUT --python PYTHON --seconds 60]

``CHECKOUT`` is a working copy of Calculon and ``PYTHON`` an interpreter with what it needs (psutil, pandas). Its own
search is asked for the number of its candidates (its ``--debug``), and a random sample of them is then evaluated one
by one on one core for that many seconds.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from ridgeline.arithmetic.named import named
from ridgeline.plan.layouts.search import Request, search, spelled
from ridgeline.plan.layouts.space import Space
from ridgeline.plan.steps import cluster, expected
from ridgeline.plan.steps.machine import Software

JOBS = (
    ("gpt-3-175b", "512xA100", (1536, 2048)),
    ("llama-3-70b", "512xH100", (512, 8192)),
    ("llama-3-405b", "4096xH100", (2048, 8192)),
    ("mixtral-8x7b", "256xH100", (1024, 4096)),
)
TRIES = 3
COMMAND = ["plan", "--model", "llama-3-70b", "--cluster", "512xH100", "--seq", "8192", "--batch", "4M", "-o"]
SAMPLE = """
import itertools, json, logging, random, sys, time
import calculon
from calculon.llm import Llm
from calculon.llm.optimal_execution import OptimalExecution as Search
from calculon.system import System

app = Llm.Application(calculon.io.read_json_file("models/gpt3-175B.json"))
system = System(calculon.io.read_json_file("systems/a100_80g.json"))
jobs = []
for tp in Llm.get_all_tensor_parallelisms(512, app.hidden, app.attn_heads):
    for pp in Llm.get_all_pipeline_parallelisms(512, tp, app.num_blocks):
        dp = Llm.get_data_parallelism(512, tp, pp)
        batch = Search.get_batch_size(dp, 1536)
        if batch is None:
            continue
        for chunks in Llm.get_valid_pipeline_interleavings(app.num_blocks, pp):
            for again in ("full", "attn_only", "none"):
                for kind in ("ar", "p2p_rs_ag", "rs_ag"):
                    jobs.append((tp, pp, dp, chunks, batch, again, dp > 1, kind))
random.Random(0).shuffle(jobs)
start, done, good, best = time.perf_counter(), 0, 0, 0.0
for tp, pp, dp, chunks, batch, again, shard, kind in jobs:
    found = Search.search(False, 1, False, 512, 1536, "float16", app, system, tp, pp, dp, chunks, batch, again,
                          shard, kind, [True], False, True, True)
    done, good = done + found[1], good + found[2]
    best = max([best, *(item[0] for item in found[0])])
    if time.perf_counter() - start > float(sys.argv[1]):
        break
print(json.dumps({"done": done, "good": good, "seconds": time.perf_counter() - start, "best": best}))
"""


def one(name: str, chips: str, batch: tuple[int, int]) -> None:
    """The whole space and the usual one of one job, the best of several tries."""
    spec, machine = named(name)[0], cluster.parse(chips)
    software = Software(gradients="fp32")
    constants = expected.fitted(spec, machine, software)
    for title, space in (("whole", Space.whole(machine)), ("usual", Space())):
        request = Request(spec, machine, batch, software, space, constants)
        took = []
        for _ in range(TRIES):
            start, cpu = time.perf_counter(), time.process_time()
            found = search(request)
            took.append((time.perf_counter() - start, time.process_time() - cpu))
        wall_s, cpu_s = min(took)
        tried, divide, fit = found.counts.tried, found.counts.divide, found.counts.fit
        print(
            f"| {name} on {chips} | {title} | {tried:,} | {divide:,} | {fit:,} | {wall_s:.2f} | {cpu_s:.2f} "
            f"| {tried / wall_s:,.0f} | {divide / wall_s:,.0f} | {fit / wall_s:,.0f} |"
        )
        print(f"  best: {spelled(found.layouts.row(0))}, {float(found.steps.step_s[0]):.2f} s")


@contextmanager
def one_core() -> Iterator[None]:
    """This process on a single core, where the system can say so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def peer(checkout: str, python: str, seconds: float) -> None:
    """The number of the peer's candidates, and its rate on a sample of them."""
    environment = {**os.environ, "PYTHONPATH": checkout}
    count = [python, "bin/calculon", "loe", "-d", "models/gpt3-175B.json", "512", "1536", "float16",
             "systems/a100_80g.json", "none.json", "-c", "1"]  # fmt: skip
    for command in (count, [python, "-c", SAMPLE, str(seconds)]):
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
        print(done.stdout.strip())


def cold() -> None:
    """The whole command in a fresh process, report and all."""
    start = time.perf_counter()
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ridgeline.cli.main", *COMMAND, folder]
        subprocess.run(command, check=True, capture_output=True)
    print(f"cold command: {time.perf_counter() - start:.1f} s")


def main() -> None:
    """Everything, or with ``--peer`` the peer too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with one_core():
        for name, chips, batch in JOBS:
            one(name, chips, batch)
        cold()
        if options.peer:
            peer(options.peer, options.python, options.seconds)


if __name__ == "__main__":
    main()
