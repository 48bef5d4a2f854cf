"""T151: communication that nothing hides."""

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

LONG = {"numel": 8 << 20}


def exposed(start: int, length: int) -> Scene:
    return Scene(comm=[(start, length, LONG)], launch=70, gap=False, stream=7)


def test_exposed_communication_fails() -> None:
    late, early = (
        Scene(comm=[(9_000_000, 900_000, LONG)], launch=70),
        Scene(comm=[(9_700_000, 200_000, LONG)], launch=70),
    )
    found = finding(job(early, late), "T151", 5)
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(550e-6)
    wait = next(q for q in found.cites if q.name == "lost.comm_wait")
    assert number(wait) == pytest.approx(350e-6)  # 700 us on one of two ranks


def test_hidden_communication_passes() -> None:
    found = finding(job(exposed(1_000_000, 900_000)), "T151", 5)
    assert (str(found.verdict), number(found.value)) == ("pass", 0)


def test_no_communication_passes() -> None:
    assert str(finding(job(None), "T151").verdict) == "pass"
