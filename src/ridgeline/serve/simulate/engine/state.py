"""The state of a simulation as arrays of records, which the compiled loop reads and writes in place."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ridgeline.serve.simulate.costs.table import Curve, Grid, StepTable
from ridgeline.serve.simulate.engine.cache import block_hashes
from ridgeline.serve.simulate.engine.engine import ROUTING, Engine
from ridgeline.serve.simulate.traffic.workload import Workload

Records = NDArray[Any]
Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]
Ints64 = NDArray[np.int64]

CONFIG = np.dtype(
    [
        ("budget", "i8"), ("max_seqs", "i8"), ("block_size", "i8"), ("drafts", "i8"), ("workers", "i8"),
        ("prefill_workers", "i8"), ("routing", "i8"), ("closed", "i8"), ("chunked", "i8"), ("mixed", "i8"),
        ("reserve", "i8"), ("drain", "i8"), ("by_priority", "i8"), ("swap", "i8"), ("prefix", "i8"), ("whole", "i8"),
        ("swap_token_s", "f8"), ("transfer_s", "f8"), ("transfer_token_s", "f8"), ("think_s", "f8"),
        ("draft_step_s", "f8"), ("draft_sequence_s", "f8"),
    ]
)  # fmt: skip
REQUEST = np.dtype(  # what every step reads comes first: one cache line
    [
        ("inputs", "i4"), ("outputs", "i4"), ("computed", "i4"), ("emitted", "i4"), ("planned", "i4"), ("held", "i4"),
        ("last_s", "f8"), ("gap_s", "f8"), ("finished_s", "f8"), ("noise", "i8"), ("hashed", "i4"), ("published", "i4"),
        ("rank", "i4"), ("worker", "i4"), ("next", "i4"), ("preemptions", "i4"), ("hits", "i4"), ("swapped", "i4"),
        ("hashes_at", "i8"), ("table_at", "i8"), ("arrival_s", "f8"), ("scheduled_s", "f8"), ("first_s", "f8"),
    ]
)  # fmt: skip
WORKER = np.dtype(
    [
        ("clock_s", "f8"), ("out_s", "f8"), ("stepping", "i8"), ("idle", "i8"), ("running", "i8"), ("waiting", "i8"),
        ("free", "i8"), ("blocks", "i8"), ("load", "i8"), ("steps", "i8"), ("busy_s", "f8"), ("sequence_s", "f8"),
        ("block_s", "f8"), ("swap_s", "f8"), ("prompt_tokens", "i8"), ("decode_tokens", "i8"), ("peak_blocks", "i8"),
        ("stages", "i8"), ("prefill", "i8"),
    ]
)  # fmt: skip
PROGRESS = np.dtype(
    [("arrived", "i8"), ("finished", "i8"), ("events", "i8"), ("logged", "i8"), ("first_turn", "i8"), ("turn", "i8")]
)
EVENT = np.dtype([("time_s", "f8"), ("request", "i8")])
BLOCK = np.dtype([("before", "i4"), ("after", "i4"), ("users", "i4"), ("hash", "i4")])
STEP = np.dtype(
    [
        ("start_s", "f8"), ("seconds", "f4"), ("tokens", "i4"), ("prompt_tokens", "i4"), ("decodes", "i4"),
        ("waiting", "i4"), ("blocks", "i4"), ("worker", "i2"),
    ]
)  # fmt: skip


class State(NamedTuple):
    """``running`` is (workers, max_num_seqs); ``queues`` (workers, ranks, head and tail), -1 for nobody.

    ``stages`` is when each stage of a worker is free; ``events`` a heap of arrivals (closed loop) and transfers;
    ``due`` is room to count the requests that need a block in so many steps.
    """

    config: Records
    requests: Records
    workers: Records
    running: Ints32
    queues: Ints32
    stages: Floats
    events: Records
    progress: Records
    acceptance: Floats
    due: Ints64


class Memory(NamedTuple):
    """Blocks with a list of the free ones, least recently used first; its ends meet in the extra last block.

    ``blocks`` is (workers, blocks + 1), ``where`` (workers, hashes) the block that holds a hash or -1, ``hashes`` those
    of the prompts' full blocks, ``table`` the blocks of each request. All are empty without a prefix cache: then blocks
    are only counted.
    """

    blocks: Records
    where: Ints32
    hashes: Ints32
    table: Ints32


class FlatGrid(NamedTuple):
    """A `Grid`: its values in one row, its axes as the rows of one array, and how many nodes each has."""

    values: Floats
    axes: Floats
    sizes: Ints64


class Costs(NamedTuple):
    """A `StepTable` spread out by whole tokens and sequences where it has one axis."""

    by_tokens: Floats
    by_samples: Floats
    by_sequences: Floats
    attention: FlatGrid
    skew: FlatGrid


def costs(table: StepTable, engine: Engine) -> Costs:
    """The table as the loop reads it, in the same order of additions as `StepTable.seconds`."""
    tokens = np.arange(engine.max_num_batched_tokens + 1, dtype=np.float64)
    samples = np.arange(engine.max_num_seqs * engine.drafted + 1, dtype=np.float64)
    sequences = np.arange(engine.max_num_seqs + 1, dtype=np.float64)
    by_samples = spread(table.head, samples)
    by_samples[0] = 0.0
    return Costs(
        spread(table.dense, tokens) + spread(table.experts, tokens),
        by_samples,
        table.host_step_s + table.host_sequence_s * sequences,
        _flat(table.attention),
        _flat(table.skew),
    )


def spread(curve: Curve, values: Floats) -> Floats:
    """A curve at many values, with the arithmetic of `Curve.__call__`."""
    at, seconds = curve.at, curve.seconds
    if len(at) == 1:
        return np.full(len(values), seconds[0])
    low = np.clip(np.searchsorted(at, values, side="right") - 1, 0, len(at) - 2)
    part = np.where(values <= at[0], 0.0, (values - at[low]) / (at[low + 1] - at[low]))
    return np.asarray(seconds[low] + part * (seconds[low + 1] - seconds[low]))


def _flat(grid: Grid) -> FlatGrid:
    """Arrays that may be written: Numba compiles again for read-only ones."""
    sizes = np.array(grid.values.shape, dtype=np.int64)
    axes = np.zeros((len(sizes), int(sizes.max())))
    for row, axis in zip(axes, grid.axes, strict=True):
        row[: len(axis)] = axis
    return FlatGrid(grid.values.flatten(), axes, sizes)


def config(workload: Workload, engine: Engine, *, prefix: bool) -> Records:
    """The options as one record."""
    made = np.zeros(1, dtype=CONFIG)
    row, policy, pools, speculation = made[0], engine.policy, engine.pools, engine.speculation
    row["budget"], row["max_seqs"] = engine.max_num_batched_tokens, engine.max_num_seqs
    row["block_size"], row["drafts"] = engine.block_size, engine.drafted - 1
    row["workers"], row["prefill_workers"] = engine.workers, pools.prefill if pools else 0
    row["routing"], row["closed"] = ROUTING.index(engine.routing), workload.closed
    for name in ("chunked", "mixed", "reserve", "drain"):
        row[name] = getattr(policy, name)
    row["whole"] = engine.whole_prompt
    row["by_priority"], row["swap"], row["prefix"] = engine.by_priority, engine.preemption == "swap", prefix
    if engine.preemption == "swap":
        row["swap_token_s"] = engine.kv_bytes_per_token / engine.swap_bytes_per_s
    if pools:
        row["transfer_s"] = pools.latency_s
        row["transfer_token_s"] = engine.kv_bytes_per_token / pools.bandwidth_bytes_per_s
    if speculation:
        row["draft_step_s"] = speculation.tokens * speculation.draft_step_s
        row["draft_sequence_s"] = speculation.tokens * speculation.draft_sequence_s
    row["think_s"] = workload.think_s
    return made


def requests(workload: Workload, engine: Engine, seed: int) -> Records:
    """The requests as records; ``noise`` seeds what is random about each."""
    made = np.zeros(len(workload), dtype=REQUEST)
    made["inputs"], made["outputs"] = workload.input_tokens, workload.output_tokens
    made["arrival_s"] = workload.arrival_s
    if engine.by_priority:
        made["rank"] = np.unique(workload.priority, return_inverse=True)[1]
    made["noise"] = noise(len(workload), seed)
    made["next"], made["worker"] = -1, -1
    for name in ("scheduled_s", "first_s", "last_s", "finished_s"):
        made[name] = np.nan
    return made


def noise(count: int, seed: int) -> NDArray[np.int64]:
    """One start of a 32-bit generator per request, never zero."""
    return np.random.default_rng(seed).integers(1, 1 << 32, size=count, dtype=np.int64)


def workers(engine: Engine) -> Records:
    """The workers as records: prefill workers come first."""
    made = np.zeros(engine.workers, dtype=WORKER)
    made["idle"], made["stages"] = 1, 1
    made["free"] = made["blocks"] = engine.kv_blocks
    if engine.pools:
        made["stages"][: engine.pools.prefill] = engine.pools.prefill_stages
        made["prefill"][: engine.pools.prefill] = 1
    return made


def memory(workload: Workload, engine: Engine, rows: Records, *, prefix: bool) -> Memory:
    """Empty blocks; with a prefix cache also each request's place in the lists of hashes and of blocks."""
    if not prefix:
        empty = np.zeros(0, dtype=np.int32)
        return Memory(np.zeros((0, 0), dtype=BLOCK), np.zeros((0, 0), dtype=np.int32), empty, empty.copy())
    hashes, offsets = block_hashes(workload, engine.block_size)
    most = -(-(workload.input_tokens + workload.output_tokens + engine.drafted) // engine.block_size)
    rows["hashes_at"], rows["hashed"] = offsets[:-1], np.diff(offsets)
    rows["table_at"] = np.cumsum(most) - most
    blocks = np.zeros((engine.workers, engine.kv_blocks + 1), dtype=BLOCK)
    blocks["hash"] = -1
    blocks["before"] = np.roll(np.arange(engine.kv_blocks + 1), 1)
    blocks["after"] = np.roll(np.arange(engine.kv_blocks + 1), -1)
    where = np.full((engine.workers, int(hashes.max(initial=-1)) + 1), -1, dtype=np.int32)
    return Memory(blocks, where, hashes, np.zeros(int(most.sum()), dtype=np.int32))


def state(workload: Workload, engine: Engine, rows: Records, *, prefix: bool) -> State:
    """Nobody has arrived; in a closed loop the first clients send at once."""
    count, ranks = engine.workers, int(rows["rank"].max()) + 1
    progress = np.zeros(1, dtype=PROGRESS)
    # A closed loop has one event per client at most, and every request is in transfer at most once.
    events = np.zeros(len(rows) if workload.closed or engine.pools else 1, dtype=EVENT)
    if workload.closed:
        clients = min(workload.concurrency, len(rows))
        events["request"][:clients] = np.arange(clients)
        progress["events"] = progress["arrived"] = clients
    acceptance = engine.speculation.acceptance if engine.speculation else (0.0,)
    made = workers(engine)
    return State(
        config(workload, engine, prefix=prefix),
        rows,
        made,
        np.full((count, engine.max_num_seqs), -1, dtype=np.int32),
        np.full((count, ranks, 2), -1, dtype=np.int32),
        np.zeros((count, int(made["stages"].max()))),
        events,
        progress,
        np.array(acceptance),
        np.zeros(engine.block_size, dtype=np.int64),
    )
