"""Reading the coefficient files, and interpolation on their grids."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core import catalog, surfaces
from ridgeline.core.surfaces import Grid, Spread, corners

AXES = ([1, 10, 100], [2, 4], [7])


def grid(values: np.ndarray) -> Grid:
    return Grid(tuple(np.log(np.asarray(axis, dtype=np.float64)) for axis in AXES), values.ravel())


def test_a_node_gives_its_own_value() -> None:
    values = np.arange(6, dtype=np.float64).reshape(3, 2, 1)
    held = grid(values)
    for (i, x), (j, y) in itertools.product(enumerate(AXES[0]), enumerate(AXES[1])):
        assert held.at(*(np.log([side]) for side in (x, y, 7.0))) == pytest.approx(values[i, j, 0])


@given(st.floats(0.5, 500), st.floats(1.0, 9.0))
def test_a_function_linear_in_logarithms_comes_back_inside_and_its_border_holds_outside(x: float, y: float) -> None:
    a, b = np.log(AXES[0])[:, None], np.log(AXES[1])[None, :]
    held = grid((3 * a - 2 * b + 1)[:, :, None])
    clamped = 3 * np.log(np.clip(x, 1, 100)) - 2 * np.log(np.clip(y, 2, 4)) + 1
    assert held.at(np.log([x]), np.log([y]), np.log([7.0]))[0] == pytest.approx(clamped)
    inside = 1 <= x <= 100 and 2 <= y <= 4
    assert held.covers(np.log([x]), np.log([y]), np.log([7.0]))[0] == inside


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=5))
def test_weights_sum_to_one_and_indices_stay_in_the_grid(points: list[float]) -> None:
    axes = [np.log(np.asarray(axis, dtype=np.float64)) for axis in AXES]
    found = list(corners(axes, [np.log(points)] * 3))
    assert sum(weight for _, weight in found) == pytest.approx(np.ones(len(points)))
    assert all(index.min() >= 0 and index.max() < 6 and weight.min() >= 0 for index, weight in found)


def test_outside_the_grid_the_interval_is_wider() -> None:
    spread = Spread(np.array([1e9]), np.array([-0.2, -0.1]), np.array([0.3, 0.1]), (-0.1, 0.2))
    low, high = spread.at(np.array([1e8, 1e8, 1e10]), np.array([True, False, True]))
    assert low == pytest.approx([-0.2, -0.3, -0.1])
    assert high == pytest.approx([0.3, 0.5, 0.1])


@pytest.mark.parametrize("system", [*surfaces.systems(), surfaces.TYPICAL])
def test_every_file_is_whole(system: str) -> None:
    held = surfaces.load(system)
    for slug in (*held.devices, *held.stand_in_for):
        assert catalog.device(slug).slug == slug
        assert surfaces.measured(slug) is held
    for surface in (*held.gemm.values(), *held.attention.values()):
        assert surface.grid.values.size == np.prod([len(axis) for axis in surface.grid.axes])
        assert all(np.all(np.diff(axis) > 0) for axis in surface.grid.axes)
        assert len(surface.spread.low) == len(surface.spread.high) == len(surface.spread.edges_flops) + 1
        assert np.all(surface.spread.low <= 0)
        assert np.all(surface.spread.high >= 0)
        assert surface.ceiling is None or 0 < surface.ceiling[1] <= surface.ceiling[0] <= surface.ceiling[2] < 1
        assert surface.rows > 100
    for ramp in held.collectives.values():
        assert ramp.grid.values.size == np.prod([len(axis) for axis in ramp.grid.axes])
        assert ramp.spread[0] <= 0 <= ramp.spread[1]
    assert all(0 < share < 1 for share in held.bus_efficiency.values())
    assert held.source.read_on
    assert held.source.url


def test_the_files_stay_small_and_name_their_licence() -> None:
    files = sorted(surfaces.FOLDER.glob("*.json"))
    assert sum(file.stat().st_size for file in files) <= 150_000
    for file in files:
        source = json.loads(file.read_text(encoding="utf-8"))["source"]
        assert source["licence"]
        assert len(source["commit"]) == 8


def test_a_device_nobody_measured_has_no_surfaces() -> None:
    assert surfaces.measured("tpu-v5p") is None
