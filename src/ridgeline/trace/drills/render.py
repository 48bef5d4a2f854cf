"""A drill as files: a Kineto trace for each rank, a step log, samples of the devices, ``run.toml`` and ``model.toml``.

What is planted lies apart, packed, in ``solution/truth.json.gz``.
"""

import gzip
import json
import random
from pathlib import Path
from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.trace.drills.generate import Drill
from ridgeline.trace.drills.job import DEVICE_NAME, device
from ridgeline.trace.drills.schedule import Schedule
from ridgeline.trace.drills.simulate import Tape

TRUTH = Path("solution", "truth.json.gz")
BASE_NS = 17_640_000 * 10**11  # a fixed date: the same seed gives the same bytes
CLOCK_SPREAD_NS = 1_500_000  # clocks of ranks differ by as much
LOG_NOISE = 0.004
SAMPLES, CLOCK_MHZ = 60, 1755
_DEVICE = ("kernel", "gpu_memcpy")

ANSWERS = """\
# What costs this run its time? One table for each cause that you find: the rule's code (`ridgeline rule` lists them)
# and the seconds per step that the run would gain without it. Grade with `ridgeline drill grade answers.toml`.

# [[cause]]
# code = "T101"
# seconds = 0.010
"""


def write(found: Drill, folder: str | Path) -> Path:
    """Write the drill into a new or empty folder. Raises `InputError` where it holds something."""
    return write_files(found, folder, _run_toml(found), _model_toml(found.schedule))


def write_files(
    found: Drill, folder: str | Path, run_toml: str, model_toml: str, device_name: str = DEVICE_NAME
) -> Path:
    """The same with a run file and a model file of its own."""
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError.expected("a new or empty folder", str(path), where="-o")
    (path / "traces").mkdir(parents=True, exist_ok=True)
    (path / "solution").mkdir()
    for tape in found.tapes:
        _pack(path / "traces" / f"rank{tape.rank}.json.gz", trace(found.schedule, tape, device_name))
    texts = {"steps.csv": steps_csv(found), "dmon.log": dmon(found.schedule), "run.toml": run_toml,
             "model.toml": model_toml, "answers.toml": ANSWERS}  # fmt: skip
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    _pack(path / TRUTH, truth(found))
    return path


def _pack(path: Path, content: Any) -> None:
    text = json.dumps(content, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, compresslevel=6, mtime=0))


def truth(found: Drill) -> dict[str, Any]:
    """What is planted, in seconds per step."""
    causes = [{"name": c.name, "title": c.title, "codes": list(c.codes), "seconds": c.seconds} for c in found.planted]
    return {"seed": found.schedule.job.seed, "step_s": found.mean_s, "causes": causes}


def trace(schedule: Schedule, tape: Tape, device_name: str = DEVICE_NAME) -> dict[str, Any]:
    """The trace of a rank as the PyTorch profiler exports it; its clock is off by a constant."""
    job = schedule.job
    shift = round(random.Random(f"clock {job.seed} {tape.rank}").uniform(-1, 1) * CLOCK_SPREAD_NS) if tape.rank else 0
    rows = [_event(event, shift + 5_000_000, tape.rank) for event in sorted(tape.events, key=lambda e: (e[2], -e[3]))]
    units = device().sm_count
    ranks = list(range(job.ranks))
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": device_name, "numSms": int(units.value) if units else 132}],
        "distributedInfo": {
            "backend": "nccl", "rank": tape.rank, "world_size": job.ranks, "pg_count": 1,
            "pg_config": [{"pg_name": "1", "pg_desc": f"mesh_{job.ranks}", "backend_config": "cuda:nccl",
                           "pg_size": job.ranks, "ranks": ranks}],
        },
        "baseTimeNanoseconds": BASE_NS,
        "displayTimeUnit": "ms",
        "traceEvents": rows,
    }  # fmt: skip


def _event(event: tuple[str, str, int, int, int, dict[str, Any]], shift: int, rank: int) -> dict[str, Any]:
    category, name, start, dur, lane, args = event
    on_device = category in _DEVICE
    if on_device:
        args = {"device": rank % 8, "context": 1, "stream": lane, **args}
    return {
        "ph": "X", "cat": category, "name": name, "pid": rank % 8 if on_device else 4096, "tid": lane,
        "ts": (start + shift) / 1000, "dur": dur / 1000, "args": args,
    }  # fmt: skip


def steps_csv(found: Drill) -> str:
    """Step times of the whole run with what the loop timed itself."""
    job, draw = found.schedule.job, random.Random(f"log {found.schedule.job.seed}")
    names = ("data_s", "gc_s", "checkpoint_s", "eval_s")
    extras = [(frozenset(extra.steps), extra) for extra in found.schedule.extras]
    lines = [",".join(("step", "step_time_s", *names))]
    for step in range(job.log_steps):
        phases = dict.fromkeys(("", *names), 0.0) | {"data_s": abs(draw.gauss(3e-4, 3e-5))}
        seconds = found.step_s * (1 + draw.gauss(0, LOG_NOISE))
        for _, extra in filter(lambda pair: step in pair[0], extras):
            phases[extra.phase] += extra.each_s
            seconds += extra.each_s
        cells = ",".join(f"{phases[name]:.6f}" for name in names)
        lines.append(f"{step},{seconds:.6f},{cells}")
    return "\n".join(lines) + "\n"


def dmon(schedule: Schedule) -> str:
    """Samples of every device while the run trains."""
    draw, clock = random.Random(f"dmon {schedule.job.seed}"), schedule.clock
    lines = ["# gpu    pwr  gtemp  mtemp     sm    mem  pclk   mclk  pviol  tviol",
             "# Idx      W      C      C      %      %   MHz    MHz      %   bool"]  # fmt: skip
    for _ in range(SAMPLES):
        for rank in range(schedule.job.ranks):
            held = clock if clock is not None and clock.rank == rank else None
            mhz = round(CLOCK_MHZ * (held.ratio if held else 1) + draw.gauss(0, 2))
            temp = round((held.temp_c if held else 61) + draw.gauss(0, 0.7))
            power = round((held.power_w if held else 640) + draw.gauss(0, 6))
            hot, capped = int(held is not None and held.temp_c > 80), 40 * int(held is not None and held.power_w == 500)
            sm = min(100, round(draw.gauss(97, 1)))
            cells = (power, temp, temp + 8, sm, 55, mhz, 2619, capped, hot)
            lines.append(f"{rank:5d}" + "".join(f" {cell:6d}" for cell in cells))
    return "\n".join(lines) + "\n"


def _run_toml(found: Drill) -> str:
    job = found.schedule.job
    return f"""\
name = "Drill {job.seed}"
traces = ["traces"]
log = "steps.csv"

[model]
path = "model.toml"

[machine]
chips = "{job.ranks}xH100"
dtype = "bf16"
days_per_month = 30

[batch]
sequences = {job.sequences * job.ranks}
sequence = {job.sequence}

[parallel]
dp = {job.ranks}

[training]
recompute = "none"
mask = "exact"

[observed]
step = "{found.mean_s:.6f}s"
"""


def _model_toml(schedule: Schedule) -> str:
    job = schedule.job
    return f"""\
layers = {job.layers}
d_model = {job.d_model}
d_ff = {job.d_ff}
heads = {job.heads}
kv_heads = {job.kv_heads}
head_dim = {job.head_dim}
vocab = {job.vocab}
"""
