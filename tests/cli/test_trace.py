"""``ridgeline trace`` and ``ridgeline trace bridge``: card, files, refusals."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.trace.kineto_job import HOSTILE, write_job

from ridgeline.core.case import load


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder of its own, where no ``ridgeline.toml`` has a say."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ridgeline.toml").write_text("")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Two ranks, the second late."""
    return write_job(tmp_path / "job")


def test_card_and_report(ridgeline: Any, job: Path) -> None:
    done = ridgeline("trace", job)
    assert done.code == 1
    assert done.err == ""
    lines = done.out.rstrip().splitlines()
    assert max(map(len, lines[:-3])) <= 80
    assert "FAIL    T152" in done.out
    assert "The mean step of each rank" in done.out
    assert "report  trace-report/trace.html" in lines
    assert {file.name for file in Path("trace-report").iterdir()} == {"trace.html", "trace.json"}
    assert load("trace-report/trace.json")["tool"] == "trace"
    assert {file.name for file in job.iterdir()} == {"rank0.json", "rank1.json"}
    why = lines[-1].removeprefix("why     ")
    assert ridgeline(*shlex.split(why)[1:]).code == 0


def test_json_alone_on_stdout(ridgeline: Any, job: Path) -> None:
    done = ridgeline("trace", job, "--json", "-o", "out")
    assert done.json["quantities"]["rank0.span"]["unit"] == "s"
    assert done.json == json.loads(Path("out/trace.json").read_text())
    assert done.json["command"] == shlex.join(["ridgeline", "trace", str(job)])
    assert [item["path"] for item in done.json["inputs"]] == [str(job / "rank0.json"), str(job / "rank1.json")]


def test_the_command_makes_the_same_case(ridgeline: Any, job: Path, repo: Path) -> None:
    run = repo / "examples" / "incident" / "run.toml"
    first = ridgeline("trace", job, "--window", "linked", "--run", run, "--json")
    assert ridgeline(*shlex.split(first.json["command"])[1:], "--json").out == first.out


def test_perfetto_and_bug(ridgeline: Any, job: Path) -> None:
    done = ridgeline("trace", job, "--perfetto", "--bug", "T152", "-o", "out")
    assert "out/trace.perfetto.json" in done.err
    assert json.loads(Path("out/trace.perfetto.json").read_text())["traceEvents"]
    assert (Path("out") / "bug-t152" / "finding.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "a trace file or a folder of them, got 'nowhere'"),
        (("job", "--window", "sideways"), "one of all, linked, before_last_step, got 'sideways'"),
        (("job", "-o", "job"), "a folder of its own for the report"),
        (("job", "--bug", "T999"), "a finding of this run, got 'T999'"),
        (("empty",), "at least one trace file"),
        (("job", "--run", "nowhere.toml"), "nowhere.toml"),
    ],
)
def test_refusals(ridgeline: Any, job: Path, arguments: tuple[str, ...], said: str) -> None:
    Path("empty").mkdir()
    done = ridgeline("trace", *arguments)
    assert done.code == 2
    assert done.err.startswith("error: Expected ")
    assert said in done.err
    assert "Traceback" not in done.err


def test_hostile_names_move_no_cursor(ridgeline: Any, tmp_path: Path) -> None:
    done = ridgeline("trace", write_job(tmp_path / "job", kernel=HOSTILE))
    assert done.code == 1
    assert not {"\x1b", "\x9b", "\u202e"} & set(done.out + done.err)
    assert "<img src=x" not in Path("trace-report/trace.html").read_text()


def test_kernels_of_the_user(ridgeline: Any, tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", kernel="team_special")
    before = ridgeline("trace", job, "--json").json["quantities"]["rank0.compute"]["value"]
    Path("ridgeline.toml").write_text('[trace.kernels]\n"team_special" = "comm"\n')
    after = ridgeline("trace", job, "--json").json["quantities"]
    assert before > 0
    assert (after["rank0.compute"]["value"], after["rank0.comm"]["value"]) == (0, pytest.approx(12 * 9.9e-3))


def test_the_incident(ridgeline: Any, repo: Path) -> None:
    done = ridgeline("trace", "bridge", repo / "examples" / "incident")
    text = " ".join(done.out.split())
    assert "50.0% was expected" in text
    assert "from 25.0% to 45.0% MFU" in text
    found = load("trace-report/bridge.json")["quantities"]
    points = [found[f"bridge.{number}.points"]["value"] for number in (1, 2, 3)]
    assert points == pytest.approx([8.0, 7.1, 4.9], abs=0.1)
    assert found["expected.corrected"]["value"] == pytest.approx(47, abs=0.2)


def test_a_bridge_of_traces_alone_is_in_seconds(ridgeline: Any, job: Path) -> None:
    done = ridgeline("trace", "bridge", job, "--json")
    assert done.json["decision"].startswith("Of the step of 10.0 ms, ")
    assert done.json["tables"]["bridge.bars"]["columns"][1]["unit"] == "ms"


def test_before_and_after(ridgeline: Any, job: Path, tmp_path: Path) -> None:
    other = write_job(tmp_path / "fixed", ranks=1)
    done = ridgeline("trace", "bridge", "--before", job, "--after", other)
    assert done.code == 0
    assert "The step went from 10.0 ms to 10.0 ms" in " ".join(done.out.split())
    found = load("trace-report/bridge.json")
    rows = found["tables"]["compare.buckets"]["rows"]
    assert {row[0] for row in rows} >= {"exposed comm", "compute"}
    changes = [found["quantities"][row[3]["q"]]["value"] for row in rows]
    step = found["quantities"]["compare.after.step"]["value"] - found["quantities"]["compare.before.step"]["value"]
    assert sum(changes) == pytest.approx(step, abs=1e-12)


def test_small_and_large(ridgeline: Any, job: Path, tmp_path: Path) -> None:
    done = ridgeline("trace", "bridge", "--small", job, "--large", write_job(tmp_path / "large", ranks=8))
    assert done.code == 0
    assert "Test 4 chips next" in done.out


@pytest.mark.parametrize(
    ("arguments", "got"),
    [((), "nothing"), (("--before", "job"), "--before and --after"), (("job", "--small", "job"), "STUDY and --small")],
)
def test_one_form_of_the_bridge(ridgeline: Any, job: Path, arguments: tuple[str, ...], got: str) -> None:
    done = ridgeline("trace", "bridge", *arguments)
    assert done.code == 2
    assert "a STUDY, or both runs of one pair" in done.err
    assert got in done.err


def test_a_case_becomes_a_section_of_the_memo(ridgeline: Any, job: Path, repo: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    (study / "evidence").mkdir(parents=True)
    (study / "study.toml").write_bytes((repo / "examples" / "flagship" / "study.toml").read_bytes())
    ridgeline("trace", job, "-o", "out")
    (study / "evidence" / "trace.json").write_bytes(Path("out/trace.json").read_bytes())
    assert ridgeline("memo", study).code in (0, 1)
    memo = (study / "memo.md").read_text()
    assert "wait for rank1" in memo
    assert "T152" in memo
    assert "The mean step of each rank" in memo
    assert "Collectives" in memo
    page = (study / "memo.html").read_text()
    assert "wait for rank1" in page


@pytest.mark.data
def test_the_eight_ranks(ridgeline: Any, data_dir: Path) -> None:
    done = ridgeline("trace", data_dir / "trace" / "gpt_8xh100")
    assert done.code == 1
    assert "wait for rank1" in " ".join(done.out.split())
    assert max(map(len, done.out.splitlines())) <= 80
    assert Path("trace-report/trace.html").stat().st_size < 3_000_000


def test_two_compilations_are_compared(ridgeline: Any, repo: Path) -> None:
    plain, remat = (repo / "examples" / "jax_cpu8" / name / "step.hlo.txt.gz" for name in ("plain", "remat"))
    done = ridgeline("trace", "bridge", "--before", plain, "--after", remat, "-o", "out")
    assert (done.code, done.err) == (0, "")
    assert "recomputation goes from 0 FLOP to 75.5 MFLOP" in " ".join(done.out.split())
    assert "Change by change" in done.out
