"""The run of a drill: a transformer under fully sharded data parallelism, and what its work takes on the device.

Durations are work over rate: FLOPs or bytes, from shapes, over a rate of the catalog times an efficiency that well
tuned runs reach. The efficiencies are the drill's own scenario, no statement about a device.
"""

import random
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import prod
from typing import cast

from ridgeline.arithmetic.collectives import Collective as Kind
from ridgeline.arithmetic.collectives import sent
from ridgeline.core import catalog
from ridgeline.core.device import Device
from ridgeline.core.quantity import leaf
from ridgeline.trace.levels.op_flops import AttentionShape, Gemm, attention_flops

GIGA = 10**9
DEVICE = "h100-sxm-80gb"
DEVICE_NAME = "NVIDIA H100 80GB HBM3"
MATMUL, ATTENTION, MEMORY, LINK, HOST_LINK = 0.74, 0.62, 0.88, 0.82, 25 * GIGA  # shares of peak; B/s to the host
SHAPES = ((4096, 128, 14336), (5120, 128, 13824), (3072, 128, 8192), (4096, 128, 11008))  # width, head, feed-forward


@dataclass(frozen=True)
class Job:
    """Sizes of the run. ``tokens`` are those of one rank in a step; the trace has ``steps``, the log ``log_steps``."""

    seed: int
    ranks: int
    layers: int
    d_model: int
    head_dim: int
    d_ff: int
    vocab: int
    sequences: int
    sequence: int
    steps: int
    log_steps: int

    @property
    def tokens(self) -> int:
        """Of one rank in one step."""
        return self.sequences * self.sequence

    @property
    def heads(self) -> int:
        """Query heads; every fourth is a key head."""
        return self.d_model // self.head_dim

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads // 4

    @property
    def qkv(self) -> int:
        """Columns of the joint projection."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @cached_property
    def attention(self) -> AttentionShape:
        """One layer's attention, forward."""
        return AttentionShape(
            self.sequences, self.heads, self.kv_heads, self.sequence, self.sequence, self.head_dim, self.head_dim,
            causal=True, window=None, backward=False,
        )  # fmt: skip

    def unit_params(self, unit: int) -> int:
        """Weights that are gathered together: a layer's attention (even units) or feed-forward (odd)."""
        if unit % 2 == 0:
            return self.d_model * (self.qkv + self.d_model)
        return 3 * self.d_model * self.d_ff

    @property
    def units(self) -> int:
        """Two a layer."""
        return 2 * self.layers

    @property
    def params(self) -> int:
        """All weights, the table and the head included."""
        return sum(map(self.unit_params, range(self.units))) + 2 * self.vocab * self.d_model


def job_of(seed: int) -> Job:
    """The run of a seed."""
    draw = random.Random(f"job {seed}")
    d_model, head_dim, d_ff = draw.choice(SHAPES)
    return Job(
        seed=seed, ranks=draw.choice((2, 4, 4, 8)), layers=draw.choice((4, 4, 5)), d_model=d_model, head_dim=head_dim,
        d_ff=d_ff, vocab=draw.choice((8704, 9728, 11776)), sequences=draw.choice((4, 6, 8)), sequence=4096,
        steps=draw.choice((3, 4)), log_steps=draw.choice((400, 500, 600)),
    )  # fmt: skip


def small(job: Job) -> Job:
    """The same run with two ranks, three steps and four layers: for quick tests."""
    return replace(job, ranks=2, steps=3, layers=4)


@cache
def device() -> Device:
    """The device that the drills run on."""
    return catalog.device(DEVICE)


@cache
def peak(dtype: str) -> float:
    """Dense FLOP/s."""
    found = device().peak(dtype)
    assert found is not None
    return float(found.base)


@cache
def _hbm() -> float:
    found = device().hbm_bandwidth
    assert found is not None
    return float(found.base)


@cache
def _link() -> float:
    found = device().scale_up
    assert found is not None
    return float(found.bandwidth.base)


def matmul_ns(gemm: Gemm, dtype: str = "bf16", efficiency: float = MATMUL) -> float:
    """A product at a share of the peak."""
    return gemm.flops / (peak(dtype) * efficiency) * GIGA


def attention_ns(shape: AttentionShape) -> float:
    """A fused attention kernel."""
    return attention_flops(shape) / (peak("bf16") * ATTENTION) * GIGA


def memory_ns(size_bytes: float) -> float:
    """A kernel that streams so many bytes."""
    return size_bytes / (_hbm() * MEMORY) * GIGA


@cache
def wire_ns(kind: str, size_bytes: int, ranks: int, share: float = LINK) -> float:
    """A collective over the array's whole size at a share of the link, with 12 us of latency."""
    moved = sent(cast(Kind, kind), leaf("size", float(size_bytes), "B"), leaf("chips", float(ranks), "chip"))
    return float(moved.base) / (_link() * share) * GIGA + 12_000


def host_copy_ns(size_bytes: float) -> float:
    """A copy from pinned host memory."""
    return size_bytes / HOST_LINK * GIGA


def numel(shape: tuple[int, ...]) -> int:
    """Elements of an array."""
    return prod(shape)
