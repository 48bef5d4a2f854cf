"""``gate cascade``: exit codes, a registration, and bad input in one sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgeline.core.case import load

Ridgeline = Any


def table(path: Path, n: int = 8000, tail: bool = False) -> Path:
    rng = np.random.default_rng(3)
    rows = []
    for i in range(n):
        name, hard = "abcde"[i % 5], rng.random() < 0.4
        right = 0.3 if hard else 0.995
        if tail and name == "e":
            hard, right = False, 0.8
        rows.append(f"q{i},{name},{int(rng.random() < right)},1,{0.2 if hard else 0.8}")
    path.write_text("id,slice,weak,strong,confidence\n" + "\n".join(rows) + "\n")
    return path


def words(path: Path, *more: str) -> tuple[str, ...]:
    return ("gate", "cascade", "--weak", f"{path}#weak", "--strong", f"{path}#strong", "--slices", "slice", "--margin",
            "6%", "--cost", "1:10", "--router", "confidence", *more)  # fmt: skip


@pytest.mark.parametrize(("n", "tail", "code"), [(8000, False, 0), (8000, True, 1), (300, False, 4)])
def test_exit_codes(ridgeline: Ridgeline, tmp_path: Path, n: int, tail: bool, code: int) -> None:
    done = ridgeline(*words(table(tmp_path / "r.csv", n, tail)), "-o", tmp_path / "out")
    assert done.code == code, done.out + done.err
    document = load(tmp_path / "out" / "cascade.json")
    assert document["decision"].startswith({0: "SHIP", 1: "NO-SHIP", 4: "INC"}[code])
    assert "gate.router.escalated" in document["quantities"]


def test_the_registration_holds_the_router(ridgeline: Ridgeline, tmp_path: Path) -> None:
    path, spec = table(tmp_path / "r.csv"), tmp_path / "spec.toml"
    spec.write_text(
        'gate = "cascade"\nmargin = "6%"\nslices = "slice"\n[columns]\nrouter = "confidence"\ncost = "1:10"\n'
    )
    done = ridgeline("gate", "cascade", "--weak", f"{path}#weak", "--strong", f"{path}#strong", "--registration", spec,
                     "--json", "-o", tmp_path / "out")  # fmt: skip
    assert done.code == 0
    assert "router: confidence" in json.loads(done.out)["title"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--router", "sliced"), "slice"),
        (("--cost", "1"), "weak and of the strong"),
        (("--column", "threshold=0.5"), "chosen on"),
        (("--slices", "slic"), "slic"),
    ],
)
def test_bad_input_is_one_sentence(ridgeline: Ridgeline, tmp_path: Path, more: tuple[str, ...], said: str) -> None:
    done = ridgeline(*words(table(tmp_path / "r.csv", 100), *more), "-o", tmp_path / "out")
    assert done.code == 2, done.out
    assert said in done.err
    assert done.err.startswith("error: Expected ")


def test_a_threshold_from_the_same_file_is_refused(ridgeline: Ridgeline, tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", 100)
    done = ridgeline(*words(path, "--column", "threshold=0.5", "--column", f"chosen_on={path}"), "-o", tmp_path / "out")
    assert done.code == 2
    assert "a threshold from other data" in done.err
