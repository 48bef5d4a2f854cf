"""``ridgeline plan --model``: the card, what it writes, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load
from ridgeline.plan.job import read_job

USUAL = {"--model": "llama-3-8b", "--cluster": "64xH100", "--seq": "4096", "--batch": "1M"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports go to a folder of their own."""
    monkeypatch.chdir(tmp_path)


def line(**changes: str) -> list[str]:
    """A command line with some options replaced."""
    options = USUAL | {f"--{name}": value for name, value in changes.items()}
    return ["plan", *(word for pair in options.items() for word in pair)]


def test_the_card_the_report_and_the_jobs(ridgeline: Any, tmp_path: Path) -> None:
    done = ridgeline(*line())
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    folder = tmp_path / "plan-report"
    assert {"layout.html", "layout.json", "job.toml", "job.megatron.toml"} <= {p.name for p in folder.iterdir()}
    document = load(folder / "layout.json")
    assert set(document["charts"]) >= {"plan.terms", "plan.front", "plan.memory", "plan.shares"}
    first = document["tables"]["plan.top"]["rows"][0]
    assert first[3] < first[2] < first[4], "the interval holds the expected step"
    assert read_job(folder / "job.toml").plan.chips == 64


def test_one_word_and_two_are_the_same_command(ridgeline: Any) -> None:
    one = ridgeline(*line(), "--json")
    two = ridgeline("plan", "layout", *line()[1:], "--json")
    assert json.loads(one.out) == json.loads(two.out)


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"cluster": "0xH100"}, 2, "Expected at least one chip, got 0"),
        ({"cluster": "12xH100"}, 1, "Expected whole nodes of 8 chips, got 12 chips"),
        ({"cluster": "1e6xH100"}, 2, "hint: write the number of chips in digits"),
        ({"cluster": "99999999999xH100"}, 2, "hint: check the exponent"),
        ({"cluster": "64xFOO"}, 2, "Expected a known accelerator, got 'FOO'"),
        ({"seq": "0"}, 2, "got 0, at --seq"),
        ({"seq": "1e20", "batch": "1e20"}, 2, "hint: check the exponent"),
        ({"batch": "1e18"}, 2, "hint: check the exponent"),
        ({"batch": "10000"}, 1, "nearest miss: 12,288 tokens"),
        ({"network": "pigeons"}, 2, "Expected a known interconnect, got 'pigeons'"),
        ({"dtype": "int8"}, 2, "got 'int8', at --dtype"),
        ({"framework": "foo"}, 2, "Expected a known framework"),
        ({"fix": "tp=abc"}, 2, "Expected whole numbers of at least 1, got 'abc', at plan.tp"),
        ({"fix": "tp=3"}, 1, "nearest miss: tp = 2"),
        ({"fix": "tp=128"}, 2, "Expected at most 64 ranks, one a chip, got 128"),
        ({"fix": "ep=2"}, 1, "Expected a model with experts for ep"),
        ({"fix": "micro_batch=3"}, 1, "nearest miss: dp*micro_batch = 128"),
        ({"model": "llama-3-405b", "cluster": "8xH100"}, 1, "hint: it fits 128 chips: "),
    ],
)
def test_what_it_refuses_in_a_sentence_with_a_place(
    ridgeline: Any, changes: dict[str, str], code: int, said: str
) -> None:
    done = ridgeline(*line(**changes))
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "internal error" not in done.err
