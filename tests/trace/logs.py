"""Logs made for tests: step times with what is planted in them, and the formats as their programs print them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.trace.events import NONE
from ridgeline.trace.logs import DeviceSamples, StepLog

Floats = np.ndarray[Any, np.dtype[np.float64]]


def step_log(
    seconds: Floats, *, phases: Mapping[str, Floats] | None = None, marks: Mapping[str, list[int]] | None = None,
    rank: int | None = None, resolution_ns: int = 1, count: int = 1,
) -> StepLog:  # fmt: skip
    """A log of steps 0, 1, ...; ``seconds`` and phases are per step."""
    n = len(seconds)
    dur = np.round(np.asarray(seconds) * count * 1e9).astype(np.int64)
    return StepLog(
        "test", "steps.log", step=np.arange(n) * count, count=np.full(n, count), dur=dur, end=np.full(n, NONE),
        resolution_ns=resolution_ns, rank=rank,
        phases={name: np.round(v * count * 1e9).astype(np.int64) for name, v in (phases or {}).items()},
        marks={name: np.array(v, dtype=np.int64) for name, v in (marks or {}).items()},
    )  # fmt: skip


def noise(kind: str, n: int, random: np.random.Generator) -> Floats:
    """Step times about 1 s without a period."""
    if kind == "normal":
        return 1 + 0.02 * random.standard_normal(n)
    if kind == "lognormal":
        return np.asarray(np.exp(0.1 * random.standard_normal(n)))
    if kind == "student":
        return np.asarray(1 + 0.02 * np.abs(random.standard_t(2, n)))
    if kind == "pareto":
        return np.asarray(1 + 0.05 * random.pareto(1.5, n))
    if kind == "outliers":
        return np.asarray(1 + 0.01 * random.standard_normal(n) + (random.random(n) < 0.01) * random.exponential(5, n))
    if kind == "rounded":
        return np.round(1 + 0.004 * random.standard_normal(n), 2)
    if kind == "drifting":
        return np.asarray(1 + np.linspace(0, 1, n) + 0.02 * random.standard_normal(n))
    assert kind == "spells"
    x = 1 + 0.01 * random.standard_normal(n)
    for start in random.integers(0, n, max(1, n // 150)):
        x[start : start + random.integers(3, 25)] += 0.5
    return x


def sampled(values: Mapping[str, Floats], gpus: int = 4) -> DeviceSamples:
    """Samples of busy GPUs at full clock, one a second and GPU; ``values`` are whole columns of 40 samples a GPU."""
    n = 40
    gpu = np.tile(np.arange(gpus), n)
    columns = {"sm_pct": np.full(gpus * n, 99.0), "sm_clock_mhz": np.full(gpus * n, 1980.0)} | dict(values)
    return DeviceSamples("test", "dmon.log", gpu, np.repeat(np.arange(n), gpus) * 10**9, columns)


def samples(**by_gpu: list[float]) -> DeviceSamples:
    """Samples of four GPUs that do not change; a keyword gives a column, one value a GPU."""
    return sampled({name: np.tile(np.array(v, dtype=np.float64), 40) for name, v in by_gpu.items()})


def write(path: Path, text: str) -> Path:
    """A text file."""
    path.write_text(text, encoding="utf-8")
    return path


FORMATS: Mapping[str, str] = {
    "modded-nanogpt": "".join(
        f"step:{i}/40 train_time:{60 * i + (5 if i > 3 else 0)}ms step_avg:60.00ms\n"
        + ("step:20/40 val_loss:3.9 train_time:1205ms step_avg:60ms\n" if i == 20 else "")
        for i in range(41)
    ),
    "torchtitan": "[rank0]:[titan] 2025-06-04 08:51:40,000 - root - INFO - Starting job\n"
    + "".join(
        f"\x1b[0m[rank0]:[titan] 2025-06-04 08:{51 + i // 30:02d}:{2 * i % 60:02d},{100 + i:03d} - root - INFO - "
        f"\x1b[31mstep: {i:2}  \x1b[32mloss: {8.0 - i / 10:7.4f}  \x1b[33mmemory: 30.99GiB(32.62%)  "
        f"\x1b[34mtps: 7,034  \x1b[36mtflops: 407.35  \x1b[35mmfu: 41.19%\x1b[39m\n"
        + (
            "[rank0]:[titan] 2025-06-04 08:51:22,000 - root - INFO - Saving the checkpoint (or staging)\n"
            if i == 10
            else ""
        )
        for i in range(1, 25)
    ),
    "Megatron-LM": "".join(
        f" [2025-04-13 23:41:12] iteration {i:8d}/     500 | consumed samples: {i * 16:12d} | "
        f"elapsed time per iteration (ms): {1000 + i:.1f} | learning rate: 1.5E-05 | global batch size:    16 | "
        "lm loss: 2.37E+00 | grad norm: 0.8 |\n"
        "time (ms) | forward-compute: 153.79 | backward-compute: 338.84 | optimizer: 20.5\n"
        + (f"saving checkpoint at iteration {i:7d} to ckpt\n" if i == 20 else "")
        for i in range(1, 31)
    ),
    "MaxText": "".join(
        f"I0601 22:14:55 metric_logger.py:181] completed step: {i}, seconds: {1.341 + (60 if i == 0 else 0):.3f}, "
        "TFLOP/s/device: 257.929, Tokens/s/device: 36653.244, total_weights: 196608, loss: 2.500\n"
        for i in range(20)
    ),
    "CSV": "step,step_time_ms,data_ms,loss,evaluation\n"
    + "".join(f"{i},{500 + i % 3},{20},2.5,{int(i == 10)}\n" for i in range(30)),
    "Ridgeline JSONL": '{"rank": 3, "format": 1}\n'
    + "".join(
        f'{{"step": {i}, "t": {1e9 + i}, "step_s": 0.5, "phases": {{"data": 0.02}}, "loss": 2.5}}\n' for i in range(20)
    )
    + '{"event": "checkpoint", "step": 10}\n',
    "nvidia-smi dmon": "#Date        Time      gpu    pwr  gtemp  mtemp     sm  mem  mclk  pclk  pviol  tviol  rxpci\n"
    "#YYYYMMDD    HH:MM:SS  Idx      W      C      C      %      %    MHz    MHz      %   bool   MB/s\n"
    + "".join(
        f" 20260816    23:59:5{i}    {gpu}    {600 + gpu}     68      -     99   40  2619  1980     20      0    900\n"
        for i in range(6)
        for gpu in range(2)
    ),
    "DCGM dmon": "#Entity   GPUTL     MCUTL     POWER         TMPTR     SMCLK    PVIOL      NVLTX\n"
    "ID                            W             C\n"
    + "".join(
        f"GPU {gpu}     99        42        685.300       68        1980     {i * 1000}   2000000000\n"
        for i in range(6)
        for gpu in range(2)
    ),
    "nvidia-smi query": "timestamp, index, power.draw [W], clocks.sm [MHz], temperature.gpu, "
    "clocks_throttle_reasons.active\n"
    + "".join(
        f"2026/08/16 09:22:{i:02d}.250, {gpu}, 640.12 W, 1755 MHz, 84, 0x0000000000000020\n"
        for i in range(6)
        for gpu in range(2)
    ),
}
