"""The named drill: the MFU incident of the worked numbers, as traces of one tensor-parallel island and a step log.

Three traced steps hold 9.0 s compute, 3.6 s exposed communication and 0.9 s late launches; of the 1.5 s on the host
0.46 s are in them, and the rest is a stall of 21 s that comes back every twentieth step and is in the log alone.
`examples/incident` is the same run as its team wrote it down, without traces.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ridgeline.core import catalog
from ridgeline.trace.drills.generate import Drill, Planted
from ridgeline.trace.drills.job import GIGA, Job
from ridgeline.trace.drills.render import write_files
from ridgeline.trace.drills.schedule import (
    LOADER,
    Collective,
    Extra,
    Hold,
    Host,
    Instruction,
    Item,
    Mark,
    Op,
    Schedule,
    Wait,
)
from ridgeline.trace.drills.simulate import simulate

LAYERS, ISLAND, GROUP = 14, 8, 4
COMPUTE_S, RESHARD_S, LATE_GATHER_S, HIDDEN_S = 9.0, 2.75, 0.85, 0.45
RELAYOUT_S, AGAIN_S = 0.89, 1.145  # of compute: what re-sharding adds, what is recomputed
INPUT_S, SYNC_S, GARBAGE_S, LAUNCH_S, QUEUE_S = 0.270, 0.130, 0.064, 0.690, 0.210  # each below its rule's threshold
STEP_S, PERIOD, INPUT_STALL_S, SUMMARY_STALL_S = 15.0, 20, 12.0, 9.0
COPIES = 3  # in each chain of layout changes; fused, one is left
FORWARD, LINK_SHARE, LOG_STEPS = 1 / 3, 0.8, 405
TOKENS, WIDTH = 65_536, 11_776
AGAIN = ("autograd::engine::evaluate_function: CheckpointFunctionBackward", "CheckpointFunctionBackward")

RUN = """\
name = "Expected 50%, getting 25%"
traces = ["traces"]
log = "steps.csv"

[model]
path = "model.toml"

[machine]
chips = "256xTPU v6e"
dtype = "bf16"
dollars_per_chip_hour = 2.70
days_per_month = 30

[batch]
sequences = 256
sequence = "8k"

[parallel]
dp = 32
tp = 8

[training]
recompute = "selective"
mask = "full"

[mfu]
expected = 0.50
reported = 0.25
convention = "6n"
peak = 918e12
with_stalls = true

[observed]
step = "15s"

[geometry]
head_tile = 128
vocab_tile = 128
vocab_shards = 256
embedding_matmul = true
"""
MODEL = """\
layers = 49
d_model = 11776
d_ff = 30720
heads = 112
kv_heads = 8
head_dim = 96
vocab = 151936
"""
PLANTED = (
    Planted("resharding", "activations are re-sharded around attention", ("T155",), RESHARD_S),
    Planted("relayout", "layout changes around attention are not fused", ("T205",), RELAYOUT_S),
    Planted("recompute", "layers are recomputed unplanned", ("T206",), AGAIN_S),
    Planted("late_gather", "weights are gathered late", ("T154",), LATE_GATHER_S),
    Planted("stall", "every 20th step waits for the input and writes a summary", ("T301", "T305"),
            (INPUT_STALL_S + SUMMARY_STALL_S) * len(range(PERIOD, LOG_STEPS, PERIOD)) / LOG_STEPS),
)  # fmt: skip


def incident_drill() -> Drill:
    """The incident. What is planted is known by construction."""
    job = Job(7, ISLAND, LAYERS, WIDTH, 96, 30_720, 151_936, ISLAND, 8_192, 3, LOG_STEPS)
    stalled = tuple(range(PERIOD, LOG_STEPS, PERIOD))
    extras = (Extra(stalled, INPUT_STALL_S, "data_s"), Extra(stalled, SUMMARY_STALL_S, ""))
    schedule = Schedule(job, tuple(_step()), extras=extras, jitter=3e-4)
    return Drill(schedule, tuple(simulate(schedule)), STEP_S - PLANTED[-1].seconds, PLANTED)


def write_incident(folder: str | Path) -> Path:
    """Write it into a new or empty folder. Raises `InputError` where the folder holds something."""
    return write_files(incident_drill(), folder, RUN, MODEL, "TPU v6e")


def _step() -> Iterator[Instruction]:
    yield Host("loader", INPUT_S * GIGA, LOADER)
    yield Host("garbage", GARBAGE_S * GIGA, "gc.collect")
    useful = COMPUTE_S - RELAYOUT_S * COPIES / (COPIES - 1) - AGAIN_S
    yield _work("embed", 0.001)
    yield Host("launch", LAUNCH_S * GIGA)
    for layer in range(LAYERS):
        yield from _forward(layer, useful * FORWARD / LAYERS)
    yield Hold("queue", QUEUE_S * GIGA)
    for layer in reversed(range(LAYERS)):
        yield from _backward(layer, useful * (1 - FORWARD) / LAYERS)
    yield Item("loss", SYNC_S * GIGA)


def _work(key: str, seconds: float, inside: tuple[str, ...] = ()) -> Op:
    return Op(key, "xla::fusion", "fusion_gemm", seconds * GIGA, (), inside=inside)


def _forward(layer: int, useful_s: float) -> Iterator[Instruction]:
    shape = (TOKENS, WIDTH)
    one_s = RELAYOUT_S / (COPIES - 1) / LAYERS
    for i in range(COPIES):
        yield Op(f"layout.{layer}.{i}", "aten::clone", "copy_device_to_device", one_s * GIGA, (shape,))
    yield Mark(f"inputs.{layer}")
    yield _gather(f"activations.{layer}", RESHARD_S / LAYERS, f"inputs.{layer}", GROUP)
    yield Wait(f"activations.{layer}")
    yield _work(f"forward.{layer}", useful_s)


def _gather(key: str, seconds: float, after: str, group: int = 0) -> Collective:
    link = catalog.device("TPU v6e").scale_up
    assert link is not None
    ranks = group or ISLAND
    numel = round(seconds * LINK_SHARE * float(link.bandwidth.base) * ranks / (ranks - 1) / 2 / ranks) * ranks
    return Collective(key, "_allgather_base", numel // ranks, numel, seconds * GIGA, after, group=group)


def _backward(layer: int, useful_s: float) -> Iterator[Instruction]:
    hidden_s = HIDDEN_S / LAYERS
    yield Mark(f"late.{layer}")
    yield _gather(f"weights.{layer}", hidden_s + LATE_GATHER_S / LAYERS, f"late.{layer}")
    yield _work(f"before.{layer}", hidden_s)
    yield Wait(f"weights.{layer}")
    yield replace(_work(f"again.{layer}", AGAIN_S / LAYERS), inside=AGAIN)
    yield _work(f"backward.{layer}", useful_s - hidden_s)
