"""Bounds, ridge points and intensities."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.worked import number, printed, q, rates

from ridgeline.arithmetic.roofline import (
    Rates,
    Work,
    achievable,
    attainable,
    binding,
    bounds,
    decode_intensity,
    matmul_intensity,
    network_ridge_point,
    peak_share,
    ridge_point,
)
from ridgeline.arithmetic.tiles import MatmulShape
from ridgeline.core.case import Case
from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity

AMOUNT = st.floats(min_value=1e3, max_value=1e24)
NETWORKED = Rates(q(1e15, "FLOP/s/chip", "peak"), q(1e12, "B/s/chip", "hbm"), q(1e11, "B/s/chip", "net"))


def work(flops: float, moved: float, network: float | None = None, chips: int | None = None) -> Work:
    return Work(
        q(flops, "FLOP", "flops"),
        q(moved, "B", "bytes"),
        None if network is None else q(network, "B", "sent"),
        None if chips is None else q(chips, "chip", "chips"),
    )


@pytest.mark.parametrize(
    ("flops", "moved", "network", "resource"),
    [(3e15, 1e12, 1e11, "compute"), (1e15, 3e12, 1e11, "memory"), (1e15, 1e12, 3e11, "network")],
)
def test_the_slowest_resource_binds(flops: float, moved: float, network: float, resource: str) -> None:
    found = bounds(work(flops, moved, network), NETWORKED)
    assert found.binding == resource
    assert number(found.lower) == pytest.approx(3)
    assert number(found.upper) == pytest.approx(5)
    assert number(found.peak_share) == pytest.approx(100 if resource == "compute" else 100 / 3)


def test_without_network_there_are_two_bounds() -> None:
    found = bounds(work(1e15, 3e12), NETWORKED)
    assert found.network is None
    assert list(found.resources) == ["compute", "memory"]
    assert found.upper.formula == "compute + memory"


@given(flops=AMOUNT, moved=AMOUNT, network=AMOUNT, chips=st.integers(1, 10**5))
def test_bounds_bracket(flops: float, moved: float, network: float, chips: int) -> None:
    found = bounds(work(flops, moved, network, chips), NETWORKED)
    times = [number(item) for item in found.resources.values()]
    assert number(found.lower) == max(times)
    assert number(found.lower) <= number(found.upper) <= 3 * number(found.lower) * (1 + 1e-12)
    assert number(found.resources[found.binding]) == number(found.lower)
    alone = bounds(work(flops, moved, network), NETWORKED)
    assert number(found.lower) * chips == pytest.approx(number(alone.lower))


def test_candidates_bind_one_by_one() -> None:
    flops = np.array([3e15, 1e15])
    found = bounds(Work(q(flops, "FLOP", "flops"), q(2e12, "B", "bytes")), NETWORKED)
    assert found.binding.tolist() == ["compute", "memory"]
    np.testing.assert_allclose(found.lower.value, [3, 2])


def test_first_of_equals_binds() -> None:
    assert binding({"compute": q(1, "s"), "memory": q(1000, "ms")}) == "compute"


@given(side=st.integers(1, 10**5), name=st.sampled_from(["H100", "A100-80", "v5e", "v5p"]))
def test_the_roofline_is_the_same_as_its_bounds(side: int, name: str) -> None:
    shape = MatmulShape(q(side, "1", "m"), q(side, "1", "k"), q(side, "1", "n"))
    intensity = matmul_intensity(shape, q(2, "B", "element"))
    flops, moved = 2.0 * side**3, 2.0 * 3 * side**2
    share = number(peak_share(intensity, rates(name)))
    assert share == pytest.approx(number(bounds(work(flops, moved), rates(name)).peak_share))
    ridge = number(ridge_point(rates(name)))
    assert share == pytest.approx(100 * min(1.0, number(intensity) / ridge))


def test_attainable_never_passes_peak() -> None:
    found = attainable(q(np.array([1.0, 1e6]), "FLOP/B", "intensity"), rates("H100"))
    np.testing.assert_allclose(found.value, [3.35e12, 990e12])


@pytest.mark.parametrize(("batch", "expected"), [(1, "1.0"), (8, "6.9"), (64, "28.7"), (256, "43.3"), (1024, "49.6")])
def test_decode_intensity_saturates_at_the_cache(batch: int, expected: str) -> None:
    cache = q(2 * 8 * 128 * 80 * 8192 * 2, "B", "cache")
    found = decode_intensity(q(70e9, "param", "N"), q(batch, "1", "batch"), q(140e9, "B", "weights"), cache)
    assert number(found) == printed(expected)
    assert number(found) < 2 * 70e9 / number(cache)


def test_every_operand_crosses_the_bus_once() -> None:
    shape = MatmulShape(q(3, "1", "m"), q(5, "1", "k"), q(7, "1", "n"))
    found = matmul_intensity(shape, q(2, "B", "element"))
    assert number(found) == pytest.approx(2 * 3 * 5 * 7 / (2 * (3 * 5 + 5 * 7 + 3 * 7)))


def test_network_ridge_point() -> None:
    assert number(network_ridge_point(NETWORKED)) == pytest.approx(1e4)


def test_achievable_keeps_its_unit_and_refuses_more_than_all() -> None:
    found = achievable(rates("H100").peak, q(40, "%", "efficiency"))
    assert (found.unit, number(found)) == ("FLOP/s/chip", pytest.approx(396e12))
    with pytest.raises(InputError, match="at most 1"):
        achievable(rates("H100").peak, q(1.4, "1", "efficiency"))


def _with(resource: str, value: float) -> Rates:
    unit = "FLOP/s/chip" if resource == "peak" else "B/s/chip"
    changed: Rates = replace(NETWORKED, **{resource: q(value, unit, resource)})
    return changed


@pytest.mark.parametrize("resource", ["peak", "bandwidth", "network"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_rate_of_zero_is_refused(resource: str, value: float) -> None:
    with pytest.raises(InputError, match=f"above zero.*{resource}"):
        bounds(work(1e15, 1e12, 1e11), _with(resource, value))


def test_no_chips_are_refused() -> None:
    with pytest.raises(InputError, match="above zero"):
        bounds(work(1e15, 1e12, chips=0), NETWORKED)


def test_rates_of_a_device() -> None:
    found = Rates.of(device("H100"), "bf16")
    assert found.peak is device("H100").peak("bf16")
    assert isinstance(found.network, Quantity)
    with pytest.raises(InputError, match="the fp8 peak of A100"):
        Rates.of(device("A100"), "fp8")


def test_prefixes_keep_two_chips_apart_in_one_case() -> None:
    case = Case("test", "two chips")
    for name in ("H100", "v5e"):
        peak, bandwidth = rates(name).peak.named(f"{name}.peak"), rates(name).bandwidth.named(f"{name}.bandwidth")
        case.add(ridge_point(Rates(peak, bandwidth), name.lower()))
    assert {"h100.roofline.ridge", "v5e.roofline.ridge"} <= set(case.quantities)
