"""The case of a search, and the command that the issue names."""

import json
import time
import tomllib
from pathlib import Path

import pytest

from ridgeline.cli.main import run
from ridgeline.core.case import load
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.job import read_job
from ridgeline.plan.layouts.search_case import Answer, Asked, request_of, runs, search_case

LITERAL = ["plan", "--model", "llama-3-70b", "--cluster", "512xH100", "--seq", "8192", "--batch", "4M"]


@pytest.fixture(scope="module")
def answer() -> Answer:
    request, file = request_of(Asked("llama-3-8b", "64xH100", "8k", "2M"))
    return search_case(request, command="ridgeline plan", inputs=[file], top=4)


def test_the_decision_has_the_plan_its_interval_and_its_convention(answer: Answer) -> None:
    document = answer.case.to_json()
    assert document["decision"].startswith("Run ")
    assert "80%: " in document["decision"]
    assert "MFU as Megatron-LM counts it" in document["decision"]
    assert "cannot be told from it" in document["because"]


def test_every_chart_and_table_is_shown(answer: Answer) -> None:
    document = answer.case.to_json()
    shown = {name for section in document["sections"] for name in section["show"]}
    assert shown == set(document["tables"]) | set(document["charts"])
    assert {"plan.top", "plan.terms", "plan.front", "plan.memory", "plan.shares"} <= shown
    assert all(chart["table"] in document["tables"] for chart in document["charts"].values())


def test_tables_agree_with_each_other(answer: Answer) -> None:
    tables = answer.case.to_json()["tables"]
    top = tables["plan.top"]["rows"]
    assert [row[0] for row in top] == [1, 2, 3, 4]
    terms = tables["plan.terms"]["rows"]
    for row in top:
        assert sum(seconds for plan, _, seconds in terms if plan == f"#{row[0]}") == pytest.approx(row[2], rel=2e-3)
    why = tables["plan.why"]["rows"]
    assert why[-1][1:3] == [top[0][2], top[1][2]]
    assert sum(row[3] for row in why[:-1]) == pytest.approx(why[-1][3], abs=2e-3 * top[0][2])
    assert sum(row[1] for row in tables["plan.memory"]["rows"]) == pytest.approx(80, rel=0.01)


def test_the_same_step_in_every_convention(answer: Answer) -> None:
    document = answer.case.to_json()
    rows = {name: (mfu, flops) for name, mfu, flops in document["tables"]["plan.conventions"]["rows"]}
    assert rows["Megatron-LM"][0] == document["tables"]["plan.top"]["rows"][0][5]
    ratios = [mfu / flops for mfu, flops in rows.values()]
    assert ratios == pytest.approx([ratios[0]] * len(rows), rel=2e-3)
    assert rows["6N of all active parameters"][0] < rows["Megatron-LM"][0] < rows["torchtitan before PR 4300"][0]


def test_a_plan_that_fills_its_memory_is_named_as_one() -> None:
    request, file = request_of(Asked("llama-3-8b", "8xH100", "8k", "1M", fixed=("tp=1", "pp=2", "cp=1")))
    found = search_case(request, inputs=[file])
    free = found.ranking.best.free_bytes / found.ranking.found.limit_bytes
    assert free < 0.08
    assert f"It leaves {free:.1%} of a chip's memory" in found.case.because


def test_the_job_is_the_fastest_plan(answer: Answer, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(answer.jobs[""])
    job = read_job(file)
    assert (job.sequences, job.seq, job.plan.chips) == (256, 8192, 64)
    best = answer.ranking.best.plan
    assert (job.plan.tp, job.plan.pp, job.plan.dp, job.plan.micro_batch) == tuple(
        best[name] for name in ("tp", "pp", "dp", "micro_batch")
    )


def test_the_literal_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    start = time.perf_counter()
    assert run(LITERAL) == 0
    assert time.perf_counter() - start < 10
    printed = capsys.readouterr().out
    assert "llama-3-70b on 512xH100-SXM-80GB" in printed
    assert max(map(len, printed.splitlines())) <= 80
    document = load("plan-report/layout.json")
    assert document["command"].startswith("ridgeline plan layout --model llama-3-70b --cluster 512xH100")
    assert Path("plan-report/layout.html").stat().st_size < 5e6
    assert tomllib.loads(Path("plan-report/job.toml").read_text())["cluster"]["chips"] == "512xH100-SXM-80GB"
    for name in ("torchtitan", "megatron"):
        assert run(["plan", "export", f"plan-report/job.{name}.toml", "--to", name]) == 0
        assert "tensor" in capsys.readouterr().out.replace("-", "_")


def test_the_memo_takes_it_as_evidence(answer: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ridgeline.plan.memo import memo_case

    (tmp_path / "evidence").mkdir()
    (tmp_path / "study.toml").write_text('[budget]\nchips = "64xH100"\ndays = 30\n')
    (tmp_path / "evidence" / "layout.json").write_text(answer.case.dumps())
    made = memo_case(tmp_path)
    assert [part["title"] for part in made.evidence] == ["llama-3-8b on 64xH100-SXM-80GB"]
    assert made.lost == []


def test_both_jobs_of_the_word_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--chips", "1000xH100", "--days", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["title"].startswith("1,000")
    assert run(["plan", "--model=nothing-70b", "--cluster", "8xH100", "--seq", "8k", "--batch", "1M"]) == 2
    assert "Expected a known model or a file, got 'nothing-70b'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cluster": "512 of H100"}, "a cluster such as 512xH100"),
        ({"cluster": "512xH1000"}, "a known accelerator"),
        ({"network": "string"}, "a known interconnect"),
        ({"framework": "megatrom"}, "a known framework"),
        ({"seq": "long"}, "a context length"),
        ({"fixed": ("tp",)}, "a column and a value such as tp=8"),
        ({"fixed": ("recompute=some",)}, "a known recompute"),
    ],
)
def test_bad_input(change: dict[str, str], text: str) -> None:
    asked = {"model": "llama-3-8b", "cluster": "64xH100", "seq": "8k", "batch": "2M"} | change
    with pytest.raises(InputError, match=text):
        search_case(request_of(Asked(**asked))[0])  # type: ignore[arg-type]


def test_a_batch_of_broken_sequences_names_the_next() -> None:
    with pytest.raises(InfeasibleError) as caught:
        request_of(Asked("llama-3-8b", "64xH100", "8192", "4000000"))
    assert caught.value.nearest == "4,005,888 tokens"


def test_no_plans_wanted() -> None:
    with pytest.raises(InputError, match="at least one plan"):
        search_case(request_of(Asked("llama-3-8b", "64xH100", "8k", "2M"))[0], top=0)


def test_the_whole_space_and_a_fixed_column() -> None:
    request, _ = request_of(Asked("llama-3-8b", "64xH100", "8k", "2M", fixed=("tp=2", "zero=1"), whole=True))
    assert request.space.fixed == {"tp": 2, "zero": 1}
    assert "dualpipe" in request.space.schedules


def test_runs() -> None:
    assert runs([3, 20, 20, 20, 17]) == "3, 20 (3 times), 17"
