"""T108: device work without a launch call."""

from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job
from tests.trace.synthetic import Table

from ridgeline.trace.events import Run
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import run_buckets


def test_half_of_the_work_is_unlinked() -> None:
    found = finding(job(Scene(launch=None)), "T108")
    assert (str(found.verdict), number(found.value)) == ("warn", 50)


def test_all_linked_passes() -> None:
    assert str(finding(job(None), "T108").verdict) == "pass"


def test_nothing_linked_is_unknown() -> None:
    made = Table()
    made.work("gemm", 0, 100)
    run = Run((made.build(),), (0,))
    found = finding(TraceFacts(run=run, l0=run_buckets(run)), "T108")
    assert (str(found.verdict), "no device event has a launch call" in found.sentence) == ("unknown", True)


def test_the_linked_window_cannot_say() -> None:
    of = job(Scene(launch=None))
    assert of.run is not None
    assert str(finding(TraceFacts(run=of.run, l0=run_buckets(of.run, window="linked")), "T108").verdict) == "unknown"
