"""Seconds of single kernels on a cluster's chip: matmuls, attention, streams of bytes and collectives, vectorised."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic import kernels
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.kept import Kernel
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.plan.steps.cluster import Cluster

Array = NDArray[np.float64]
Count = NDArray[np.int64]
_PLANE = 16  # chips: a larger group of a torus covers two of its axes


@dataclass(frozen=True)
class Software:
    """What runs on the chips. ``dtype`` is that of the layers' matmuls; the head and attention stay in bf16.

    ``framework`` names one of ``core/data/expected.toml``, or a family of them (``megatron-core``, ``fsdp``, ``jax``).
    ``gradients`` is the type that is reduced: beside bf16 weights Megatron-LM and FSDP take fp32 unless told otherwise.
    """

    dtype: str = "bf16"
    attention: Kernel = "flash"
    dropout: bool = False
    framework: str = "megatron-core"
    gradients: str = "fp32"


class Machine:
    """One cluster with its software. Times take arrays and broadcast; bytes and counts are per rank.

    Raises `InputError` for a data type or memory bandwidth that no source states for the device.
    """

    def __init__(self, cluster: Cluster, software: Software) -> None:
        self.cluster = cluster
        self.software = software
        device = cluster.device
        self.wide = next((name for name in ("bf16", "fp16") if name in device.peaks), software.dtype)
        self.narrow = float(dtype_bytes(software.dtype).base) < float(dtype_bytes(self.wide).base)
        self._hbm = float(known(device.hbm_bandwidth, f"the memory bandwidth of {device.name}").base)
        peak = known(device.peak(software.dtype), f"the {software.dtype} peak of {device.name}")
        self.peak_flops_per_s = float(peak.base)
        self.attention_backward = float(kernels.attention_backward().base)
        self._matmuls = {name: kernels.gemm(device, name) for name in {self.wide, software.dtype}}
        self._collective = kernels.collective(device)

    @cached_property
    def _network(self) -> kernels.Network:
        found = kernels.Network.of(self.cluster.network_bytes_per_s)
        return replace(found, latency_s=self.cluster.network_latency_s)

    @cached_property
    def _attention(self) -> kernels.AttentionSurface:
        return kernels.attention(self.cluster.device, self.wide)

    def matmul_s(self, m: Array, n: Array, k: Array, *, wide: bool = False) -> Array:
        """``[m, k] x [k, n]`` in the layers' type, or in bf16 where ``wide``."""
        surface = self._matmuls[self.wide if wide else self.software.dtype]
        return surface.seconds(np.maximum(m, 1), np.maximum(n, 1), np.maximum(k, 1)).seconds

    def attention_s(self, batch: Array, heads: Array, kv_heads: Array, seq: int, head_dim: int) -> Array:
        """Forward causal attention of ``batch`` sequences in a fused kernel."""
        return self._attention.seconds(batch, heads, np.minimum(kv_heads, heads), seq, head_dim).seconds

    def stream_s(self, moved_bytes: Array) -> Array:
        """Bytes read and written by memory-bound kernels, at the memory's full bandwidth."""
        return np.asarray(moved_bytes / self._hbm)

    def collective_s(self, kind: str, size_bytes: Array, group: Count, per_node: Count) -> Array:
        """One collective of ``group`` ranks, ``per_node`` of them in a scale-up domain; sizes as in `collectives`."""
        if not np.any(group > 1):
            return np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(group)))
        seconds = self._collective.seconds
        line = seconds(kind, size_bytes, group, per_node, self._network).seconds
        link = self.cluster.device.scale_up
        if link is None or "torus" not in link.topology or not np.any(per_node > _PLANE):
            return line
        plane = seconds(kind, size_bytes, group, per_node, self._network, axes=2).seconds
        return np.where(per_node > _PLANE, plane, line)
