"""``ridgeline serve levers``: the card, the report, refusals."""

from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load

ASKED = ("serve", "levers", "llama-3-8b", "--device", "H100", "--input", "2k", "--answer", "300")


def test_the_card_and_the_report(ridgeline: Any, tmp_path: Path) -> None:
    done = ridgeline(*ASKED, "--rate", "4", "--hit-rate", "40%", "--engine", "vllm", "-o", tmp_path)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80 + len(str(tmp_path))
    assert "What each lever buys" in done.out
    document = load(tmp_path / "levers.json")
    assert document["command"].startswith("ridgeline serve levers llama-3-8b --device H100 --count 1 --engine vllm")
    assert document["quantities"]["levers.prefix.alone"]["value"] > 0
    assert "levers.bars" in document["charts"]
    assert (tmp_path / "levers.html").read_text(encoding="utf-8").count("What each lever buys") >= 1


def test_a_traffic_file(ridgeline: Any, tmp_path: Path) -> None:
    file = tmp_path / "traffic.toml"
    file.write_text('input = "2k"\noutput = 300\nhit_rate = 0.1\nachievable_hit_rate = 0.7\nweights = "fp8"\n')
    done = ridgeline("serve", "levers", "llama-3-8b", "--device", "H100", "--spec", file, "--json", "-o",
                     tmp_path / "case.json")  # fmt: skip
    assert done.code == 0
    assert {finding["code"]: finding["verdict"] for finding in done.json["findings"]}["S404"] == "warn"
    rows = {row[0]: row[1] for row in done.json["tables"]["levers.ledger"]["rows"]}
    assert rows["8-bit weights"] == "in use"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--hit-rate", "1.2"), "share from 0 to 1"),
        (("--hit-rate", "nan"), "share"),
        (("--rate", "-1"), "rate"),
        (("--rate", "0"), "requests a second above 0"),
        (("--rate", "1e30"), "requests a second above 0"),
        (("--answer", "0"), "output"),
        (("--device", "H1000"), "known accelerator"),
    ],
)
def test_refusals(ridgeline: Any, more: tuple[str, str], said: str) -> None:
    done = ridgeline(*ASKED, *more)
    assert done.code == 2
    assert said in done.err


def test_a_long_prompt_is_no_shorter_than_the_mean(ridgeline: Any, tmp_path: Any) -> None:
    (tmp_path / "traffic.toml").write_text('input = "4k"\noutput = 300\ninput_p95 = "1k"\n')
    done = ridgeline("serve", "levers", "llama-3-8b", "--device", "H100", "--spec", tmp_path / "traffic.toml")
    assert done.code == 2
    assert "Expected at least the mean of 4,096 tokens, got 1024, at input_p95" in done.err


def test_traffic_beyond_the_model_fails(ridgeline: Any, tmp_path: Any) -> None:
    done = ridgeline("serve", "levers", "llama-3-8b", "--device", "H100", "--input", "8k", "--answer", "300",
                     "--json", "-o", tmp_path / "case.json")  # fmt: skip
    assert done.code == 1
    assert {finding["code"]: finding["verdict"] for finding in done.json["findings"]}["S405"] == "fail"


def test_what_does_not_fit_names_the_limit(ridgeline: Any) -> None:
    done = ridgeline("serve", "levers", "llama-3-70b", "--device", "H100", "--input", "2k", "--answer", "300")
    assert done.code == 1
    assert "binding limit" in done.err
