"""``ridgeline plan export`` and ``ridgeline plan import``."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.plan.formats.jobs import job

from ridgeline.plan.job import dumps, read_job

MADE = job(tp=8, pp=4, dp=16, zero=2, sequence_parallel=1, recompute="selective")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A job file."""
    path = tmp_path / "job.toml"
    path.write_text(dumps(MADE), encoding="utf-8")
    return path


def test_there_and_back(ridgeline: Any, file: Path, tmp_path: Path) -> None:
    target, again = tmp_path / "titan.toml", tmp_path / "again.toml"
    done = ridgeline("plan export", file, "--to", "torchtitan", "-o", target)
    assert (done.code, done.out) == (0, "")
    assert "not in the file: model" in done.err
    assert tomllib.loads(target.read_text("utf-8"))["parallelism"]["tensor_parallel_degree"] == 8
    done = ridgeline("plan import", target, "--cluster", "512xH100", "-o", again)
    assert done.code == 0
    assert "512 chips" in done.out
    assert read_job(again) == MADE.without(["model"])


def test_stdout_is_the_file(ridgeline: Any, file: Path) -> None:
    done = ridgeline("plan", "export", file, "--to", "megatron")
    assert done.code == 0
    assert "--tensor-model-parallel-size 8\n" in done.out
    assert ridgeline("plan", "export", file, "--to", "megatron", "--launch", "slurm").out.startswith("#!/bin/bash\n")


def test_json(ridgeline: Any, file: Path, tmp_path: Path) -> None:
    done = ridgeline("plan", "export", file, "--to", "nemo", "--json").json
    assert set(done) == {"format", "checked", "text", "unsaid"}
    other = tmp_path / "nemo.yaml"
    other.write_text(done["text"], encoding="utf-8")
    read = ridgeline("plan", "import", other, "--cluster", "512xH100", "-o", tmp_path / "new.toml", "--json").json
    assert read["plan"] == MADE.plan.columns
    assert read["lost"] == []


def test_a_refusal_ends_with_one(ridgeline: Any, file: Path) -> None:
    done = ridgeline("plan", "export", file, "--to", "deepspeed")
    assert (done.code, done.out) == (1, "")
    assert "plan.pp 4" in done.err
    assert "nearest miss: 1" in done.err


def test_bad_input(ridgeline: Any, file: Path, tmp_path: Path) -> None:
    done = ridgeline("plan", "export", file, "--to", "megatorn")
    assert done.code == 2
    assert "did you mean megatron" in done.err
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"a": 1}), encoding="utf-8")
    assert ridgeline("plan", "import", other, "-o", tmp_path / "x.toml").code == 2
    assert not (tmp_path / "x.toml").exists()


def test_a_job_that_is_there_is_kept(ridgeline: Any, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "titan.toml"
    ridgeline("plan", "export", file, "--to", "torchtitan", "-o", target)
    done = ridgeline("plan", "import", target, "-o", file)
    assert done.code == 2
    assert "name another with -o" in done.err
    assert read_job(file).model is not None, "the file was not touched"


def test_a_plan_that_cannot_run_is_not_exported(ridgeline: Any, file: Path) -> None:
    file.write_text(dumps(MADE).replace("heads = 64", "heads = 36").replace("kv_heads = 8", "kv_heads = 4"), "utf-8")
    done = ridgeline("plan", "export", file, "--to", "megatron")
    assert done.code == 1
    assert "heads over tp" in done.err
