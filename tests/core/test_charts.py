"""Specs that only name columns: every helper gives a chart that draws, with its words on it."""

import re

import pytest
import vl_convert

from ridgeline.core import charts
from ridgeline.core.case import Column, Table
from ridgeline.core.charts import Look
from ridgeline.core.quantity import leaf

COLUMNS = (Column("n", "Parameters", "param"), Column("loss", "Loss", "nat"), Column("low", "Low", "nat"),
           Column("law", "Law"))  # fmt: skip
TABLE = Table("Laws", COLUMNS, tuple(
    (10.0**power, 3 - 0.1 * power + shift, 2.9 - 0.1 * power + shift, law)
    for law, shift in (("A", 0.0), ("B", 0.001)) for power in (8, 9, 10, 11)
))  # fmt: skip
PARTS = Table(
    "Parts",
    (Column("job", "Job"), Column("part", "Part"), Column("time.s", "Time", "s")),
    (("x", "idle", 1.0), ("x", "compute", 6.0), ("y", "idle", 2.0), ("y", "compute", 5.0)),
)


def words(spec: charts.Spec, table: Table) -> list[str]:
    """The texts of the drawn chart."""
    names = [column.name for column in table.columns]
    data = {"values": [dict(zip(names, row, strict=True)) for row in table.rows]}
    svg = vl_convert.vegalite_to_svg({**spec, "data": data, "width": 500}, allowed_base_urls=[])
    return re.findall(r">([^<>]+)</text>", svg)


def test_log_axes_are_labelled_in_decades() -> None:
    texts = words(charts.line(TABLE, "n", "loss", "law", look=Look(log_x=True)), TABLE)
    assert {"100M", "1B", "10B", "100B", "Parameters (params)", "Loss (nat)"} <= set(texts)
    assert not {"200M", "500M", "2B"} & set(texts)


def test_lines_carry_their_names_apart_from_each_other() -> None:
    spec = charts.line(TABLE, "n", "loss", "law", look=Look(log_x=True))
    assert {"A", "B"} <= set(words(spec, TABLE))
    ends = {layer["mark"]["text"]: layer["mark"]["dy"] for layer in spec["layer"] if "text" in layer["mark"]}
    assert ends["A"] - ends["B"] >= 14  # the two lines end within a pixel of each other


def test_a_short_log_axis_gets_steps_between_decades() -> None:
    table = Table("Short", COLUMNS[:2], ((2.0e9, 2.0), (8.0e9, 1.9)))
    assert {"2B", "5B"} <= set(words(charts.line(table, "n", "loss", look=Look(log_x=True)), table))


def test_marks_are_said_in_words() -> None:
    look = Look(mark_x=((5e9, "chosen"),), mark_y=((2.1, "target"),))
    assert {"chosen", "target"} <= set(words(charts.line(TABLE, "n", "loss", "law", ("low", "loss"), look), TABLE))


def test_points_have_their_labels() -> None:
    texts = words(charts.points(TABLE, "n", "loss", label="law"), TABLE)
    assert texts.count("A") == 4


def test_stacked_activities_keep_their_fixed_order() -> None:
    spec = charts.bars(PARTS, "job", "time.s", "part")
    assert spec["encoding"]["color"]["scale"]["domain"] == ["compute", "idle"]
    assert {"x", "y", "Time (seconds)"} <= set(words(spec, PARTS))


def test_bars_have_their_values() -> None:
    table = Table("Cost", (Column("what", "What"), Column("cost", "Cost", "USD")), (("a", 1.8e6), ("b", 4.1e9)))
    assert {"1.8M", "4.1B"} <= set(words(charts.bars(table, "what", "cost"), table))


def test_quantities_count_in_the_columns_unit() -> None:
    columns = (Column("time", "Time", "s"), Column("loss", "Loss", "nat"))
    table = Table("T", columns, tuple((leaf(f"t{n}", n, "h"), 2.0) for n in (1, 1000)))
    spec = charts.line(table, "time", "loss", look=Look(log_x=True))
    values = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert values == pytest.approx([1e4, 1e5, 1e6])


BARS = Table(
    "Bars",
    (Column("what", "Cause"), Column("low", "MFU", "%"), Column("high", "to", "%"), Column("kind", "Kind"),
     Column("text", "Change")),
    (("observed", 0.0, 25.0, "level", "25.0%"), ("1. late gather", 25.0, 33.0, "cause", "+8.0")),
)  # fmt: skip
LANES = Table(
    "Lanes",
    (Column("rank", "Rank"), Column("start", "Start", "ms"), Column("end", "End", "ms"), Column("part", "Part")),
    (("rank1", 0.0, 5.0, "compute"), ("rank1", 5.0, 6.0, "idle"), ("rank0", 0.0, 6.0, "compute")),
)


def test_a_waterfall_carries_its_words() -> None:
    texts = words(charts.waterfall(BARS, "what", "low", "high", "kind", "text"), BARS)
    assert {"observed", "1. late gather", "25.0%", "+8.0", "MFU (%)"} <= set(texts)
    assert "level" not in texts  # the labels say it already


def test_lanes_keep_the_order_of_the_table() -> None:
    texts = words(charts.spans(LANES, "rank", "start", "end", "part"), LANES)
    assert texts.index("rank1") < texts.index("rank0")
    assert {"compute", "idle", "Start (ms)"} <= set(texts)


@pytest.mark.parametrize(("around", "wanted"), [(False, ["0.10", "-7.65"]), (True, ["+0.10", "−7.65", "less", "more"])])
def test_cells_write_their_figures(around: bool, wanted: list[str]) -> None:
    columns = (Column("rank", "Rank"), Column("part", "Part"), Column("away", "Away", "ms"))
    table = Table("Cells", columns, (("rank0", "host", 0.1), ("rank1", "host", -7.65)))
    found = words(charts.cells(table, "rank", "part", "away", around=around), table)
    texts = {text.replace("-", "−") for text in found}
    assert {text.replace("-", "−") for text in wanted} <= texts


def test_many_cells_leave_their_figures_to_the_table() -> None:
    columns = (Column("rank", "Rank"), Column("part", "Part"), Column("away", "Away", "ms"))
    table = Table("Cells", columns, tuple((f"rank{i}", f"part{j}", 1.5) for i in range(41) for j in range(4)))
    assert "1.50" not in words(charts.cells(table, "rank", "part", "away"), table)


RUNS = Table(
    "Runs",
    (Column("c", "Compute", "FLOP"), Column("loss", "Loss", "nat"), Column("budget", "Budget"), Column("role", "Row")),
    (
        (1e18, 3.0, "1e18", "run"), (1e19, 2.7, "1e18", "run"),
        (1e18, 3.01, "1e18", "fit"), (1e19, 2.69, "1e18", "fit"),
        (5e18, 2.8, "1e18", "vertex"), (1e20, 2.5, "2e18", "held"), (1e21, 2.2, "2e18", "forecast"),
        (1e20, 2.4, "2e18", "fit"),
    ),
)  # fmt: skip


def test_curves_draw_every_role_in_its_own_mark() -> None:
    spec = charts.curves(RUNS, "c", "loss", "budget", "role", look=Look(log_x=True))
    drawn = {layer["transform"][0]["filter"].split('"')[-2]: layer for layer in spec["layer"] if "transform" in layer}
    assert set(drawn) == set(charts.ROLES)
    assert drawn["vertex"]["mark"]["shape"] == "diamond"
    assert drawn["held"]["mark"]["filled"] is False
    assert {"1e18", "2e18"} <= set(words(spec, RUNS))  # the lines carry their names, at the end of the fit


def test_the_band_of_curves_spans_the_two_columns() -> None:
    spec = charts.curves(RUNS, "c", "loss", "budget", "role", band=("loss", "c"))
    (area,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "area"]
    assert (area["encoding"]["y"]["field"], area["encoding"]["y2"]["field"]) == ("loss", "c")


def test_a_strip_has_one_lane_per_group_and_its_mark() -> None:
    texts = words(charts.strip(RUNS, "budget", "loss", (2.5, "typical")), RUNS)
    assert {"1e18", "2e18", "typical", "Loss (nat)"} <= set(texts)
