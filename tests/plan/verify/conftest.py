"""Compiled twins, once a test run: workers of pytest-xdist share what the first of them compiled."""

import fcntl
import json
from pathlib import Path

import pytest
from tests.plan.verify.combos import COMBOS

from ridgeline.plan.verify.compare import Comparison, compare
from ridgeline.plan.verify.compiled import Program, compile_twins


def _shared(folder: Path) -> list[Program]:
    """Compile, or wait for the worker that does and read what it wrote."""
    twins = [combo.twin() for combo in COMBOS.values()]
    kept = folder / "compiled-twins.json"
    with (folder / "compiled-twins.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            found = compile_twins(twins)
            kept.write_text(json.dumps([(p.hlo, dict(p.memory), p.cost_flops) for p in found]), encoding="utf-8")
    return [Program(twin, *item) for twin, item in zip(twins, json.loads(kept.read_text("utf-8")), strict=True)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, Program]:
    """Every combination's program, from one child process."""
    pytest.importorskip("jax", reason="needs JAX (the `lab` extra)")
    base = tmp_path_factory.getbasetemp()
    return dict(zip(COMBOS, _shared(base if worker_id == "master" else base.parent), strict=True))


@pytest.fixture(scope="session")
def comparisons(programs: dict[str, Program]) -> dict[str, Comparison]:
    """Every combination compared."""
    return {name: compare(program) for name, program in programs.items()}
