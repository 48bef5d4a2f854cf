"""Small step tables, workloads and engines for the tests of the simulator."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ridgeline.serve.simulate.costs.table import Curve, Grid, StepTable
from ridgeline.serve.simulate.engine.engine import Engine, Pools, Speculation
from ridgeline.serve.simulate.traffic.workload import Workload


def a_table() -> StepTable:
    """Every term at work, none of them linear."""
    chunk, past = np.array([0.0, 8.0, 64.0]), np.array([0.0, 16.0, 100.0])
    decodes, context = np.array([0.0, 1.0, 4.0, 9.0]), np.array([0.0, 10.0, 90.0])
    c, p, n, m = np.meshgrid(chunk, past, decodes, context, indexing="ij")
    attention = 1e-5 + 1e-6 * c * (p + c / 2) ** 0.7 + 3e-6 * n**0.9 * m
    skew = Grid((np.array([0.0, 32.0]), np.array([1.0, 8.0]), np.array([0.0, 50.0]), np.array([1.0, 3.0])), _alphas())
    return StepTable(
        dense=Curve(np.array([1.0, 7.0, 32.0]), np.array([0.01, 0.011, 0.03])),
        head=Curve(np.array([0.0, 4.0]), np.array([1e-3, 3e-3])),
        attention=Grid((chunk, past, decodes, context), attention),
        skew=skew,
        experts=Curve(np.array([0.0, 16.0]), np.array([2e-3, 7e-3])),
        host_step_s=1e-3,
        host_sequence_s=1e-5,
    )


def _alphas() -> np.ndarray:
    return np.linspace(-0.1, 0.6, 16).reshape(2, 2, 2, 2)


def constant_table(step_s: float = 0.01) -> StepTable:
    """Every step takes as long."""
    zero = Curve(np.zeros(1), np.zeros(1))
    axis = np.zeros(1)
    return StepTable(
        Curve(np.zeros(1), np.array([step_s])), zero, Grid((axis, axis, axis, axis), np.zeros((1, 1, 1, 1)))
    )


def a_workload(arrival_s: list[float], inputs: list[int], outputs: list[int], **more: Any) -> Workload:
    """Requests in the order given."""
    return Workload(np.array(arrival_s, dtype=float), np.array(inputs), np.array(outputs), **more)


def shared_prefixes(rng: np.random.Generator, inputs: np.ndarray, size: int) -> dict[str, Any]:
    """Hashes of prompts that follow one of two stories for a while, then go their own way."""
    hashes: list[int] = []
    offsets = [0]
    for i, tokens in enumerate(inputs.tolist()):
        blocks = -(-tokens // size)
        common = int(rng.integers(0, blocks + 1))
        story = int(rng.integers(0, 2))
        hashes += [1000 * story + j if j < common else 100_000 + 1000 * i + j for j in range(blocks)]
        offsets.append(len(hashes))
    return {"hashes": np.array(hashes), "hash_offsets": np.array(offsets), "hash_tokens": size}


@st.composite
def workloads(draw: st.DrawFn, *, most: int = 14) -> Workload:
    """Bursts of short requests, open or closed, with priorities and prefixes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, most))
    inputs, outputs = rng.integers(1, 40, count), rng.integers(1, 14, count)
    gaps = rng.choice([0.0, 0.004, 0.02, 0.3], count)
    closed = draw(st.sampled_from([0, 0, 1, 3]))
    more = shared_prefixes(rng, inputs, 8) if draw(st.booleans()) else {}
    return Workload(
        np.cumsum(gaps),
        inputs,
        outputs,
        priority=rng.integers(0, 3, count),
        concurrency=closed,
        think_s=draw(st.sampled_from([0.0, 0.01])) if closed else 0.0,
        **more,
    )


@st.composite
def engines(draw: st.DrawFn) -> Engine:
    """Every scheduler, memory from barely enough for one request to plenty, and every option."""
    scheduler = draw(st.sampled_from(["vllm", "vllm", "sglang", "prefill-first", "orca", "static"]))
    alone = scheduler == "static"
    speculation = None if alone else draw(st.sampled_from([None, None, Speculation(3, (0.8, 0.6, 0.3), 1e-3, 1e-5)]))
    pools = None if alone else draw(st.sampled_from([None, None, Pools(1, 1, 1e6), Pools(2, 3, 1e5, 0.01, 3)]))
    whole = scheduler in ("prefill-first", "orca", "static")
    return Engine(
        kv_blocks=draw(st.sampled_from([16, 16, 20, 40, 200])),
        scheduler=scheduler,
        max_num_seqs=draw(st.integers(1, 7)),
        max_num_batched_tokens=draw(st.integers(60, 90) if whole else st.integers(28, 40)),
        block_size=4,
        whole_prompt=draw(st.booleans()),
        by_priority=draw(st.booleans()),
        preemption=draw(st.sampled_from(["recompute", "swap"])),
        swap_bytes_per_s=1e6,
        kv_bytes_per_token=1e3,
        replicas=1 if pools else draw(st.integers(1, 3)),
        routing=draw(st.sampled_from(["round-robin", "least-loaded", "prefix", "random"])),
        pools=pools,
        speculation=speculation,
    )
