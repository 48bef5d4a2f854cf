"""A drill as files that the readers of the room read without loss."""

import gzip
import json
from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.context import read_context
from ridgeline.trace.drills.generate import Drill, drill
from ridgeline.trace.drills.job import job_of, small
from ridgeline.trace.drills.render import TRUTH, write
from ridgeline.trace.events import Category, Kind
from ridgeline.trace.logs import DeviceSamples, StepLog, read_log
from ridgeline.trace.read import read_run


@pytest.fixture(scope="module")
def made() -> Drill:
    """Two ranks, one of them hot, and a stall in the log."""
    return drill(4, ["heat", "collector"], job=small(job_of(4)))


@pytest.fixture(scope="module")
def folder(made: Drill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder."""
    return write(made, tmp_path_factory.mktemp("drill") / "new")


def test_traces_are_read_without_loss(made: Drill, folder: Path) -> None:
    run = read_run(folder / "traces")
    assert run.labels() == ["rank0", "rank1"]
    for events, tape in zip(run, made.tapes, strict=True):
        assert events.info.lost == ()
        assert len(events) == len(tape.events) < 3000
        assert int((events.category == Category.STEP).sum()) == made.schedule.job.steps
        assert Kind.UNCLASSIFIED not in events.kind
    assert run.spread_ns is not None
    assert run.spread_ns < 100
    assert run.ranks[0].info.base_ns != run.ranks[1].info.base_ns  # the clocks differ


def test_logs_are_read(made: Drill, folder: Path) -> None:
    (log,) = read_log(folder / "steps.csv")
    assert isinstance(log, StepLog)
    assert log.seconds.mean() == pytest.approx(made.mean_s, rel=0.002)
    assert set(log.phases) == {"data", "gc", "checkpoint", "eval"}
    (samples,) = read_log(folder / "dmon.log")
    assert isinstance(samples, DeviceSamples)
    assert set(samples.gpu) == {0, 1}


def test_the_run_file_is_read(made: Drill, folder: Path) -> None:
    context = read_context(folder)
    assert context.spec is not None
    assert context.step is not None
    assert float(context.step.base) == pytest.approx(made.mean_s, rel=1e-5)


def test_the_truth_is_apart_and_packed(made: Drill, folder: Path) -> None:
    truth = json.loads(gzip.decompress((folder / TRUTH).read_bytes()))
    assert [cause["name"] for cause in truth["causes"]] == [cause.name for cause in made.planted]
    open_files = [path for path in folder.iterdir() if path.is_file()]
    assert all(b"collector" not in path.read_bytes() and b"heat" not in path.read_bytes() for path in open_files)


def test_the_same_bytes_again(made: Drill, folder: Path, tmp_path: Path) -> None:
    again = write(made, tmp_path / "again")
    for path in folder.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(folder)).read_bytes()


def test_a_folder_in_use_is_left_alone(made: Drill, folder: Path) -> None:
    with pytest.raises(InputError, match="new or empty folder"):
        write(made, folder)
