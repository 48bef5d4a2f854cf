"""Tables of step times and samples: how rows become columns, and what is counted as lost."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.trace.logs import FORMATS
from tests.trace.synthetic import Table

from ridgeline.core.errors import InputError
from ridgeline.trace.events import NONE, Category
from ridgeline.trace.levels.l3 import strip_chart
from ridgeline.trace.logs import SampleRows, StepLog, StepRows, read_log, step_log_of, text_lines
from ridgeline.trace.salvage import Ledger

S = 10**9


def build(rows: StepRows, ledger: Ledger | None = None) -> StepLog:
    return rows.build(ledger or Ledger(), format="test", path="steps.log")


def test_a_clock_gives_times_between_rows() -> None:
    rows = StepRows()
    for step, end in ((10, 100 * S), (20, 130 * S), (30, 150 * S)):
        rows.add(step, end_ns=end)
    ledger = Ledger()
    log = build(rows, ledger)
    assert log.step.tolist() == [20, 30]
    assert log.count.tolist() == [10, 10]
    assert log.seconds.tolist() == [3.0, 2.0]
    assert log.end.tolist() == [0, 20 * S]
    assert [loss.count for loss in ledger.losses()] == [1]


def test_the_rounding_of_a_clock_is_found() -> None:
    rows = StepRows()
    for step in range(1000):
        rows.add(step, end_ns=round(step * 2.05) * S)  # a clock of whole seconds: every 20th step seems longer
    log = build(rows)
    assert log.resolution_ns == S
    assert strip_chart(log).stalls == ()


def test_own_times_are_per_step_and_phases_too() -> None:
    rows = StepRows()
    for step in (100, 200, 300):
        rows.add(step, per_step_ns=0.5 * S)
        rows.phase("data", 0.1 * S)
        rows.value("loss", step / 100)
    log = build(rows)
    assert log.dur.tolist() == [50 * S] * 3
    assert log.phases["data"].tolist() == [10 * S] * 3
    assert log.values["loss"].tolist() == [1, 2, 3]
    assert log.label == "run"


def test_a_restart_keeps_timed_rows_and_drops_the_untimed_one() -> None:
    timed, clocked = StepRows(), StepRows()
    for i, step in enumerate((1, 2, 3, 2, 3)):
        timed.add(step, per_step_ns=S)
        clocked.add(step, end_ns=i * S)
    ledger = Ledger()
    assert len(build(timed)) == 5
    assert any("restarts" in note for note in build(timed).notes)
    assert build(clocked, ledger).step.tolist() == [2, 3, 3]
    assert [(loss.count) for loss in ledger.losses()] == [2]


@pytest.mark.parametrize("time", [0.0, -1.0, 1e40, float("nan"), float("inf")])
def test_times_that_are_none_are_counted(time: float) -> None:
    rows, ledger = StepRows(), Ledger()
    rows.add(1, per_step_ns=S)
    rows.add(2, per_step_ns=time)
    assert len(build(rows, ledger)) == 1
    assert [loss.count for loss in ledger.losses()] == [1]


def test_absurd_steps_do_not_overflow() -> None:
    rows = StepRows()
    rows.add(1, per_step_ns=S)
    rows.add(10**30, per_step_ns=S)
    rows.add(10**15, per_step_ns=S)
    assert (build(rows).seconds == 1).all()


def test_nothing_usable_is_refused() -> None:
    with pytest.raises(InputError, match=r"Expected step times, got '0 rows without one', at steps\.log"):
        build(StepRows())
    with pytest.raises(InputError, match="Expected samples of a device"):
        SampleRows().build(Ledger(), "test", "dmon.log")


def test_marks_default_to_the_last_row() -> None:
    rows = StepRows()
    rows.mark("checkpoint")
    rows.add(7, per_step_ns=S)
    rows.mark("checkpoint")
    rows.mark("evaluation", 9)
    assert {name: steps.tolist() for name, steps in build(rows).marks.items()} == {"checkpoint": [7], "evaluation": [9]}


def test_samples_keep_unknown_cells_as_nan() -> None:
    rows = SampleRows()
    rows.add(0, {"power_w": 600.0}, 5 * S)
    rows.add(1, {"temp_c": 70.0}, 6 * S)
    found = rows.build(Ledger(), "test", "dmon.log")
    assert found.t.tolist() == [0, S]
    assert np.isnan(found.values["power_w"][1])
    assert found.of("power_w", np.array([True, True])).tolist() == [600.0]
    assert found.of("absent", np.array([True, True])).tolist() == []


def test_steps_of_a_trace_run_from_start_to_start() -> None:
    table = Table(rank=3, world=4)
    for i in range(4):
        table.step(i, i * 1000, 900)
    log = step_log_of(table.build())
    assert log is not None
    assert log.dur.tolist() == [1000, 1000, 1000, 900]
    assert log.label == "rank3"


def test_a_trace_of_two_steps_is_no_log() -> None:
    table = Table()
    table.add("ProfilerStep#0", 0, 5, Category.STEP)
    table.add("ProfilerStep#1", 5, 5, Category.STEP)
    assert step_log_of(table.build()) is None


def test_compressed_and_damaged_bytes(tmp_path: Path) -> None:
    file = tmp_path / "log.gz"
    file.write_bytes(gzip.compress(FORMATS["MaxText"].encode()))
    (log,) = read_log(file)
    assert len(log) == 20
    file.write_bytes(file.read_bytes()[:-12])
    (log,) = read_log(file)
    assert any("gzip" in loss.what for loss in log.lost)


def test_lines_without_an_end_and_not_utf8(tmp_path: Path) -> None:
    file, ledger = tmp_path / "log", Ledger()
    file.write_bytes(b"one\r\ntwo\xff\n" + b"x" * 10)
    assert list(text_lines(file, ledger)) == ["one", "two\ufffd", "x" * 10]
    assert [loss.what for loss in ledger.losses()] == ["line with bytes that are not UTF-8"]


def test_a_log_without_times_of_writing_has_no_ends() -> None:
    rows = StepRows()
    rows.add(1, per_step_ns=S)
    assert build(rows).end.tolist() == [NONE]
