"""The contract of a gate: it runs over whatever is found. Each has a page, an example, a command and a golden case."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from scripts.docs import ROOT
from scripts.gate_examples.example import Example
from scripts.make_gate_examples import FOLDER, GOLDEN, examples, goldens
from tests.docs.test_commands import FENCE, commands

from ridgeline.cli.main import commands as every_command
from ridgeline.cli.main import run
from ridgeline.gate.decision import EXIT, Outcome
from ridgeline.gate.gate import gates

GATES = gates()
PAGES = sorted((ROOT / "docs" / "how-to" / "gates").glob("*.md"))
HEADINGS = ["What it protects against", "How to run it", "How to read it", "When it says INCONCLUSIVE"]


def test_gates_are_found() -> None:
    assert {"precision", "recovery", "regression"} <= set(GATES)


@pytest.mark.parametrize("name", GATES)
def test_says_what_it_protects_against(name: str) -> None:
    gate = GATES[name]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", gate.name)
    assert 5 <= len(gate.title) <= 60
    assert gate.protects.endswith(".")
    assert gate.protects.count(".") == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_have_the_same_headings(page: Path) -> None:
    assert re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE) == HEADINGS


@pytest.mark.parametrize("name", GATES)
def test_has_a_page_and_a_command(name: str) -> None:
    assert name in {page.stem for page in PAGES}
    assert f"gate {name}" in every_command()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FOLDER, Path("examples/gates"))
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        if fence["file"]:
            Path(fence["file"]).write_text(fence["text"], encoding="utf-8")
    shown = [item for fence in FENCE.finditer(text) if fence["kind"] == "console" for item in commands(fence["text"])]
    assert shown, "a page shows how to run it"
    for command, lines, code in shown:
        found = run(shlex.split(command)[1:])
        out, err = capsys.readouterr()
        assert found == code, f"{command}: {out}{err}"
        printed = [line.rstrip() for line in (out + err).splitlines()]
        assert [line for line in lines if line.rstrip() not in printed] == [], f"{command} prints:\n{out}{err}"


@pytest.fixture(params=GATES)
def example(request: pytest.FixtureRequest) -> Example:
    found = examples()
    assert request.param in found, f"scripts/gate_examples has no example of {request.param}"
    return found[request.param]


def test_the_example_is_as_drawn(example: Example) -> None:
    folder = FOLDER / example.gate
    assert (folder / "README.md").read_text(encoding="utf-8") == example.readme()
    drawn = example.drawn()
    assert drawn
    assert [name for name, content in drawn.items() if (folder / name).read_bytes() != content] == []
    kept = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert kept == {*drawn, "README.md"}, "python -m scripts.make_gate_examples"
    assert sum(map(len, drawn.values())) < 2**20


def test_the_case_is_the_golden_one(example: Example) -> None:
    kept = json.loads((GOLDEN / f"{example.gate}.json").read_text(encoding="utf-8"))
    found = goldens(example, str(FOLDER / example.gate))
    variants = [kept, *kept.get("variants", {}).values()]
    assert EXIT[Outcome(kept["outcome"])] == kept["exit"]
    assert all(item["tool"] == f"gate {example.gate}" for item in variants)
    assert_same(found, kept)


def assert_same(found: Any, kept: Any, where: str = "$") -> None:
    """Equal, but for the last of six digits of a number."""
    if isinstance(kept, dict):
        assert sorted(found) == sorted(kept), where
        for name, value in kept.items():
            assert_same(found[name], value, f"{where}.{name}")
    elif isinstance(kept, list):
        assert len(found) == len(kept), where
        for index, value in enumerate(kept):
            assert_same(found[index], value, f"{where}[{index}]")
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=2e-5, abs=1e-12), where
    else:
        assert found == kept, where


def test_examples_are_of_gates() -> None:
    assert sorted(examples()) == sorted(GATES)
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == sorted(GATES)
