"""T154: a transfer that compute could hide."""

from typing import Any

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.core.specs import build
from ridgeline.trace.context import RunContext, RunFile, context_of


def context(**tables: Any) -> RunContext:
    return context_of(build(RunFile, tables))


FAST = Scene(comm=[(9_000_000, 900_000, {"numel": 80 << 20})], launch=70)
H100 = context(machine={"chips": "2xH100"})


@pytest.mark.parametrize("of", [H100, context()])
def test_a_fast_wire_that_is_exposed_fails(of: RunContext) -> None:
    found = finding(job(FAST, FAST, context=of), "T154")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(900e-6)


def test_a_hidden_transfer_passes() -> None:
    hidden = Scene(comm=[(2_000_000, 900_000, {"numel": 80 << 20})], launch=70, gap=False)
    assert str(finding(job(hidden, hidden), "T154").verdict) == "pass"


def test_waiting_is_not_scheduling() -> None:
    late = Scene(comm=[(9_800_000, 100_000, {"numel": 80 << 20})], launch=70)
    assert str(finding(job(FAST, late), "T154").verdict) == "pass"
