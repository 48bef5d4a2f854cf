"""Each second belongs to one cause, and the order of fixes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.trace.attribution import WIDEST, Attribution, Cause, attribute, fix_order
from ridgeline.trace.intervals import Spans

BUCKETS = {"compute": 9.0, "exposed_comm": 3.6, "host_gap": 1.5}


def spans(*pairs: tuple[int, int]) -> Spans:
    """Intervals from (start, end) pairs."""
    return Spans(np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.int64))


def own(found: Attribution) -> dict[str, float]:
    return {item.cause.name: round(item.own_s, 9) for item in found.causes}


def test_separate_causes_keep_their_seconds() -> None:
    found = attribute([Cause("a", {"compute": 2.0}), Cause("b", {"exposed_comm": 1.0})], BUCKETS)
    assert own(found) == {"a": 2.0, "b": 1.0}
    assert found.left == {"compute": 7.0, "exposed_comm": 2.6, "host_gap": 1.5}
    assert [item.shared_s for item in found.causes] == [0, 0]


def test_no_bucket_gives_more_than_it_has() -> None:
    found = attribute([Cause("small", {"exposed_comm": 1.0}), Cause("large", {"exposed_comm": 3.0})], BUCKETS)
    assert own(found) == {"small": 0.6, "large": 3.0}
    assert found.causes[0].shared_s == pytest.approx(0.4)
    assert found.left["exposed_comm"] == 0


def test_a_broad_cause_gets_what_narrow_ones_leave() -> None:
    generic = Cause("exposed communication", {"exposed_comm": 3.6}, breadth=2)
    found = attribute([generic, Cause("late gather", {"exposed_comm": 0.85})], BUCKETS)
    assert own(found) == {"exposed communication": 2.75, "late gather": 0.85}


def test_causes_that_overlap_in_time_are_attributed_once() -> None:
    first = Cause("late rank", {"exposed_comm": 2.0}, spans={"exposed_comm": spans((0, 100), (200, 300))})
    second = Cause("slow link", {"exposed_comm": 1.0}, spans={"exposed_comm": spans((50, 100), (300, 350))})
    found = attribute([second, first], BUCKETS)
    assert own(found) == {"slow link": 0.5, "late rank": 2.0}
    assert found.causes[0].shared_s == pytest.approx(0.5)


def test_overlap_in_one_bucket_says_nothing_about_another() -> None:
    same = spans((0, 100))
    pair = [
        Cause("a", {"exposed_comm": 1.0, "compute": 1.0}, spans={"exposed_comm": same}),
        Cause("b", {"exposed_comm": 0.5, "compute": 0.5}, spans={"exposed_comm": same}),
    ]
    assert own(attribute(pair, BUCKETS)) == {"a": 2.0, "b": 0.5}


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        ([Cause("a", {"exposed": 1.0})], "did you mean exposed_comm"),
        ([Cause("a", {"compute": -1.0})], "zero or more"),
        ([Cause("a", {"compute": float("nan")})], "zero or more"),
        ([Cause("a", {"compute": 1.0}), Cause("a", {"host_gap": 1.0})], "different names"),
    ],
)
def test_refusals(causes: list[Cause], said: str) -> None:
    with pytest.raises(InputError, match=said):
        attribute(causes, BUCKETS)


@given(st.lists(st.tuples(st.sampled_from(list(BUCKETS)), st.floats(0, 5), st.booleans()), max_size=8))
def test_seconds_are_conserved(rows: list[tuple[str, float, bool]]) -> None:
    causes = [Cause(f"c{i}", {bucket: s}, breadth=int(generic)) for i, (bucket, s, generic) in enumerate(rows)]
    found = attribute(causes, BUCKETS)
    for bucket, total in BUCKETS.items():
        given_away = sum(item.seconds.get(bucket, 0.0) for item in found.causes)
        assert given_away + found.left[bucket] == pytest.approx(total)
        assert found.left[bucket] >= 0
    for item in found.causes:
        assert item.own_s + item.shared_s == pytest.approx(item.cause.total_s)
        assert item.own_s >= 0


def order(*causes: Cause) -> list[str]:
    return [item.cause.name for item in fix_order(attribute(causes, BUCKETS).causes)]


def test_cheapest_confirmation_first() -> None:
    slow = Cause("slow", {"compute": 3.0}, confirm_s=7200)
    fast = Cause("fast", {"host_gap": 0.1}, confirm_s=600)
    assert order(slow, fast) == ["fast", "slow"]


def test_equal_confirmation_larger_gain_first() -> None:
    assert order(Cause("small", {"compute": 0.5}), Cause("large", {"exposed_comm": 2.0})) == ["large", "small"]


def test_what_another_fix_may_change_waits_for_it() -> None:
    upstream = Cause("upstream", {"compute": 3.0}, confirm_s=1000, risks=("downstream",))
    downstream = Cause("downstream", {"exposed_comm": 1.0}, confirm_s=600)
    plain = Cause("plain", {"host_gap": 1.0}, confirm_s=1100)
    assert order(upstream, downstream, plain) == ["upstream", "downstream", "plain"]
    assert order(downstream, plain) == ["downstream", "plain"]


def test_a_cheap_confirmation_is_worth_doing_twice() -> None:
    upstream = Cause("upstream", {"compute": 3.0}, confirm_s=7200, risks=("cheap",))
    assert order(upstream, Cause("cheap", {"exposed_comm": 1.0}, confirm_s=60)) == ["cheap", "upstream"]


def test_causes_that_change_each_other_still_have_an_order() -> None:
    one = Cause("one", {"compute": 1.0}, risks=("two",))
    two = Cause("two", {"host_gap": 0.5}, risks=("one",))
    assert order(one, two) == ["one", "two"]


def test_the_rest_of_a_bucket_comes_last() -> None:
    rest = Cause("rest", {"exposed_comm": 3.0}, confirm_s=1, breadth=WIDEST)
    assert order(rest, Cause("slow", {"compute": 0.1}, confirm_s=10**5)) == ["slow", "rest"]
