"""What `analyse` brings together, and what it says of levels that cannot run."""

from pathlib import Path

import pytest
from tests.trace.kineto_job import write_job

from ridgeline.core.errors import InputError
from ridgeline.trace.analyse import How, analyse
from ridgeline.trace.case import trace_case
from ridgeline.trace.perfetto import write


def test_every_level_of_a_job(tmp_path: Path) -> None:
    told: list[str] = []
    facts = analyse(write_job(tmp_path / "job"), tell=lambda what, seconds: told.append(what))
    assert [rank.label for rank in facts.l0] == ["rank0", "rank1"]
    assert facts.l1 is not None
    assert facts.l2 is not None
    assert facts.l4 is not None
    assert facts.audit is not None
    assert facts.l3 is None  # twelve steps show no period
    assert told[:3] == ["logs", "compiler dumps", "traces"]


def test_the_window_reaches_the_buckets(tmp_path: Path) -> None:
    facts = analyse(write_job(tmp_path / "job"), how=How(window="linked"))
    assert {rank.window for rank in facts.l0} == {"linked"}
    with pytest.raises(InputError, match="one of all, linked"):
        analyse(tmp_path / "job", how=How(window="sideways"))  # type: ignore[arg-type]


def test_logs_and_dumps_beside_the_traces(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job")
    rows = "\n".join(f"{step},{0.010 if step % 10 else 0.050}" for step in range(1, 201))
    (folder / "steps.csv").write_text(f"step,step_time_s\n{rows}\n")
    (folder / "step.txt").write_text(
        "HloModule jit_step\n\nENTRY %main (a: f32[2]) -> f32[2] {\n"
        "  %a = f32[2]{0} parameter(0)\n  ROOT %r = f32[2]{0} add(%a, %a)\n}\n"
    )
    facts = analyse(folder)
    assert facts.l3 is not None
    assert [round(stall.period) for stall in facts.l3.stalls] == [10]
    assert facts.l2 is not None
    assert [module.name for module in facts.l2.hlo] == ["jit_step"]


def test_a_log_alone(tmp_path: Path) -> None:
    rows = "\n".join(f"{step},0.010" for step in range(1, 101))
    (tmp_path / "steps.csv").write_text(f"step,step_time_s\n{rows}\n")
    for place in (tmp_path, tmp_path / "steps.csv"):
        facts = analyse(place)
        assert facts.run is None
        assert facts.l3 is not None


def test_a_report_in_the_folder_is_no_trace(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job")
    facts = analyse(folder)
    (folder / "trace-report").mkdir()
    write(facts, trace_case(facts), folder / "trace-report" / "trace.perfetto.json")
    again = analyse(folder)
    assert [rank.label for rank in again.l0] == ["rank0", "rank1"]
    asked = analyse(folder / "trace-report" / "trace.perfetto.json")
    assert len(asked.l0) == 1


def test_a_folder_with_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# nothing\n")
    with pytest.raises(InputError, match="at least one trace file"):
        analyse(tmp_path)


@pytest.mark.parametrize("broken", ["steps.csv", "dump.txt"])
def test_what_cannot_be_read_is_said(tmp_path: Path, broken: str) -> None:
    folder = write_job(tmp_path / "job")
    text = "step,step_time_s\n1,0\n2,0\n" if broken == "steps.csv" else "HloModule nothing\n"
    (folder / broken).write_text(text)
    facts = analyse(folder)
    assert facts.run is not None
    said = [item for item in facts.run.ranks[0].info.lost if broken in item.where]
    assert len(said) == 1
    assert "not read" in said[0].what


@pytest.mark.data
def test_the_late_rank_of_a_real_job(data_dir: Path) -> None:
    facts = analyse(data_dir / "trace" / "gpt_8xh100")
    assert facts.l4 is not None
    assert [rank.label for rank in facts.l4.judged("straggler")] == ["rank1"]
