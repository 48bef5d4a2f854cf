"""The one table."""

import numpy as np
import pytest

from ridgeline.trace.events import COLUMNS, NONE, Category, Events, Info, Run, events

INFO = Info("test", "t.json")


def small() -> Events:
    columns = {"ts": [30, 10, 10], "dur": [1, 2, 9], "category": [3, 1, 9], "name": [2, 1, 0], "corr": [7, 7, NONE]}
    return events(columns, ["ProfilerStep#1", "launch", "gemm"], [], INFO)


def test_rows_are_sorted_and_a_parent_comes_before_its_children() -> None:
    table = small()
    assert table.ts.tolist() == [10, 10, 30]
    assert [table.name_of(i) for i in range(3)] == ["ProfilerStep#1", "launch", "gemm"]
    assert table.end.tolist() == [19, 12, 31]


def test_missing_columns_are_not_known() -> None:
    table = small()
    for column in COLUMNS:
        values = getattr(table, column)
        assert values.dtype == np.int64
        assert len(values) == len(table) == 3
    assert table.bytes.tolist() == [NONE] * 3
    assert table.kind.tolist() == [0, 0, 0]


def test_rows_of_a_mask() -> None:
    table = small()
    work = table.where(table.on_device)
    assert work.category.tolist() == [Category.KERNEL]
    assert work.name_of(0) == "gemm"
    assert table.names_matching({"gemm", "absent"}).tolist() == [2]
    assert table.with_columns(step=np.zeros(3, np.int64)).step.tolist() == [0, 0, 0]


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows: int) -> None:
    table = events({"ts": [5] * rows, "dur": [1] * rows}, [], [], INFO)
    assert len(table) == rows
    assert not table.on_device.any()


def test_labels_of_a_run() -> None:
    first = events({"ts": [], "dur": []}, [], [], Info("test", "a", rank=4))
    run = Run((first, events({"ts": [], "dur": []}, [], [], INFO)))
    assert run.labels() == ["rank4", "rank1"]
    assert len(run) == 2
    assert [e.info.path for e in run] == ["a", "t.json"]
