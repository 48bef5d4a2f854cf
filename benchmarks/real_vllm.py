"""Simulated against real: 1,200 requests that vLLM 0.19 served in four recorded runs, from kernel profiles.

    python benchmarks/real_vllm.py [--data SHARED_DATA] [--json]

For every run the engine is set up as it was recorded (sequences, token budget, key-value blocks where they bind, prefix
cache over the prompts' tokens) and the step table is made of the device's kernel profile. Two constants are not in a
profile and are fitted, one pair for all runs: host time per sequence of a step, and the latency of a collective. They
are judged with all runs, and leave-one-run-out: fitted on three runs, judged on the fourth.

Time to first token is counted from the arrival of a request in the simulation. In the recording it is counted from the
moment the engine took the request in (``queued_ts``), which is the start of the next step: 0.02 to 0.13 s later.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ridgeline.arithmetic.named import find_model
from ridgeline.core.catalog import device
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.simulate.costs.kernels import Choice
from ridgeline.serve.simulate.costs.profile import Overheads, Wire, load
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.engine.result import Result
from ridgeline.serve.simulate.traffic.workload import Workload

BLOCK = 16
PLENTY = 100_000  # blocks where the recording says nothing of memory and nothing was preempted
WIRE_BYTES_PER_S = 16e9
SEQUENCE_S = tuple(4e-6 * k for k in range(6))
LATENCY_S = tuple(5e-6 * k for k in range(4, 10))
SKEWS = (0.0, 0.25, 0.5, 0.75, 1.0)
BARS = {"ttft": 0.05, "tpot": 0.02}


@dataclass(frozen=True)
class Run:
    """One recorded run: its rows, the profile and model to simulate it with, and engines that step together."""

    name: str
    hardware: str
    profile: str
    model: str
    slug: str
    trace: str
    tp: int = 1
    group: int = 1


RUNS = (
    Run("RTX 4090, Llama-3.1-8B", "RTX4090", "meta-llama/Llama-3.1-8B", "llama-3-8b", "rtx-4090", "llama-3.1-8b"),
    Run("RTX PRO 6000, Llama-3.1-8B", "RTXPRO6000", "meta-llama/Llama-3.1-8B", "llama-3-8b",
        "rtx-pro-6000-blackwell-server", "llama-3.1-8b"),
    Run("2 x RTX PRO 6000, Qwen3-30B-A3B, DP 2 EP 2", "RTXPRO6000", "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "qwen3-30b-a3b", "rtx-pro-6000-blackwell-server", "qwen3-30b-a3b", group=2),
    Run("2 x RTX PRO 6000, Qwen3-32B, TP 2", "RTXPRO6000", "Qwen/Qwen3-32B", "qwen3-32b",
        "rtx-pro-6000-blackwell-server", "qwen3-32b", tp=2),
)  # fmt: skip


class Case:
    """A run with everything that does not depend on the constants."""

    def __init__(self, run: Run, data: Path) -> None:
        serve = data / "serve"
        rows = pl.read_parquet(serve / "traces/vllm019_real_runs_per_request.parquet")
        model = run.profile.rpartition("/")[2]
        mine = (pl.col("hw") == run.hardware) & (pl.col("model") == model) & (pl.col("tp") == run.tp)
        self.run, self.rows = run, rows.filter(mine).sort("req")
        tokens = pl.read_parquet(serve / f"traces/sharegpt_{run.trace}_300_sps10.parquet")["input_tok_ids"].to_list()
        self.workload = workload(self.rows, tokens, run.group)
        held = self.rows["kv_tokens"][0]
        self.engine = Engine(
            kv_blocks=int(held) // BLOCK if held else PLENTY,
            max_num_seqs=int(self.rows["max_num_seqs"][0]) * run.group,
            max_num_batched_tokens=int(self.rows["max_num_batched_tokens"][0]) * run.group,
            block_size=BLOCK,
        )
        self.deployment = Deployment(
            find_model(run.model)[0], device(run.slug), tp=run.tp, dp_attention=run.group, ep=run.group
        )
        self.folder = serve / "kernels"

    def simulate(self, overheads: Overheads) -> Result:
        """The run with these constants."""
        choice = Choice(self.run.hardware, self.run.profile, self.run.tp)
        table = load(self.folder, self.deployment, self.engine, choice, overheads)
        return simulate(self.workload, table, self.engine)

    def without_cache(self) -> Engine:
        """The same engine without a prefix cache."""
        return replace(self.engine, prefix_cache=False)

    def errors(self, result: Result) -> dict[str, float]:
        """Relative errors of the simulation: means and 99th percentiles, and the mean over requests of TPOT's."""
        first, pace = self.real()
        return {**against(result.ttft_s, first, "ttft"), **against(result.tpot_s, pace, "tpot"),
                "tpot_mape": float(np.abs(result.tpot_s / pace - 1).mean())}  # fmt: skip

    def real(self) -> tuple[Any, Any]:
        """Recorded TTFT and TPOT (s)."""
        queued, first, last = (self.rows[f"{name}_ts"].to_numpy() for name in ("queued", "first_token", "last_token"))
        return first - queued, (last - first) / (self.rows["output_tokens"].to_numpy() - 1)

    def peer(self) -> dict[str, float]:
        """The same errors of LLMServingSim's own predictions."""
        first, pace = self.real()
        ttft, tpot = (self.rows[f"sim_{name}_ms"].to_numpy() / 1e3 for name in ("ttft", "tpot"))
        return {**against(ttft, first, "ttft"), **against(tpot, pace, "tpot"),
                "tpot_mape": float(np.abs(tpot / pace - 1).mean())}  # fmt: skip

    def scheduling(self, result: Result) -> dict[str, float]:
        """How far simulated admissions are from recorded ones: seconds, and the order of first tokens."""
        start = float(self.rows["queued_ts"].to_numpy().min())
        real = self.rows["scheduled_ts"].to_numpy() - start
        offset = np.abs(result.scheduled_s - real)
        order = np.argsort(np.argsort(real)) - np.argsort(np.argsort(result.scheduled_s))
        return {
            "preemptions": float(result.preemptions.sum()),
            "admission_error_p50_s": float(np.median(offset)),
            "admission_error_max_s": float(offset.max()),
            "places_off_max": float(np.abs(order).max()),
            "makespan_error": float(
                result.finished_s.max() / (self.rows["last_token_ts"].to_numpy().max() - start) - 1
            ),
        }


def against(simulated: Any, real: Any, name: str) -> dict[str, float]:
    """Relative errors of the mean and of the 99th percentile."""
    return {
        name: float(simulated.mean() / real.mean() - 1),
        f"{name}_p99": float(np.percentile(simulated, 99) / np.percentile(real, 99) - 1),
    }


def workload(rows: pl.DataFrame, tokens: Sequence[Sequence[int]], engines: int) -> Workload:
    """The recorded requests with exact block hashes; engines of a group are served in turn, each with its own cache."""
    seen: dict[Any, int] = {}
    flat, offsets = [], [0]
    for row, prompt in enumerate(tokens):
        chain = -1 - row % engines
        for at in range(0, len(prompt) - BLOCK + 1, BLOCK):
            chain = seen.setdefault((chain, tuple(prompt[at : at + BLOCK])), len(seen))
            flat.append(chain)
        offsets.append(len(flat))
    arrival, inputs, outputs = (rows[name].to_numpy() for name in ("arrival_s", "input_tokens", "output_tokens"))
    return Workload(arrival, inputs, outputs, hashes=np.array(flat), hash_offsets=np.array(offsets), hash_tokens=BLOCK)


def constants(sequence_s: float, latency_s: float, skew: float = 0.0) -> Overheads:
    """The fitted constants as overheads."""
    return Overheads(host_sequence_s=sequence_s, wire=Wire(WIRE_BYTES_PER_S, latency_s), skew=skew)


def loss(errors: dict[str, float]) -> float:
    """Squares of a run's mean errors in units of what is asked for."""
    return sum((errors[name] / bar) ** 2 for name, bar in BARS.items())


def fit(grid: dict[tuple[float, float], list[dict[str, float]]], without: int | None = None) -> tuple[float, float]:
    """The constants with the least loss over the runs, one left out."""
    kept = [index for index in range(len(RUNS)) if index != without]
    return min(grid, key=lambda key: sum(loss(grid[key][index]) for index in kept))


def study(data: Path) -> dict[str, Any]:
    """Everything the page says."""
    cases = [Case(run, data) for run in RUNS]

    def tried(*values: float) -> list[dict[str, float]]:
        return [case.errors(case.simulate(constants(*values))) for case in cases]

    grid = {(a, b): tried(a, b) for a in SEQUENCE_S for b in LATENCY_S}
    best = fit(grid)
    bare = [case.errors(case.simulate(Overheads(wire=Wire(WIRE_BYTES_PER_S, 20e-6)))) for case in cases]
    results = [case.simulate(constants(*best)) for case in cases]
    skewed = {skew: {(a, b): tried(a, b, skew) for a in SEQUENCE_S for b in LATENCY_S[1::2]} for skew in SKEWS}
    return {
        "constants": best,
        "runs": {case.run.name: case.errors(result) for case, result in zip(cases, results, strict=True)},
        "leave_one_out": {
            run.name: {"constants": fit(grid, i), **grid[fit(grid, i)][i]} for i, run in enumerate(RUNS)
        },
        "no_fitted_constant": {run.name: bare[i] for i, run in enumerate(RUNS)},
        "llmservingsim": {case.run.name: case.peer() for case in cases},
        "scheduling": {c.run.name: c.scheduling(r) for c, r in zip(cases, results, strict=True)},
        "skew": {str(s): {"constants": fit(g), "loss": sum(loss(e) for e in g[fit(g)]), "runs": g[fit(g)]}
                 for s, g in skewed.items()},
    }  # fmt: skip


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RIDGELINE_DATA", "../shared/data")))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = study(given.data)
    if given.json:
        print(json.dumps(found, indent=1))
        return
    print(f"host {found['constants'][0] * 1e6:g} us/sequence, collective {found['constants'][1] * 1e6:g} us")
    for part in ("runs", "leave_one_out", "no_fitted_constant", "llmservingsim"):
        print(part)
        for name, errors in found[part].items():
            cells = (f"{key} {100 * value:+.2f}%" for key, value in errors.items() if key != "constants")
            print(f"  {name}: {', '.join(cells)}", errors.get("constants", ""))
    for name, values in found["scheduling"].items():
        print(f"  {name}: {', '.join(f'{key} {value:.4g}' for key, value in values.items())}")
    for skew, values in found["skew"].items():
        runs = "; ".join(f"{100 * e['ttft']:+.1f} {100 * e['tpot']:+.2f}" for e in values["runs"])
        print(f"  skew {skew}: {values['constants']}, loss {values['loss']:.2f}: {runs}")


if __name__ == "__main__":
    main()
