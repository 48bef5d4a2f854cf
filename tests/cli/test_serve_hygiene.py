"""``ridgeline serve hygiene``: exit codes, the document, what it refuses."""

import json
from pathlib import Path

import pytest

from ridgeline.cli.main import run

LOG, CLEAN = "examples/hygiene/requests.jsonl", "examples/hygiene/clean.jsonl"


@pytest.fixture(autouse=True)
def at_root(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo)


def test_a_faulty_log_fails_and_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "hygiene", LOG, "--price", "2.5/0.25", "--rate", "20k", "-o", str(tmp_path)]) == 1
    card = capsys.readouterr().out
    assert max(len(line) for line in card.splitlines() if str(tmp_path) not in line) <= 80
    assert "FAIL    S303" in card
    assert (tmp_path / "hygiene.html").is_file()
    document = json.loads((tmp_path / "hygiene.json").read_text(encoding="utf-8"))
    assert document["command"] == f"ridgeline serve hygiene {LOG} --price 2.5/0.25 --rate 20k"


def test_a_clean_log_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "hygiene", CLEAN, "--json", "-o", str(tmp_path / "case.json")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["quantities"]["hygiene.hit_rate.achievable"]["value"] == pytest.approx(90.3, abs=0.5)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing.jsonl"], "a readable file"),
        ([LOG, "--price", "nan/0.1"], "finite"),
        ([LOG, "--policy", "openia"], "did you mean openai"),
        ([LOG, "--block", "3"], "an even number of tokens"),
        ([LOG, "--capacity", "4"], "at least one block"),
        ([LOG, "--rate", "0"], "above zero"),
        ([LOG, "--ttl", "soon"], "a duration"),
    ],
)
def test_bad_input(words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "hygiene", *words, "-o", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err
