"""T157: gathers behind a custom call."""

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job


def scene(kernel: str, collective: str = "all_gather", stream: int = 7) -> Scene:
    how = {"collective": collective, "stream": stream}
    return Scene(comm=[(9_000_500, 890_000, how)], launch=70, kernel=kernel)


def test_a_gather_behind_a_custom_call_fails() -> None:
    found = finding(job(scene("custom-call.7")), "T157")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == pytest.approx(890e-6)
    assert "behind custom-call.7" in found.sentence


def test_braces_in_a_kernel_name_are_no_quantities() -> None:
    found = finding(job(scene("custom-call::{lambda(int)#1}::run")), "T157")
    assert "custom-call::(lambda(int)#1)::run" in found.sentence


@pytest.mark.parametrize(
    "other",
    [
        scene("gemm"),
        scene("custom-call.7", "all_reduce"),
        scene("custom-call.7", stream=20),
        Scene(kernel="custom-call.7"),
    ],
    ids=["plain kernel", "reduces what was computed", "another stream", "no collective"],
)
def test_not_planted(other: Scene) -> None:
    assert str(finding(job(other), "T157").verdict) == "pass"
