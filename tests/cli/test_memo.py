"""``ridgeline memo``: three files, a card, exit codes, nothing fetched from anywhere."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load


@pytest.fixture
def study(repo: Path, tmp_path: Path) -> Path:
    """A copy of the example with nothing but its study."""
    folder = tmp_path / "flagship"
    folder.mkdir()
    shutil.copy(repo / "examples" / "flagship" / "study.toml", folder)
    return folder


def test_three_files_and_a_card(ridgeline: Any, study: Path) -> None:
    done = ridgeline("memo", study)
    assert (done.code, done.err) == (0, "")
    assert {p.name for p in study.iterdir()} == {"study.toml", "memo.html", "memo.md", "memo.json"}
    assert "Train 30B on 5.70T tokens" in done.out
    assert "memo.html" in next(line for line in done.out.splitlines() if line.startswith("report"))
    text = [line for line in done.out.splitlines() if not line.startswith(("report", "why"))]
    assert max(map(len, text)) <= 80
    document = load(study / "memo.json")
    assert document["tool"] == "memo"
    assert document["command"] == f"ridgeline memo {study}"
    assert (study / "memo.md").read_text().startswith("# Flagship")


def test_another_folder_and_the_file_itself(ridgeline: Any, study: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    assert ridgeline("memo", study / "study.toml", "-o", out).code == 0
    assert {p.name for p in out.iterdir()} == {"memo.html", "memo.md", "memo.json"}
    assert [p.name for p in study.iterdir()] == ["study.toml"]


def test_json_is_the_document_of_the_file(ridgeline: Any, study: Path) -> None:
    done = ridgeline("memo", study, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.out == (study / "memo.json").read_text()
    assert json.loads(done.out)["quantities"]["compute"]["text"] == "1.026e24 FLOP"


def test_the_page_refers_to_nothing_outside_itself(ridgeline: Any, study: Path) -> None:
    ridgeline("memo", study)
    page = (study / "memo.html").read_text()
    markup = re.sub(r"(<script\b[^>]*>).*?(</script>)", r"\1\2", page, flags=re.DOTALL)
    loaded = re.findall(r"""<[a-z]+\b[^>]*\s(?:src|srcset|data|poster)\s*=\s*["']?([^"'\s>]+)""", markup)
    loaded += re.findall(r"""<(?:link|use|image)\b[^>]*\bhref\s*=\s*["']?([^"'\s>]+)""", markup)
    loaded += re.findall(r"""(?:\burl\(|@import\s+)["']?([^"')\s]+)""", markup)
    assert [item for item in loaded if not item.startswith(("#", "data:"))] == []
    assert len(markup) < len(page)
    assert "30B" in page


def test_every_number_opens_with_why(ridgeline: Any, study: Path) -> None:
    ridgeline("memo", study, "--json")
    for name in ("servable.params", "equal_loss.30b.crossover", "life.s2.30b.saving", "state.share"):
        done = ridgeline("why", study / "memo.json", name)
        assert (done.code, done.err) == (0, "")
        assert name in done.out


def test_a_failed_finding_is_exit_code_1_and_the_memo_is_written(ridgeline: Any, study: Path) -> None:
    file = study / "study.toml"
    file.write_text(file.read_text().replace('unique_tokens = "15T"', 'unique_tokens = "0.5T"'))
    done = ridgeline("memo", study)
    assert done.code == 1
    assert "FAIL    P102" in done.out
    assert (study / "memo.html").is_file()


def test_broken_evidence_is_said_and_the_memo_is_written(ridgeline: Any, study: Path) -> None:
    (study / "evidence").mkdir()
    (study / "evidence" / "cut.json").write_text('{"schema": 1, "to')
    done = ridgeline("memo", study, "--json")
    assert done.code == 0
    (lost,) = done.json["lost"]
    assert "cut.json" in lost
    assert "cut.json" in (study / "memo.md").read_text()
    assert "cut.json" in (study / "memo.html").read_text()


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("mfu =", "mfuu =", "study.toml: $.budget.mfuu"),
        ("top_k = 8", "top_k = 800", "study.toml: $.moe.top_k"),
        ('"1000xH100"', '"1000xH1000"', "study.toml: $.budget.chips"),
        ("[budget]", "[budget", "study.toml"),
    ],
)
def test_refusals_leave_nothing_behind(ridgeline: Any, study: Path, old: str, new: str, place: str) -> None:
    file = study / "study.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    done = ridgeline("memo", study)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: Expected ")
    assert place in done.err
    assert [p.name for p in study.iterdir()] == ["study.toml"]


def test_a_folder_without_a_study(ridgeline: Any, tmp_path: Path) -> None:
    done = ridgeline("memo", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "a readable study file" in done.err


def test_a_file_where_the_folder_should_go(ridgeline: Any, study: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = ridgeline("memo", study, "-o", tmp_path / "taken")
    assert done.code == 2
    assert "taken" in done.err
