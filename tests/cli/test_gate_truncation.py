"""``ridgeline gate truncation``."""

import json
from pathlib import Path

import pytest

from ridgeline.cli.main import run


def test_example_end_to_end(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = repo / "examples" / "gates" / "truncation"
    words = ["gate", "truncation", str(here / "exact.csv"), "--approximate", str(here / "linear.csv"),
             "--model", "llama-3-8b", "-o", str(tmp_path), "--json"]  # fmt: skip
    assert run(words) == 0
    case = json.loads(capsys.readouterr().out)
    assert case["decision"].startswith("SHIP: AUC at 256 events changes by")
    assert "The approximation is not worth it" in case["because"]
    assert case["quantities"]["gate.truncation.flattens_at"]["value"] == 256
    assert any("at most 16 events" in item for item in case["lost"])


def test_exit_codes(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(repo / "examples" / "gates" / "truncation" / "exact.csv")
    place = ["-o", str(tmp_path)]
    assert run(["gate", "truncation", file, "--length", "64", *place]) == 1
    assert run(["gate", "truncation", file, "--length", "256", "--margin", "0.01%", *place]) == 4
    assert run(["gate", "truncation", file, "--length", "100", *place]) == 2
    assert "Expected a length below the longest" in capsys.readouterr().err
    assert run(["gate", "truncation", file, "--metric", "ndcg", *place]) == 2
