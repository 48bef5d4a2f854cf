"""T158: small collectives."""

from typing import Any

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.core.specs import build
from ridgeline.trace.context import RunContext, RunFile, context_of


def context(**tables: Any) -> RunContext:
    return context_of(build(RunFile, tables))


SMALL = Scene(comm=[(9_000_000 + i * 40_000, 20_000, {"numel": 16}) for i in range(22)], launch=70)


def test_many_small_calls_fail() -> None:
    found = finding(job(SMALL, SMALL), "T158")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(440e-6)


@pytest.mark.parametrize("of", [context(), context(machine={"chips": "2xH100"})])
def test_a_large_call_is_not_latency(of: RunContext) -> None:
    large = Scene(comm=[(9_000_000, 900_000, {"numel": 8 << 20})], launch=70)
    assert str(finding(job(large, large, context=of), "T158").verdict) == "pass"
