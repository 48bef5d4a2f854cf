"""The interval algebra against sets of integers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.trace import intervals
from ridgeline.trace.intervals import Spans

Pairs = list[tuple[int, int]]
pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(-2, 9)), max_size=12)


def spans(events: Pairs) -> Spans:
    start = np.array([s for s, _ in events], np.int64)
    return intervals.union(start, np.array([d for _, d in events], np.int64))


def points(events: Pairs) -> set[int]:
    return {t for s, d in events for t in range(s, s + max(d, 0))}


def inside(found: Spans) -> set[int]:
    assert (found.start < found.end).all()
    assert (found.start[1:] > found.end[:-1]).all()
    return {t for s, e in zip(found.start.tolist(), found.end.tolist(), strict=True) for t in range(s, e)}


@given(pairs, pairs)
def test_two_sets(a: Pairs, b: Pairs) -> None:
    A, B = spans(a), spans(b)
    assert inside(A) == points(a)
    assert A.total == len(points(a))
    assert inside(intervals.intersect(A, B)) == points(a) & points(b)
    assert inside(intervals.subtract(A, B)) == points(a) - points(b)
    assert inside(intervals.either(A, B)) == points(a) | points(b)


@given(pairs, st.integers(-5, 70), st.integers(-5, 70))
def test_a_window(a: Pairs, low: int, high: int) -> None:
    A, window = spans(a), set(range(low, high))
    assert inside(intervals.clip(A, low, high)) == points(a) & window
    assert inside(intervals.gaps(A, low, high)) == window - points(a)
    counted = intervals.covered(A, np.array([min(low, high)]), np.array([max(low, high)]))
    assert counted.tolist() == [len(points(a) & set(range(min(low, high), max(low, high))))]


def test_extent_and_large_times() -> None:
    assert intervals.EMPTY.extent == (0, 0)
    epoch = 1_700_000_000_000_000_001
    found = intervals.union(np.array([epoch, epoch + 1]), np.array([2, 2]))
    assert found.extent == (epoch, epoch + 3)
    assert found.total == 3
