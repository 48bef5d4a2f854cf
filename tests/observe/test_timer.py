"""The step timer: what it writes, what it costs in correctness when things go wrong, and that it loads nothing."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ridgeline.observe import StepTimer, timed
from ridgeline.observe.timer import rank_from_environment
from ridgeline.trace.log_readers.ridgeline_jsonl import READER
from ridgeline.trace.logs import StepLog


class Clock:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_steps_phases_and_mfu(tmp_path: Path) -> None:
    clock = Clock()
    timer = StepTimer(tmp_path / "s.jsonl", flops_per_step=6e15, peak_flops=1e15, clock=clock)
    for _ in range(2):
        with timer.phase("input"):
            clock.now += 2_000_000_000
        with timer.phase("compute"):
            clock.now += 10_000_000_000
        assert timer.step(loss=2.5) == 12.0
    timer.close()
    first, second = lines(tmp_path / "s.jsonl")
    assert first["phases"] == second["phases"] == {"input": 2.0, "compute": 10.0}
    assert (first["step"], second["step"], second["loss"], second["mfu"]) == (0, 1, 2.5, 0.5)


def test_a_phase_entered_twice_adds_up_and_an_exception_still_counts(tmp_path: Path) -> None:
    clock = Clock()
    timer = StepTimer(tmp_path / "s.jsonl", clock=clock)
    phase = timer.phase("io")
    with phase:
        clock.now += 5

    def fails() -> None:
        with phase:
            clock.now += 7
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert phase.total_ns == 12
    assert timer.phase("io") is phase


def test_what_is_no_number_is_left_out_and_no_line_has_nan(tmp_path: Path) -> None:
    timer = StepTimer(tmp_path / "s.jsonl")
    timer.step(loss=math.nan, grad=math.inf, note="text", tokens=8, broken=object(), step=99)
    timer.close()
    (row,) = lines(tmp_path / "s.jsonl")
    assert row["tokens"] == 8
    assert row["step"] == 0
    assert {"loss", "grad", "broken"}.isdisjoint(row)


class Lazy:
    """A loss on an accelerator: asking for it waits."""

    asked = 0

    def __float__(self) -> float:
        type(self).asked += 1
        return 1.5


def test_a_loss_is_not_waited_for_before_the_lines_are_written(tmp_path: Path) -> None:
    with StepTimer(tmp_path / "s.jsonl", flush_every=3) as timer:
        timer.step(loss=Lazy())
        timer.step(loss=Lazy())
        assert Lazy.asked == 0
        timer.step(loss=Lazy())
        assert Lazy.asked == 3
    assert [row["loss"] for row in lines(tmp_path / "s.jsonl")] == [1.5, 1.5, 1.5]


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    timer = StepTimer(tmp_path / "file" / "s.jsonl", flush_every=1)
    timer.step(loss=1.0)
    timer.step(loss=1.0)
    assert timer.lost == 2


def test_without_a_path_it_only_times(tmp_path: Path) -> None:
    with StepTimer(None, flush_every=1) as timer:
        assert timer.step() >= 0
    assert timer.lost == 0


def test_flops_and_peak_belong_together(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="together"):
        StepTimer(tmp_path / "s.jsonl", flops_per_step=1.0)
    with pytest.raises(ValueError, match="above zero"):
        StepTimer(tmp_path / "s.jsonl", flops_per_step=1.0, peak_flops=0.0)


def test_waiting_for_the_input_is_a_phase() -> None:
    clock = Clock()
    timer = StepTimer(None, clock=clock)

    def loader() -> Iterator[int]:
        for item in range(3):
            clock.now += 4
            yield item

    assert list(timed(loader(), timer.phase("input"))) == [0, 1, 2]
    assert timer.phase("input").total_ns == 12


def test_the_trace_room_reads_what_it_writes(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "s.jsonl"
    with StepTimer(path, rank=3, clock=clock) as timer:
        for step in range(4):
            with timer.phase("input"):
                clock.now += 1_000_000
            clock.now += 9_000_000
            timer.step(loss=float(step))
            if step == 1:
                timer.event("checkpoint")
    assert READER.sniff(path.read_bytes(), path)
    (log,) = READER.read(path)
    assert isinstance(log, StepLog)
    assert (log.rank, len(log.step)) == (3, 4)


@pytest.mark.parametrize(("name", "value", "rank"), [("RANK", "5", 5), ("SLURM_PROCID", "0", 0), ("RANK", "x", None)])
def test_rank_from_the_launcher(monkeypatch: pytest.MonkeyPatch, name: str, value: str, rank: int | None) -> None:
    for known in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(known, raising=False)
    monkeypatch.setenv(name, value)
    assert rank_from_environment() == rank


def test_it_loads_nothing_heavy() -> None:
    code = "import sys, ridgeline.observe; print(sorted({'numpy', 'pydantic', 'pint'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
