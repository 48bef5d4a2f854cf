"""MFU, HFU, the MFU budget, pipeline utilization."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.worked import number, printed, q

from ridgeline.arithmetic.mfu import (
    budget,
    hfu,
    hfu_of_mfu,
    ideal_time,
    mfu,
    pipeline_utilization,
    points_of,
    step_flops,
)
from ridgeline.core.errors import InputError

SECONDS = st.floats(min_value=1e-3, max_value=1e4)


def test_the_incident_of_section_h() -> None:
    chips, peak = q(256, "chip", "chips"), q(918e12, "FLOP/s/chip", "peak")
    flops = step_flops(q(70e9, "param", "N"), q(256 * 8192, "token", "tokens"))
    assert number(ideal_time(flops, chips, peak)) == printed("3.75")
    assert number(mfu(flops, chips, peak, q(15.0, "s", "step"))) == printed("25.0")


@given(step=st.floats(min_value=1.0, max_value=1e3), chips=st.integers(1, 10**5))
def test_mfu_is_the_ideal_time_over_the_observed(step: float, chips: int) -> None:
    parts = (q(1e18, "FLOP", "flops"), q(chips, "chip", "chips"), q(1e15, "FLOP/s/chip", "peak"))
    found = mfu(*parts, q(step, "s", "step"))
    assert number(found, "1") == pytest.approx(number(ideal_time(*parts)) / step)


def test_hfu_has_its_own_name() -> None:
    found = hfu(q(8e15, "FLOP", "f"), q(8, "chip", "c"), q(1e15, "FLOP/s/chip", "p"), q(2, "s", "t"), prefix="run")
    assert (found.name, number(found)) == ("run.hfu", pytest.approx(50))


@pytest.mark.parametrize(("recomputed", "ratio"), [(0, 1), (1, 4 / 3), (0.3, 1.1)], ids=["none", "full", "selective"])
def test_hfu_with_recomputation(recomputed: float, ratio: float) -> None:
    found = hfu_of_mfu(q(30, "%", "mfu"), q(recomputed, "1", "recomputed"))
    assert number(found) == pytest.approx(30 * ratio)


@given(st.dictionaries(st.sampled_from(["matmul", "vector", "memory", "comms", "host"]), SECONDS, min_size=1))
def test_shares_add_up_and_the_lever_is_never_the_matmul(seconds: dict[str, float]) -> None:
    found = budget({name: q(value, "s", name) for name, value in seconds.items()})
    assert sum(number(share) for share in found.shares.values()) == pytest.approx(100)
    others = {name: value for name, value in seconds.items() if name != "matmul"}
    assert found.lever == (max(others, key=lambda name: others[name]) if others else "")
    if found.without_lever is not None:
        assert number(found.without_lever) == pytest.approx(sum(seconds.values()) - others[found.lever], abs=1e-9)


def test_no_lever_where_nothing_is_lost() -> None:
    found = budget({"matmul": q(3, "s", "a"), "comms": q(0, "s", "b")})
    assert (found.lever, found.without_lever) == ("", None)


def test_other_useful_buckets() -> None:
    seconds = {"gemm": q(9, "s", "a"), "attention": q(5, "s", "b"), "comms": q(1, "s", "c")}
    assert budget(seconds, useful=("gemm", "attention")).lever == "comms"


def test_buckets_in_different_units() -> None:
    found = budget({"matmul": q(1, "s", "a"), "comms": q(3000, "ms", "b"), "host": q(2, "s", "c")})
    assert (found.lever, number(found.shares["comms"])) == ("comms", pytest.approx(50))


@pytest.mark.parametrize(
    ("seconds", "message"),
    [({}, "at least one bucket"), ({"matmul": -1, "comms": 2}, "zero or more"), ({"matmul": 0}, "above zero")],
)
def test_budget_refuses(seconds: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        budget({name: q(value, "s", name) for name, value in seconds.items()})


def test_interleaving_shrinks_the_bubble() -> None:
    m, s = q(8, "1", "M"), q(4, "1", "S")
    assert number(pipeline_utilization(m, s, q(1, "1", "v"))) == number(pipeline_utilization(m, s))
    assert number(pipeline_utilization(m, s, q(3, "1", "v"))) == pytest.approx(100 * 8 / 9)


def test_pipeline_of_candidates() -> None:
    found = pipeline_utilization(q(np.array([1.0, 4.0, 64.0]), "1", "M"), q(np.array([1.0, 4.0, 8.0]), "1", "S"))
    np.testing.assert_allclose(found.value, [100, 400 / 7, 6400 / 71])


def test_no_stage_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        pipeline_utilization(q(8, "1", "M"), q(0, "1", "S"))


def test_points_of_lost_seconds() -> None:
    ideal, step, lost = (q(value, "s") for value in (4.0, 10.0, 2.0))
    found = points_of(ideal, step, lost, "lost.points")
    assert found.name == "lost.points"
    assert number(found) == pytest.approx(50 - 40)
