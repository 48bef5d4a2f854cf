"""Run a workload through an engine: every step of every replica, compiled.

The rules of a step, in order (vLLM V1 where the scheduler is ``vllm``):

1. Running requests, in the order of admission, get tokens while the budget lasts: a decode one (with speculation, one
   and its drafts), an unfinished prompt what is left of it. Blocks are taken as needed; where none is free the last
   running request (by priority: the least urgent, latest one) is preempted, to the head of the queue.
2. If nobody was preempted, waiting requests join in order while budget, sequences and blocks allow; the first that
   does not fit stops the queue. A prompt starts after the blocks that the prefix cache holds, but always computes its
   last token.
3. The step takes the time of the step table. The step that computes the last known token of a request samples its next.

A prompt block can be found by others as soon as the step that computes it is planned, as in vLLM.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.serve.simulate.costs.table import StepTable
from ridgeline.serve.simulate.engine import state as st
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.simulate.engine.result import NO_MEMORY, OVER_BUDGET, SERVED, TOO_LONG, Result, Steps, Totals
from ridgeline.serve.simulate.traffic.workload import Workload

LOG_ROWS = 65_536


def simulate(
    workload: Workload, table: StepTable, engine: Engine, seed: int = 0, *, record_steps: bool = False
) -> Result:
    """What every request of ``workload`` lives through. ``seed`` decides accepted drafts and random routing only.

    ``record_steps`` keeps one row per step. A request that can never be served is left out and listed by
    `Result.rejected`. Raises `InputError` where the hashed blocks of the workload do not fit the engine's.
    """
    status = admissible(workload, engine)
    kept = workload if not status.any() else _served(workload, status)
    if kept is None:
        return _result(workload, engine, seed, status, _Ended.nothing(engine))
    prefix = engine.prefix_cache and kept.has_hashes
    rows = st.requests(kept, engine, seed)
    memory = st.memory(kept, engine, rows, prefix=prefix)
    state = st.state(kept, engine, rows, prefix=prefix)
    log = _run(state, memory, st.costs(table, engine), record_steps=record_steps)
    return _result(workload, engine, seed, status, _Ended(rows, state.workers, log))


def admissible(workload: Workload, engine: Engine) -> NDArray[np.int64]:
    """`SERVED` or the reason why a request can never be served, per request."""
    whole = workload.input_tokens + workload.output_tokens
    blocks = -(-(whole - 1 + engine.drafted - 1) // engine.block_size)
    status = np.full(len(workload), SERVED, dtype=np.int64)
    policy = engine.policy
    if not policy.chunked:
        recomputed = not policy.reserve and engine.preemption == "recompute"
        longest = whole - 1 if recomputed else workload.input_tokens
        status[longest > engine.max_num_batched_tokens] = OVER_BUDGET
    status[blocks > engine.kv_blocks] = NO_MEMORY
    if engine.max_context:
        status[whole > engine.max_context] = TOO_LONG
    return status


def _served(workload: Workload, status: NDArray[np.int64]) -> Workload | None:
    keep = status == SERVED
    return workload.take(keep) if keep.any() else None


def _run(state: st.State, memory: st.Memory, costs: st.Costs, *, record_steps: bool) -> st.Records:
    from ridgeline.serve.simulate.kernel.events import LOG_FULL, STUCK, run

    log = np.zeros(LOG_ROWS if record_steps else 0, dtype=st.STEP)
    while (code := run(state, memory, costs, log)) == LOG_FULL:
        log = np.concatenate([log, np.zeros(len(log), dtype=st.STEP)])
    assert code != STUCK, "requests are left and nothing can happen"
    log = log[: state.progress[0]["logged"]]
    return log[np.argsort(log["start_s"], kind="stable")] if len(state.workers) > 1 else log


@dataclass(frozen=True, eq=False)
class _Ended:
    requests: st.Records
    workers: st.Records
    log: st.Records

    @classmethod
    def nothing(cls, engine: Engine) -> "_Ended":
        return cls(np.zeros(0, dtype=st.REQUEST), st.workers(engine), np.zeros(0, dtype=st.STEP))


def _result(workload: Workload, engine: Engine, seed: int, status: NDArray[np.int64], ended: _Ended) -> Result:
    keep = status == SERVED

    def spread(name: str, missing: float, dtype: type) -> Any:
        whole: NDArray[Any] = np.full(len(workload), missing, dtype=dtype)
        whole[keep] = ended.requests[name]
        return whole

    names = {"arrival_s": "arrival_s", "scheduled_s": "scheduled_s", "first_token_s": "first_s"}
    names |= {"finished_s": "finished_s", "longest_gap_s": "gap_s"}
    counts = {"emitted": "emitted", "preemptions": "preemptions", "hit_tokens": "hits", "worker": "worker"}
    w, log = ended.workers, ended.log
    return Result(
        workload,
        engine,
        seed,
        **{name: spread(field, np.nan, np.float64) for name, field in names.items()},
        **{name: spread(field, -1 if name == "worker" else 0, np.int64) for name, field in counts.items()},
        status=status,
        free_blocks=w["free"].copy(),
        totals=Totals(**{name: w[name].copy() for name in Totals.__dataclass_fields__}),
        steps=Steps(**{name: log[name].copy() for name in Steps.__dataclass_fields__}) if len(log) else None,
    )
