"""T156: groups of a node's size that leave the node."""

from typing import Any

import pytest
from tests.trace.runs import finding
from tests.trace.scenes import Scene, job

from ridgeline.core.specs import build
from ridgeline.trace.context import RunContext, RunFile, context_of


def context(**tables: Any) -> RunContext:
    return context_of(build(RunFile, tables))


H100 = context(machine={"chips": "16xH100"})


def scene(numel: int, size: int = 2, ranks: list[int] | None = None) -> Scene:
    how: dict[str, Any] = {"numel": numel, "size": size}
    if ranks is not None:
        how["ranks"] = ranks
    return Scene(comm=[(9_000_000, 900_000, how)], launch=70)


@pytest.mark.parametrize(
    ("numel", "size", "ranks", "verdict"),
    [
        (8 << 20, 2, None, "fail"),  # 37 GB/s inside a node of 450 GB/s links
        (80 << 20, 2, None, "pass"),  # 373 GB/s
        (80 << 20, 2, [7, 8], "fail"),  # fast, but on two nodes
        (80 << 20, 2, [6, 7], "pass"),
        (8 << 20, 16, None, "pass"),  # does not fit into a node
        (1 << 10, 2, None, "pass"),  # too small to judge
    ],
)
def test_groups(numel: int, size: int, ranks: list[int] | None, verdict: str) -> None:
    made = scene(numel, size, ranks)
    found = finding(job(made, made, context=H100), "T156")
    assert str(found.verdict) == verdict
    assert (found.cost.seconds is not None) == (verdict == "fail")


def test_unknown_without_a_device() -> None:
    assert str(finding(job(scene(8 << 20), scene(8 << 20)), "T156").verdict) == "unknown"
