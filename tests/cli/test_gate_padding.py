"""``ridgeline gate padding``."""

import json
from pathlib import Path

import pytest

from ridgeline.cli.main import run


def test_example_end_to_end(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, junit = repo / "examples" / "gates" / "padding", tmp_path / "junit.xml"
    words = ["gate", "padding", str(here / "lengths.csv"), "--max-length", "4k", "--model", "llama-3-8b",
             "--column", "slice=kind", "--junit", str(junit), "-o", str(tmp_path), "--json"]  # fmt: skip
    assert run(words) == 1
    case = json.loads(capsys.readouterr().out)
    assert case["decision"].startswith("NO-SHIP: utilisation is")
    assert 0.2 < case["quantities"]["gate.padding.utilisation"]["value"] / 100 < 0.35
    assert "no-ship" in junit.read_text()
    assert (tmp_path / "padding.html").exists()


def test_tolerated_waste_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text("\n".join(map(str, [900, 800, 1000, 950] * 25)))
    words = ["gate", "padding", str(file), "--max-length", "1024", "-o", str(tmp_path / "r")]
    assert run([*words, "--margin", "20%"]) == 0
    assert run([*words, "--margin", "5%"]) == 1
    assert run([*words[:3], "-o", str(tmp_path / "r")]) == 2
    assert "--max-length" in capsys.readouterr().err
