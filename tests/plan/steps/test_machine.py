"""Kernels on a cluster's chip."""

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.machine import Machine, Software

ONE = np.array([1])


def test_rates_stay_below_the_peak() -> None:
    machine = Machine(parse("8xH100"), Software())
    side = np.array([512.0, 4096.0, 16384.0])
    rate = 2 * side**3 / machine.matmul_s(side, side, side)
    assert rate[0] < 0.3 * rate[1] < rate[2]
    assert rate.max() < machine.peak_flops_per_s
    batch = np.array([8.0])
    pairs = 4096 * 4097 / 2
    attention = 4 * batch * 32 * 128 * pairs / machine.attention_s(batch, batch * 4, batch, 4096, 128)
    assert 0.3 * machine.peak_flops_per_s < attention[0] < machine.peak_flops_per_s


def test_fp8_layers_leave_the_head_in_bf16() -> None:
    machine = Machine(parse("8xH100"), Software(dtype="fp8"))
    side = np.array([8192.0])
    narrow, wide = machine.matmul_s(side, side, side), machine.matmul_s(side, side, side, wide=True)
    assert machine.narrow
    assert 1.3 < wide[0] / narrow[0] < 2.2


def test_streams_run_at_memory_bandwidth() -> None:
    assert Machine(parse("8xH100"), Software()).stream_s(np.array([3.35e12]))[0] == pytest.approx(1.0)


def test_a_group_of_one_sends_nothing() -> None:
    machine = Machine(parse("16xH100"), Software())
    assert machine.collective_s("all_reduce", np.array([1e9]), ONE, ONE).tolist() == [0.0]


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_the_network_is_slower_than_the_link(kind: str) -> None:
    machine = Machine(parse("16xH100"), Software())
    near, far = machine.collective_s(kind, np.array([1e9, 1e9]), np.array([8, 8]), np.array([8, 1]))
    assert far > 3 * near


def test_a_torus_uses_two_axes_for_large_groups() -> None:
    machine = Machine(parse("256xTPU-v6e"), Software())
    line, plane = machine.collective_s("all_gather", np.array([1e9, 1e9]), np.array([16, 256]), np.array([16, 256]))
    assert plane < 1.2 * line


def test_a_chip_without_the_type() -> None:
    with pytest.raises(InputError, match="fp8 peak of A100"):
        Machine(parse("8xA100"), Software(dtype="fp8"))
