"""Kernels of a deployment's chips: narrow weights, padded sides, and groups beyond the scale-up domain."""

import numpy as np
import pytest

from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.serve.steps.machine import machine

ONE, WIDE = np.array([1.0]), np.array([8192.0])


def test_narrow_weights_without_units_of_their_own_read_fewer_bytes() -> None:
    plain, light = (machine(device("a100-sxm-80gb"), w).matmul(ONE, WIDE, WIDE, wide=False) for w in ("bf16", "int4"))
    assert 0.25 < light.seconds / plain.seconds < 0.6
    busy = np.array([8192.0])
    plain, light = (machine(device("a100-sxm-80gb"), w).matmul(busy, WIDE, WIDE, wide=False) for w in ("bf16", "int4"))
    assert light.seconds / plain.seconds > 0.95


def test_a_wide_matmul_ignores_the_weights() -> None:
    one, other = (machine(device("h100-sxm-80gb"), w).matmul(ONE, WIDE, WIDE, wide=True) for w in ("bf16", "fp8"))
    assert one.seconds == other.seconds


def test_a_sliver_takes_no_longer_than_a_tile() -> None:
    found = machine(device("h200-sxm-141gb"), "fp8").matmul(
        ONE, np.array([1.0, 128.0, 100.5]), 0 * WIDE + 4096, wide=False
    )
    assert found.seconds[0] == found.seconds[1] == found.seconds[2]


def test_a_group_beyond_the_domain_takes_the_network() -> None:
    chips = machine(device("h100-sxm-80gb"), "bf16")
    size = np.array([16384.0, 2.0**24])
    near, far = chips.all_reduce(size, 8).seconds, chips.all_reduce(size, 16).seconds
    assert np.all(far > near)
    assert not np.any(chips.all_reduce(size, 1).seconds)
    assert not np.any(chips.collective("all_to_all", size, 1).seconds)
    rack = machine(device("gb200"), "bf16")
    assert rack.domain == 72


def test_a_device_without_a_bandwidth_is_refused() -> None:
    silent = device("h100-sxm-80gb")
    from dataclasses import replace

    with pytest.raises(InputError, match="memory bandwidth"):
        machine(replace(silent, slug="other", hbm_bandwidth=None), "bf16")
