"""Facts: where the step time comes from."""

from tests.trace.runs import context, number
from tests.trace.traces import steady_rank

from ridgeline.trace.facts import TraceFacts


def test_without_anything_there_is_no_step() -> None:
    assert TraceFacts().step is None
    assert TraceFacts().traced_step is None


def test_the_run_file_wins_over_the_trace() -> None:
    assert number(TraceFacts(context(), l0=(steady_rank(12),)).step) == 15.0


def test_the_slowest_rank_sets_the_traced_step() -> None:
    found = TraceFacts(context(without=("observed",)), l0=(steady_rank(12), steady_rank(14, label="rank1")))
    assert number(found.step) == 14.0
    assert found.step is not None
    assert found.step.source is not None
    assert "rank1" in found.step.source.where
