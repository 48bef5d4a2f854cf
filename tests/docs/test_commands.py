"""The commands of the tutorial and the how-to pages run, and print the lines that the pages show."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.docs import ROOT

from ridgeline.cli.main import run
from ridgeline.core.case import Case
from ridgeline.core.finding import HEADINGS, Rule, Verdict
from ridgeline.plan.plan import make_plan
from ridgeline.plan.study import Study

PAGES = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
FENCE = re.compile(r"(?:^`(?P<file>[\w./-]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


def prepare(page: Path) -> None:
    """A working folder with the examples, as they are in the repository, and every file that the page names."""
    Path("examples/flagship").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "flagship" / "study.toml", "examples/flagship")
    for name in ("hygiene", "incident", "jax_cpu8", "ladder", "recommender"):
        shutil.copytree(ROOT / "examples" / name, Path("examples") / name)
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        if fence["file"]:
            Path(fence["file"]).parent.mkdir(parents=True, exist_ok=True)
            Path(fence["file"]).write_text(fence["text"], encoding="utf-8")


def commands(text: str) -> Iterator[tuple[str, list[str], int]]:
    """Each command with the lines shown below it and the exit code that ``echo $?`` shows, or zero."""
    for block in re.split(r"^\$ (?!echo)", text, flags=re.MULTILINE)[1:]:
        shown, _, code = block.partition("$ echo $?\n")
        command, *lines = shown.rstrip().splitlines()
        yield command, [line for line in lines if line != "..."], int(code or 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(page)
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        if fence["kind"] == "python" and not fence["file"]:
            exec(compile(fence["text"], str(page), "exec"), {})
        for command, shown, code in commands(fence["text"]) if fence["kind"] == "console" else ():
            program, *arguments = shlex.split(command)
            if program == "mkdir":
                Path(arguments[-1]).mkdir(parents=True)
                continue
            assert program == "ridgeline", command
            found = run(arguments)
            out, err = capsys.readouterr()
            printed = [line.rstrip() for line in (out + err).splitlines()]
            assert found == code, f"{command}: {out}{err}"
            assert [line for line in shown if line.rstrip() not in printed] == [], f"{command} prints:\n{out}{err}"


def example_rule() -> Rule:
    text = (ROOT / "docs" / "how-to" / "add-a-rule.md").read_text(encoding="utf-8")
    code = next(fence["text"] for fence in FENCE.finditer(text) if fence["kind"] == "python")
    namespace: dict[str, object] = {}
    exec(compile(code, "add-a-rule.md", "exec"), namespace)
    found = namespace["check"]
    assert isinstance(found, Rule)
    return found


def test_the_example_rule_has_its_page() -> None:
    assert [heading for heading in HEADINGS if f"## {heading}" not in example_rule().page] == []


@pytest.mark.parametrize(("days", "verdict"), [(30, Verdict.PASS), (60, Verdict.FAIL)])
def test_the_example_rule_fires(days: int, verdict: Verdict) -> None:
    plan = make_plan(Study.model_validate({"budget": {"chips": "1000xH100", "days": days}}))
    (found,) = example_rule().check(plan, example_rule())
    assert found.verdict is verdict
    case = Case("test", "test")
    case.add_findings([found])
    assert f"cost ${days * 60_000:,}" in case.text(found.sentence)
