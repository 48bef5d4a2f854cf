"""Operators and the device work they launch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.calls import Step
from tests.trace.synthetic import Table

from ridgeline.trace.events import NONE, Category, events
from ridgeline.trace.events import Info as TraceInfo
from ridgeline.trace.levels.linking import ancestor_among, link, parents


def slow_parent(ranges: list[tuple[int, int]], child: int) -> int:
    """The shortest range that holds another, by trying all of them."""
    low, high = ranges[child]
    around = [i for i, (a, b) in enumerate(ranges) if i != child and a <= low and high <= b and (a, b) != (low, high)]
    return min(around, key=lambda i: ranges[i][1] - ranges[i][0], default=NONE)


@st.composite
def nests(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Ranges that nest: each is cut out of the inside of an earlier one, or stands free behind all."""
    ranges = [(0, 1000)]
    free = {0: 1}  # range -> first instant inside it that is not taken
    for _ in range(draw(st.integers(0, 12))):
        parent = draw(st.integers(0, len(ranges) - 1))
        room = ranges[parent][1] - 1 - free[parent]
        if room < 2:
            continue
        length = draw(st.integers(1, room - 1))
        start = free[parent]
        ranges.append((start, start + length))
        free[parent] = start + length + 1
        free[len(ranges) - 1] = start + 1
    return ranges


@given(nests())
def test_parents_are_the_shortest_ranges_around(ranges: list[tuple[int, int]]) -> None:
    columns = {
        "ts": [a for a, _ in ranges], "dur": [b - a for a, b in ranges], "thread": [1] * len(ranges),
        "category": [int(Category.HOST_OP)] * len(ranges), "ext": list(range(len(ranges))),
    }  # fmt: skip
    table = events({**columns, "name": [0] * len(ranges)}, ["op"], [], TraceInfo("synthetic", ""))
    found = parents(table, np.ones(len(table), np.bool_))
    for row, parent in enumerate(found):
        mine = int(table.ext[row])
        assert (NONE if parent == NONE else int(table.ext[parent])) == slow_parent(ranges, mine)


def test_threads_do_not_mix() -> None:
    table = Table()
    table.host("a", 0, 100, thread=1)
    table.host("b", 10, 5, thread=2)
    table.host("c", 20, 5, thread=1)
    made = table.build()
    found = parents(made, np.ones(3, np.bool_))
    assert [NONE if p == NONE else made.name_of(p) for p in found] == [NONE, NONE, "a"]


def test_a_kernel_belongs_to_the_innermost_operator() -> None:
    step = Step()
    step.open("aten::linear", 50)
    step.call("aten::addmm", {"gemm": 100, "splitKreduce": 20})
    step.host = 100
    step.call("aten::relu", {"relu": 30})
    made = step.build()
    links = link(made)
    owners = {made.name_of(int(r)): made.name_of(int(links.op[r])) for r in np.flatnonzero(made.on_device)}
    assert owners == {"gemm": "aten::addmm", "splitKreduce": "aten::addmm", "relu": "aten::relu"}


def test_without_a_launch_call_the_external_id_links() -> None:
    table = Table()
    table.add("aten::mm", 0, 10, Category.HOST_OP, thread=1, ext=7)
    table.add("gemm", 50, 10, Category.KERNEL, stream=7, device=0, ext=7)
    table.add("other", 70, 10, Category.KERNEL, stream=7, device=0, ext=8)
    made = table.build()
    links = link(made)
    assert [NONE if o == NONE else made.name_of(o) for o in links.op] == [NONE, "aten::mm", NONE]


def test_runtime_calls_inside_runtime_calls_are_passed_over() -> None:
    table = Table()
    table.host("aten::mm", 0, 100)
    table.host("hipModuleLaunch", 10, 50, Category.RUNTIME)
    table.add("hipLaunchKernel", 20, 10, Category.RUNTIME, thread=1, corr=5)
    table.add("gemm", 200, 10, Category.KERNEL, stream=7, device=0, corr=5)
    made = table.build()
    links = link(made)
    assert made.name_of(links.op[-1]) == "aten::mm"


@pytest.mark.parametrize("depth", [1, 2, 3, 1000, 4097])
def test_ancestors_at_any_depth(depth: int) -> None:
    parent = np.arange(depth) - 1
    wanted = np.zeros(depth, np.bool_)
    wanted[0] = True
    assert (ancestor_among(parent, wanted) == 0).all()
    assert (ancestor_among(parent, np.zeros(depth, np.bool_)) == NONE).all()


def test_an_empty_table_links_nothing() -> None:
    made = Table().build()
    assert len(link(made).op) == 0
