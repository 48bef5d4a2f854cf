"""The memo: a study folder as one document, and the seam for the evidence of other tools."""

import json
import shutil
from pathlib import Path

import pytest
from tests.report.conftest import GOLDEN

from ridgeline.core.errors import InputError
from ridgeline.plan.memo import memo_case
from ridgeline.report import html, markdown, terminal

EVIDENCE = GOLDEN / "case-v1.json"


@pytest.fixture
def flagship(repo: Path, tmp_path: Path) -> Path:
    """A copy of the example with nothing but its study."""
    folder = tmp_path / "flagship"
    folder.mkdir()
    shutil.copy(repo / "examples" / "flagship" / "study.toml", folder)
    return folder


def test_the_study_is_an_input_with_its_hash(flagship: Path) -> None:
    case = memo_case(flagship)
    assert case.tool == "memo"
    assert [item.path for item in case.inputs] == [str(flagship / "study.toml")]
    assert case.inputs[0].size == (flagship / "study.toml").stat().st_size
    assert case.command == f"ridgeline memo {flagship}"
    assert memo_case(flagship / "study.toml").inputs == case.inputs


def test_the_command_can_be_typed_again(flagship: Path) -> None:
    spaced = flagship.rename(flagship.parent / "my study")
    assert memo_case(spaced).command == f"ridgeline memo '{spaced}'"


def test_evidence_becomes_part_of_the_document(flagship: Path) -> None:
    (flagship / "evidence").mkdir()
    for name in ("b-trace.json", "a-forecast.json"):
        shutil.copy(EVIDENCE, flagship / "evidence" / name)
    (flagship / "evidence" / "notes.txt").write_text("not a case")
    case = memo_case(flagship)
    assert [json.dumps(item) for item in case.evidence] == [json.dumps(json.loads(EVIDENCE.read_text()))] * 2
    assert [Path(item.path).name for item in case.inputs] == ["study.toml", "a-forecast.json", "b-trace.json"]
    assert case.lost == []
    title = case.evidence[0]["title"]
    document = json.loads(case.dumps())
    for text in (markdown.render(document), html.render(document)):
        assert title in text


@pytest.mark.parametrize(
    "content", [b'{"schema": 1, "tool"', b"[]", b'{"schema": 99}', b'{"schema": 1, "tool": "x"}', b"\xff\xfe", b"NaN"]
)
def test_broken_evidence_is_named_and_the_memo_is_written(flagship: Path, content: bytes) -> None:
    (flagship / "evidence").mkdir()
    (flagship / "evidence" / "a-broken.json").write_bytes(content)
    shutil.copy(EVIDENCE, flagship / "evidence" / "b-whole.json")
    case = memo_case(flagship)
    assert len(case.evidence) == 1
    (lost,) = case.lost
    assert lost.startswith("evidence not read: Expected ")
    assert "a-broken.json" in lost
    assert "a-broken.json" in markdown.render(json.loads(case.dumps()))


def test_configuration_lies_beside_the_study(flagship: Path) -> None:
    (flagship / "ridgeline.toml").write_text('[rules]\nselect = ["P101"]\n[rules.threshold]\nP101 = 0.1\n')
    case = memo_case(flagship)
    assert [(f.code, str(f.verdict)) for f in case.findings] == [("P101", "fail")]


def test_a_name_that_is_not_known_is_found_in_the_file(flagship: Path) -> None:
    file = flagship / "study.toml"
    file.write_text(file.read_text().replace("1000xH100", "1000xH1000"))
    with pytest.raises(InputError) as caught:
        memo_case(flagship)
    assert caught.value.where.startswith(f"{file}: $.budget.chips")
    assert "did you mean H100" in caught.value.hint


def test_two_runs_give_the_same_bytes(flagship: Path) -> None:
    first, second = memo_case(flagship), memo_case(flagship)
    assert first.dumps() == second.dumps()
    one, two = json.loads(first.dumps()), json.loads(second.dumps())
    assert markdown.render(one) == markdown.render(two)


def test_the_card_of_the_flagship(flagship: Path, golden: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(flagship.parent)
    card = terminal.card(json.loads(memo_case("flagship").dumps()), report_path="flagship/memo.html")
    golden("flagship-card.txt", card)  # type: ignore[operator]
    assert max(map(len, card.splitlines())) <= 80


def test_the_story_of_the_flagship(flagship: Path) -> None:
    case = memo_case(flagship)
    verdicts = [(f.code, str(f.verdict)) for f in case.findings]
    assert verdicts[0] == ("P109", "warn")
    assert "fail" not in dict(verdicts).values()
    sizes = {name: case.quantities[name].value for name in ("optimum.params", "candidate.30b.params")}
    assert sizes["candidate.30b.params"] == 30e9
    assert sizes["optimum.params"] == pytest.approx(92.5e9, rel=1e-3)
    chips = {
        key: case.quantities[f"{key}.h100-sxm-80gb.serve.chips_exact"].value for key in ("optimum", "candidate.30b")
    }
    assert chips == {"optimum": 12, "candidate.30b": 4}
