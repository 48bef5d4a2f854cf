"""Before and after, small and large."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.runs import number

from ridgeline.core.case import Case
from ridgeline.core.errors import InputError
from ridgeline.trace.versus import Profile, compare, next_scale, scale

BEFORE = Profile("before", {"compute": 9.0, "exposed_comm": 3.6, "host_gap": 1.5, "late_gap": 0.9}, 256, 2**21, 3.75)
AFTER = Profile("after", {"compute": 9.0, "exposed_comm": 1.6, "host_gap": 1.9, "late_gap": 0.9}, 256, 2**21, 3.75)


def test_what_the_fix_bought_and_what_moved() -> None:
    found = compare(BEFORE, AFTER)
    assert [(row.bucket, round(number(row.change), 9)) for row in found.rows[:2]] == [
        ("exposed_comm", -2.0),
        ("host_gap", 0.4),
    ]
    assert found.aimed_s == pytest.approx(2.0)
    assert found.moved_s == pytest.approx(0.4)
    assert number(found.points) == pytest.approx(100 * 3.75 * (1 / 13.4 - 1 / 15))


def test_a_bucket_that_one_run_lacks_is_zero_there() -> None:
    found = compare(Profile("a", {"compute": 1.0}), Profile("b", {"compute": 1.0, "stall": 0.5}))
    assert number(found.rows[0].change) == 0.5
    assert found.points is None


def test_different_ideals_give_no_points() -> None:
    other = Profile("after", AFTER.buckets, 256, 2**21, 3.0)
    assert compare(BEFORE, other).points is None


def test_a_run_without_time_is_refused() -> None:
    with pytest.raises(InputError, match="some time"):
        compare(BEFORE, Profile("empty", {}))


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.floats(0.1, 5), st.floats(0.1, 5)), min_size=1))
def test_points_of_the_buckets_sum_to_the_whole(rows: dict[str, tuple[float, float]]) -> None:
    first = Profile("x", {name: pair[0] for name, pair in rows.items()}, ideal_s=0.05)
    second = Profile("y", {name: pair[1] for name, pair in rows.items()}, ideal_s=0.05)
    found = compare(first, second)
    assert sum(number(row.points) for row in found.rows) == pytest.approx(number(found.points), abs=1e-9)
    assert found.moved_s - found.aimed_s == pytest.approx(number(found.after) - number(found.before))
    case = Case("trace", "test")
    case.add(*(row.points for row in found.rows if row.points is not None))


def test_scale_names_the_bucket_that_grows() -> None:
    small = Profile("64", {"compute": 9.0, "exposed_comm": 1.0}, 64, 64 * 8192)
    large = Profile("1024", {"compute": 9.1, "exposed_comm": 3.0}, 1024, 1024 * 8192)
    found = scale(small, large)
    assert (found.culprit, found.next_chips) == ("exposed_comm", 256)


def test_scale_compares_equal_tokens_a_chip() -> None:
    small = Profile("64", {"compute": 9.0, "exposed_comm": 1.0}, 64, 64 * 8192)
    strong = Profile("256", {"compute": 2.25, "exposed_comm": 1.0}, 256, 64 * 8192)
    found = scale(small, strong)
    changes = {row.bucket: number(row.change) for row in found.comparison.rows}
    assert changes == {"compute": pytest.approx(0), "exposed_comm": pytest.approx(3.0)}


def test_nothing_grew() -> None:
    small, large = (Profile(str(n), {"compute": 9.0}, n) for n in (64, 1024))
    assert scale(small, large).culprit == ""


@pytest.mark.parametrize(
    ("small", "large", "tested"),
    [(8, 256, 64), (128, 512, 256), (64, 4096, 512), (100, 450, 200), (256, 512, None), (8, 16, None), (8, 9, None)],
)
def test_bisection_stays_on_doublings_of_the_small_scale(small: int, large: int, tested: int | None) -> None:
    assert next_scale(small, large) == tested


@given(st.integers(1, 1000), st.integers(2, 4000))
def test_bisection_ends(small: int, ratio: int) -> None:
    low, high, rounds = small, small * ratio, 0
    while (middle := next_scale(low, high)) is not None:
        assert low < middle < high
        low, rounds = middle, rounds + 1
    assert rounds <= 12


def test_scale_refuses_what_it_cannot_compare() -> None:
    with pytest.raises(InputError, match="number of chips"):
        scale(BEFORE, Profile("large", AFTER.buckets))
    with pytest.raises(InputError, match="more than 256 chips"):
        scale(BEFORE, AFTER)


def test_residue_of_floating_point_is_no_change() -> None:
    first = Profile("a", {"compute": 0.3, "stall": 3.5e-18, "host_gap": 0.1})
    second = Profile("b", {"compute": 0.1 + 0.2, "stall": 0.0, "host_gap": 0.1 + 2e-9})
    found = compare(first, second)
    assert [(row.bucket, round(number(row.change) * 1e9, 3)) for row in found.rows] == [("host_gap", 2), ("compute", 0)]
    assert (number(found.rows[1].change), found.aimed_s) == (0, 0)
