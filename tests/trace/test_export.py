"""The table for other tools."""

import importlib.util

import polars as pl
import pytest

from ridgeline.core.errors import MissingExtraError
from ridgeline.trace.events import COLUMNS, NONE, Info, events
from ridgeline.trace.export import to_arrow, to_polars

TABLE = events(
    {"ts": [0, 5], "dur": [2, 1], "category": [1, 3], "kind": [0, 2], "name": [0, 1], "corr": [NONE, 9]},
    ["aten::mm", "ncclKernel", "never used"],
    [],
    Info("test", "t"),
)


def test_names_in_place_of_numbers() -> None:
    frame = to_polars(TABLE)
    assert frame.columns == list(COLUMNS)
    assert frame["name"].to_list() == ["aten::mm", "ncclKernel"]
    assert frame["category"].to_list() == ["host_op", "kernel"]
    assert frame["kind"].to_list() == ["none", "comm"]
    assert frame["corr"].to_list() == [None, 9]
    assert frame["ts"].dtype == pl.Int64


def test_an_empty_table() -> None:
    assert to_polars(events({"ts": [], "dur": []}, [], [], Info("test", "t"))).height == 0


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
def test_arrow() -> None:
    assert to_arrow(TABLE).num_rows == 2


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is there")
def test_arrow_names_the_package_that_is_missing() -> None:
    with pytest.raises(MissingExtraError, match="pyarrow"):
        to_arrow(TABLE)
