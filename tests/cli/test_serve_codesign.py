"""``ridgeline serve codesign``: the flagship's study, flags, the honest none, refusals."""

from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load

SMALL = "[axes]\nwidest = 6144\nnarrowest = 3072\naspects = [128]\nmixtures = [[8, 2]]\n"
FLAGS = ("--compute", "1e24", "--device", "H100", "--chips", "4")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "grid.toml"
    file.write_text(SMALL)
    return file


def test_a_study(ridgeline: Any, repo: Path, tmp_path: Path) -> None:
    done = ridgeline("serve", "codesign", repo / "examples" / "flagship", "-o", tmp_path)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80 + len(str(tmp_path))
    assert "What each freedom buys back" in done.out
    document = load(tmp_path / "codesign.json")
    assert document["command"].startswith("ridgeline serve codesign ")
    assert document["inputs"][0]["path"].endswith("study.toml")
    assert document["quantities"]["turn.total"]["value"] <= 1.0
    assert document["quantities"]["codesign.excess"]["unit"] == "nat"
    assert (tmp_path / "codesign.html").read_text(encoding="utf-8").count("The front") >= 1


def test_flags(ridgeline: Any, small: Path, tmp_path: Path) -> None:
    done = ridgeline(
        "serve", "codesign", *FLAGS, "--ttft", "500ms", "--tpot", "20ms", "--context", "4k+512", "--batch", "1,32",
        "--price-ceiling", "3", "--spec", small, "--json", "-o", tmp_path / "case.json",
    )  # fmt: skip
    assert done.code == 0
    found = done.json["quantities"]
    assert (found["serve.prompt"]["value"], found["serve.output"]["value"]) == (4096, 512)
    assert found["serve.dollars_per_million_tokens"]["value"] <= 3
    assert found["latency.tpot"]["value"] <= 0.02
    assert {row[2] for row in done.json["tables"]["codesign.front"]["rows"]} <= {1, 32}


def test_none_does(ridgeline: Any, small: Path, tmp_path: Path) -> None:
    done = ridgeline("serve", "codesign", *FLAGS, "--tpot", "10us", "--spec", small, "-o", tmp_path / "case.json")
    assert done.code == 1
    assert "None does" in done.out
    assert "S501" in done.out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((), "training compute"),
        ((*FLAGS, "--tpot", "0"), "above zero"),
        ((*FLAGS, "--tpot", "20ms", "--batch", "0"), "--batch"),
        ((*FLAGS, "--tpot", "20ms", "--price-ceiling", "nan"), "a finite price above zero, at most 1,000,000 dollars"),
        ((*FLAGS, "--tpot", "soon"), "at --tpot"),
        (("--compute", "1", *FLAGS[2:], "--tpot", "20ms"), "at --compute"),
        ((*FLAGS, "--tpot", "20ms", "--batch", "70000"), "whole numbers of sequences"),
        ((*FLAGS, "--tpot", "20ms", "--context", "8x"), "context length"),
        (FLAGS, "a limit"),
        (("nowhere",), "study file"),
    ],
)
def test_refusals(ridgeline: Any, asked: tuple[str, ...], said: str) -> None:
    done = ridgeline("serve", "codesign", *asked)
    assert done.code == 2
    assert said in done.err
