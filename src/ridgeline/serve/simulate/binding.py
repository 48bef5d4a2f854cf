"""What holds requests back while they wait, how the queue grows, and what a cache of any size could have found."""

from collections.abc import Mapping

import numpy as np

from ridgeline.serve.simulate.engine.result import Result
from ridgeline.serve.simulate.traffic.workload import Workload

COMPUTE, BATCH, MEMORY, NOTHING = "token budget", "batch limit", "key-value blocks", "nothing waits"
_FULL = 0.98  # of a step's token budget: the rest is what the last prompt chunk left
_LEAST = 50  # requests below which no growth is told from noise


def binding(result: Result) -> Mapping[str, float]:
    """Shares of the time in steps, by what kept the queue from being admitted; they add up to 1.

    A waiting request is held back by the step's token budget; else by the blocks, where fewer are free than the mean
    prompt takes; else by the limit on sequences. Empty without recorded steps.
    """
    steps, engine = result.steps, result.engine
    if steps is None or not len(steps):
        return {}
    waits = steps.waiting > 0
    budget = steps.tokens >= _FULL * engine.max_num_batched_tokens
    prompt = float(result.workload.input_tokens.mean()) / engine.block_size
    full = engine.kv_blocks - steps.blocks < prompt
    kinds = {
        NOTHING: ~waits,
        COMPUTE: waits & budget,
        BATCH: waits & ~budget & ~full,
        MEMORY: waits & ~budget & full,
    }
    total = float(steps.seconds.sum())
    return {name: float(steps.seconds[mask].sum()) / total for name, mask in kinds.items()}


def growth(result: Result) -> float:
    """Seconds of queueing gained per second of arrivals: the slope of queueing over the arrival time.

    A line through the medians of ten equal groups of requests, so that one burst does not make a trend. 0 for a closed
    loop, whose clients wait, and for fewer than 50 requests.
    """
    done = result.served
    if result.workload.closed or done.sum() < _LEAST:
        return 0.0
    order = np.argsort(result.arrival_s[done], kind="stable")
    groups = [(float(np.median(a)), float(np.median(q))) for a, q in zip(
        np.array_split(result.arrival_s[done][order], 10), np.array_split(result.queueing_s[done][order], 10),
        strict=True,
    )]  # fmt: skip
    at, queued = np.array(groups).T
    if at[-1] <= at[0]:
        return 0.0
    return float(np.polyfit(at, queued, 1)[0])


def achievable(workload: Workload, rows: slice = slice(None)) -> float:
    """The hit rate of a cache that never evicts: prompt tokens in leading blocks that were seen before.

    A prompt's last token is always computed, so a prompt that is cached whole still misses one.
    """
    if not workload.has_hashes:
        return 0.0
    seen: set[int] = set()
    hit = asked = 0
    flat, offsets = workload.hashes.tolist(), workload.hash_offsets.tolist()
    tokens = workload.input_tokens.tolist()
    for row in range(len(tokens))[rows]:
        mine = flat[offsets[row] : offsets[row + 1]]
        found = next((index for index, item in enumerate(mine) if item not in seen), len(mine))
        hit += min(found * workload.hash_tokens, tokens[row] - 1)
        asked += tokens[row]
        seen.update(mine)
    return hit / asked if asked else 0.0
