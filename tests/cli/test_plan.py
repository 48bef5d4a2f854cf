"""``ridgeline plan``: the card, the document, exit codes, what is refused."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load

BASE = ("plan", "--chips", "1000xH100", "--days", "30")
STORY = (*BASE, "--served", "1e12..1e16", "--turn", "8k+128@1s", "--serve-on", "4xH100", "--sizes", "70B,30B,17B,8B")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ``ridgeline.toml`` of this repository, or of whoever runs the tests, has a say."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ridgeline.toml").write_text("")


def test_the_card_shows_the_budget(ridgeline: Any) -> None:
    done = ridgeline(*BASE)
    assert (done.code, done.err) == (0, "")
    assert "1.026e24 FLOP" in done.out
    assert "Train 92.5B on 1.85T tokens" in " ".join(done.out.split())
    assert "0.400*  assumed" in done.out


@pytest.mark.parametrize("arguments", [BASE, STORY, (*BASE, "--law", "hoffmann")])
def test_the_card_fits_eighty_columns(ridgeline: Any, arguments: tuple[str, ...]) -> None:
    lines = ridgeline(*arguments).out.splitlines()
    assert max(map(len, lines)) <= 80


def test_json_is_one_document_and_alone_on_stdout(ridgeline: Any) -> None:
    done = ridgeline(*STORY, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["tool"] == "plan"
    assert done.json["quantities"]["compute"]["value"] == pytest.approx(1.026e24, rel=1e-3)
    assert done.out.endswith("}\n")
    assert done.json["quantities"]["need.chips_per_conversation"]["value"] == 4


def test_the_story_from_the_flags(ridgeline: Any) -> None:
    text = " ".join(ridgeline(*STORY).out.split())
    assert "Train 30B on 5.70T tokens: one conversation takes 4 chips of H100-SXM-80GB within 1.00 s" in text
    assert "over 100T tokens" in text


def test_options_reach_the_study(ridgeline: Any) -> None:
    found = ridgeline(
        *BASE, "--mfu", "0.3", "--price", "3", "--tokens", "2T", "--law", "chinchilla", "--law", "20x", "--json"
    ).json
    quantities = found["quantities"]
    assert quantities["cluster.mfu"]["value"] == 0.3
    assert quantities["cost.rent"]["value"] == pytest.approx(3 * 1000 * 720)
    assert quantities["data.unique_tokens"]["value"] == 2e12
    assert [row[0] for row in found["tables"]["plan.laws"]["rows"]] == [
        "Hoffmann et al. 2022, approach 3", "20 tokens per parameter",
    ]  # fmt: skip


def test_the_command_is_this_one_and_makes_the_same_case(ridgeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest", "-x"])
    first = ridgeline(*STORY, "--law", "20x", "--law", "hoffmann", "--json")
    command = shlex.split(first.json["command"])
    assert command == ["ridgeline", *STORY, "--law", "20x", "--law", "hoffmann"]
    assert ridgeline(*command[1:], "--json").out == first.out


def test_a_failed_finding_is_exit_code_1(ridgeline: Any) -> None:
    done = ridgeline("plan", "--chips", "1xH100", "--days", "30")
    assert done.code == 1
    assert "FAIL    P101" in done.out
    assert ridgeline("plan", "--chips", "1xH100", "--days", "30", "--json").code == 1


def test_configuration_of_the_folder_applies(ridgeline: Any) -> None:
    Path("ridgeline.toml").write_text('[rules]\nselect = ["P101"]\n[rules.threshold]\np101 = 0.5\n')
    done = ridgeline(*BASE, "--json")
    assert done.code == 1
    (found,) = done.json["findings"]
    assert (found["code"], found["verdict"]) == ("P101", "fail")
    assert done.json["quantities"]["threshold.p101"]["value"] == 0.5
    assert done.json["quantities"]["threshold.p101"]["kind"] == "specified"


def test_output_is_a_case_that_why_opens(ridgeline: Any, tmp_path: Path) -> None:
    target = tmp_path / "case.json"
    done = ridgeline(*STORY, "-o", target)
    assert done.code == 0
    assert str(target) in done.err
    document = load(target)
    for name in ("compute", "optimum.params", "candidate.30b.besiroglu-2024.worth", "recipe.balanced.memory.device"):
        assert name in document["quantities"]
        tree = ridgeline("why", target, name)
        assert (tree.code, tree.err) == (0, "")
        assert name in tree.out
    assert "1000" in ridgeline("why", target, "compute").out.replace(",", "")


def test_every_number_of_the_case_opens(ridgeline: Any, tmp_path: Path) -> None:
    from ridgeline.report import why

    target = tmp_path / "case.json"
    ridgeline(*STORY, "-o", target, "--quiet")
    document = load(target)
    for name in document["quantities"]:
        assert name in why.tree(document, name)


@pytest.mark.parametrize(
    ("arguments", "place", "said"),
    [
        (("--chips", "1000xH1000"), "$.budget.chips", "hint: did you mean H100"),
        (("--chips", "-5xH100"), "$.budget.chips", "chips such as 1000xH100"),
        (("--chips", "1e400xH100"), "$.budget.chips", "chips such as 1000xH100"),
        (("--days", "-3"), "$.budget.days", "above zero"),
        (("--days", "1e400"), "$.budget.days", "check the exponent"),
        (("--mfu", "40"), "$.budget.mfu", "less than or equal to 1"),
        (("--mfu", "nan"), "$.budget.mfu", "got nan"),
        (("--price", "0"), "$.budget.dollars_per_chip_hour", "greater than 0"),
        (("--tokens", "1e400"), "$.budget.unique_tokens", "check the exponent"),
        (("--served", "1e400"), "--served", "check the exponent"),
        (("--served", "0"), "--served", "above zero"),
        (("--turn", "8k"), "--turn", "hint: PREFILL+DECODE@BUDGET"),
        (("--turn", "8k+128@0.25s"), "$.need.budget", "above the fixed overhead"),
        (("--serve-on", "H100"), "--serve-on", "chips such as"),
        (("--serve-on", "8xabacus"), "$.need", "a known accelerator, got 'abacus'"),
        (("--sizes", "8B,,30B"), "$.candidates", "parameters such as 70B"),
        (("--sizes", "-8B"), "$.candidates", "above zero"),
        (("--law", "nobody"), "$.laws", "a known scaling law"),
        (("--law", "kaplan"), "$.laws", "where the optimum lies"),
    ],
)
def test_refusals_are_one_screen_and_exit_code_2(
    ridgeline: Any, arguments: tuple[str, ...], place: str, said: str
) -> None:
    done = ridgeline(*BASE, *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: Expected ")
    assert place in done.err
    assert said in done.err
    assert len(done.err.splitlines()) < 10
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "arguments", [("--chips", "8xH100"), ("--days", "30"), ("--chips", "8xH100", "--days", "1", "--colour")]
)
def test_missing_and_unknown_options(ridgeline: Any, arguments: tuple[str, ...]) -> None:
    done = ridgeline("plan", *arguments)
    assert (done.code, done.out) == (2, "")


def test_an_output_that_cannot_be_written(ridgeline: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = ridgeline(*BASE, "-o", tmp_path / "taken" / "case.json")
    assert (done.code, done.out) == (2, "")
    assert "taken" in done.err


def test_a_process_of_its_own(repo: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ridgeline.cli.main", *BASE, "--json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["command"] == shlex.join(["ridgeline", *BASE])
