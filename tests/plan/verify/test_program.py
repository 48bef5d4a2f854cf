"""The twin is a right program: under every plan it computes one model's loss and gradients."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLANS: list[dict[str, object]] = [
    {"micro_batch": 4},
    {"dp": 4, "zero": 3, "shard": 2, "recompute": "selective"},
    {"dp": 2, "zero": 1, "tp": 2},
    {"dp": 2, "zero": 3, "tp": 2, "sequence_parallel": 1, "recompute": "full"},
]


@pytest.mark.slow
def test_every_plan_computes_the_same_gradients(repo: Path) -> None:
    pytest.importorskip("jax", reason="needs JAX (the `lab` extra)")
    flags = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
    done = subprocess.run(
        [sys.executable, str(repo / "tests" / "plan" / "verify" / "run_twins.py")],
        input=json.dumps(PLANS),
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert [row["loss"] for row in found] == pytest.approx([found[0]["loss"]] * len(PLANS), rel=1e-5)
    assert max(row["off"] for row in found) < 1e-4
    assert 4 < found[0]["loss"] < 12
