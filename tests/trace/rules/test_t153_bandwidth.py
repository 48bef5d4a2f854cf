"""T153: a link that is too slow."""

from typing import Any

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.core.specs import build
from ridgeline.trace.context import RunContext, RunFile, context_of


def context(**tables: Any) -> RunContext:
    return context_of(build(RunFile, tables))


H100 = context(machine={"chips": "2xH100"})
SLOW = Scene(comm=[(9_000_000, 900_000, {"numel": 8 << 20})], launch=70)  # 33.6 MB in 0.9 ms: 37 GB/s


def test_a_slow_wire_fails() -> None:
    found = finding(job(SLOW, SLOW, context=H100), "T153")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(900e-6)
    assert "bus 37.3 GB/s" in found.sentence
    assert "the link has 450 GB/s" in found.sentence


def test_without_a_device_it_would_fit_under_compute() -> None:
    assert str(finding(job(SLOW, SLOW), "T153").verdict) == "pass"


def test_a_fast_wire_passes() -> None:
    fast = Scene(comm=[(9_000_000, 900_000, {"numel": 80 << 20})], launch=70)
    assert str(finding(job(fast, fast, context=H100), "T153").verdict) == "pass"
