"""``ridgeline review``: the page, the artifact, the card and the exit codes."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load

MODEL = "layers = 32\nd_model = 4096\nd_ff = 14336\nheads = 32\nkv_heads = 8\nvocab = 131072\n"
FLAGS = ("--cluster", "64xH100", "--plan", "tp=2,zero=1", "--seq", "4k", "--batch", "1M", "--tokens", "1T")


@pytest.fixture
def study(repo: Path, tmp_path: Path) -> Path:
    """A copy of the example's design."""
    folder = tmp_path / "flagship"
    folder.mkdir()
    for name in ("study.toml", "review.toml", "comparable.json"):
        shutil.copy(repo / "examples" / "flagship" / name, folder)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model as a file."""
    file = tmp_path / "model.toml"
    file.write_text(MODEL)
    return file


def test_the_flagship_has_costed_findings(ridgeline: Any, study: Path) -> None:
    done = ridgeline("review", study)
    assert done.code == 1, "the claim fails"
    assert {p.name for p in study.iterdir()} >= {"review.html", "review.json", "expectation.json"}
    document = load(study / "review.json")
    priced = [f["code"] for f in document["findings"] if "dollars" in f["cost"]]
    assert {"P201", "P215", "P220"} <= set(priced)
    text = [line for line in done.out.splitlines() if not line.startswith(("report", "why"))]
    assert max(map(len, text)) <= 80
    assert "Regroup 64 heads of 96 into 48 of 128" in done.out


def test_every_section_of_the_page(ridgeline: Any, study: Path) -> None:
    ridgeline("review", study, "--against", study / "comparable.json")
    document = load(study / "review.json")
    headings = [section["heading"] for section in document["sections"]]
    assert headings == [
        "The question", "What to expect", "Where the step goes", "Memory by stage", "The shapes on one chip",
        "Against the comparable run", "The pilot", "Open questions",
    ]  # fmt: skip
    assert set(document["charts"]) == {"review.step", "review.memory"}
    page = (study / "review.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="https?://(?!arxiv)', page.split("<h2")[0])
    assert len(document["inputs"]) == 3


def test_the_artifact_keeps_its_version_while_nothing_moves(ridgeline: Any, study: Path) -> None:
    for version, extra in [(1, ()), (1, ()), (2, ("--plan", "tp=8,zero=1,sequence_parallel=1"))]:
        ridgeline("review", study, *extra)
        found = load(study / "expectation.json")["quantities"]
        assert found["expected.version"]["value"] == version
    assert found["expected.mfu"]["value"] == load(study / "review.json")["quantities"]["expected.mfu"]["value"]


def test_a_model_and_flags(ridgeline: Any, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = ridgeline("review", model, *FLAGS, "-o", out, "--json")
    assert done.code == 0
    assert done.json["tool"] == "review"
    assert done.json["command"].startswith(f"ridgeline review {model} --cluster 64xH100 --plan tp=2,zero=1")
    assert {p.name for p in out.iterdir()} == {"review.html", "review.json", "expectation.json"}


def test_a_published_model_by_name(ridgeline: Any, tmp_path: Path) -> None:
    flags = ("--cluster", "512xH100", "--plan", "tp=8,pp=4,zero=1", "--seq", "8k", "--batch", "4M")
    done = ridgeline("review", "llama-3-70b", *flags, "-o", tmp_path / "out", "--json")
    assert done.json["title"].startswith("llama-3-70b on 512x")
    assert ridgeline("review", "llama-9", *flags).code == 2


def test_without_a_folder_of_its_own_it_writes_a_report(
    ridgeline: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ridgeline("review", model, *FLAGS).code == 0
    assert (tmp_path / "review-report" / "review.html").is_file()


def test_calibrated_with_a_measured_step(ridgeline: Any, model: Path, tmp_path: Path) -> None:
    plain = ridgeline("review", model, *FLAGS, "-o", tmp_path / "plain", "--json").json["quantities"]
    run = {
        "model": {"config": "model.toml"}, "cluster": "64xH100", "plan": {"tp": 2, "zero": 1}, "sequences": 256,
        "seq": 4096, "step_s": 1.3 * plain["expected.step"]["value"],
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(run))
    done = ridgeline("review", model, *FLAGS, "--calibrate", tmp_path / "run.json", "-o", tmp_path / "own", "--json")
    own = done.json["quantities"]
    assert own["expected.mfu"]["value"] < plain["expected.mfu"]["value"]
    width = [q["expected.step.high"]["value"] / q["expected.step.low"]["value"] for q in (own, plain)]
    assert width[0] < width[1]


@pytest.mark.parametrize(
    ("extra", "code", "said"),
    [
        (("--claim", "150%"), 2, "at most 100%"),
        (("--claim", "50%@gossip"), 2, "provenance"),
        (("--plan", "tp=3"), 1, "divide"),
        (("--plan", "tp=2,dp=64"), 2, "ranks"),
        (("--plan", "fast"), 2, "--plan"),
        (("--cluster", "64xH1000"), 2, "accelerator"),
        (("--batch", "1000001"), 2, "multiple of seq"),
        (("--against", "nowhere.json"), 2, "nowhere.json"),
    ],
)
def test_refusals(ridgeline: Any, model: Path, extra: tuple[str, str], code: int, said: str) -> None:
    done = ridgeline("review", model, *FLAGS, *extra)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_claim_above_the_ceiling_fails_with_the_number(ridgeline: Any, model: Path, tmp_path: Path) -> None:
    done = ridgeline("review", model, *FLAGS, "--claim", "90%@roofline", "-o", tmp_path / "out", "--json")
    assert done.code == 1
    found = {f["code"]: f for f in done.json["findings"]}
    assert found["P216"]["verdict"] == "fail"
    assert found["P216"]["value"] == "claim.of_ceiling"


def test_rules_are_configured_beside_the_file(ridgeline: Any, study: Path) -> None:
    (study / "ridgeline.toml").write_text('[rules]\nignore = ["P215"]\n')
    done = ridgeline("review", study)
    assert done.code == 0
    assert "P215" not in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--plan", "tp=a"), "Expected whole numbers of at least 1, got 'a', at llama-3-8b: plan.tp"),
        (("--plan", "tp=2;dp=4"), "Expected whole numbers of at least 1, got '2;dp=4'"),
        (("--plan", "tp=2,tp=4"), "Expected tp once, got 'tp=4', at --plan"),
        (("--plan", "dp=1e30"), "at llama-3-8b: plan.dp"),
        (("--seq", "1e30", "--batch", "1e30"), "hint: check the exponent"),
        (("--claim", "50@folklore"), "hint: write 50%"),
        (("--claim", "150%@folklore"), "hint: an MFU above 100% is"),
    ],
)
def test_a_slip_of_the_pen_is_one_sentence(ridgeline: Any, options: tuple[str, ...], said: str) -> None:
    usual = {"--cluster": "8xH100", "--plan": "tp=2", "--seq": "8k", "--batch": "1M"}
    usual |= dict(zip(options[::2], options[1::2], strict=True))
    done = ridgeline("review", "llama-3-8b", *(word for pair in usual.items() for word in pair))
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "internal error" not in done.err


def test_a_plan_that_does_not_fit_says_so_first(ridgeline: Any) -> None:
    usual = ("--cluster", "8xH100", "--plan", "tp=2", "--seq", "8k", "--batch", "1M")
    text = " ".join(ridgeline("review", "llama-3-405b", *usual).out.split())
    assert "Do not launch yet: the plan needs" in text
    assert "If it fitted, expect" in text
