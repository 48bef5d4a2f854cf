"""The timeline covers the step, stays below its limit, and says what took most of each slice."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.trace.kineto_job import write_job
from tests.trace.traces import steady_rank

from ridgeline.core.charts import ACTIVITIES
from ridgeline.trace.analyse import analyse
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.timeline import Timeline, activities, shown_ranks, timeline, usual_step


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> TraceFacts:
    """Two ranks, the second late."""
    return analyse(write_job(tmp_path_factory.mktemp("job")))


def made(facts: TraceFacts, limit: int = 400) -> Timeline:
    """The timeline of the usual step."""
    step = usual_step(facts.l0)
    assert step is not None
    assert facts.run is not None
    found = timeline(facts.run, facts.l0, step, limit=limit)
    assert found is not None
    return found


def test_lanes_are_covered_without_overlap(facts: TraceFacts) -> None:
    found = made(facts)
    for lane in ("rank0", "rank1"):
        mine = [span for span in found.spans if span.lane == lane]
        assert [a.end for a in mine[:-1]] == [b.start for b in mine[1:]]
        assert all(a.part != b.part for a, b in pairwise(mine))
        assert mine[-1].end <= found.length


def test_parts_take_as_long_as_in_the_buckets(facts: TraceFacts) -> None:
    found = made(facts)
    spans = [span for span in found.spans if span.lane == "rank0"]
    compute = sum(span.end - span.start for span in spans if span.part == "compute")
    assert compute == pytest.approx(7_000_000, abs=2 * found.slice_ns)
    assert {span.name for span in spans if span.part == "compute"} == {"sm90_gemm_bf16"}
    assert {span.name for span in spans if span.part == "communication"} == {"ncclDevKernel_AllReduce_Sum_bf16"}
    assert {span.name for span in spans if span.part in ("host", "idle")} <= {""}


@pytest.mark.parametrize("limit", [400, 6])
def test_never_more_spans_than_asked_for(facts: TraceFacts, limit: int) -> None:
    assert len(made(facts, limit).spans) <= limit


def test_activities_are_disjoint_and_cover_the_trace(facts: TraceFacts) -> None:
    assert facts.run is not None
    found = activities(facts.run.ranks[0])
    assert tuple(found) == ACTIVITIES
    low = min(spans.extent[0] for spans in found.values() if spans.total)
    high = max(spans.extent[1] for spans in found.values())
    assert sum(spans.total for spans in found.values()) == high - low


def test_a_step_that_no_rank_has(facts: TraceFacts) -> None:
    assert facts.run is not None
    assert timeline(facts.run, facts.l0, 99) is None
    steps = facts.l0[0].steps
    empty = [replace(rank, steps=replace(rank.steps, end=rank.steps.start)) for rank in facts.l0]
    assert timeline(facts.run, empty, int(steps.number[2])) is None
    assert usual_step(()) is None


def test_of_many_ranks_the_odd_ones_are_shown() -> None:
    ranks = [steady_rank(1.0, label=f"rank{i}", sync_gap=0.5 if i == 77 else 0.1) for i in range(100)]
    shown = shown_ranks(ranks)
    assert len(shown) == 16
    assert 77 in shown
    assert shown == sorted(shown)


@pytest.mark.data
def test_a_real_step(data_dir: Path) -> None:
    found = made(analyse(data_dir / "trace" / "gpt_8xh100"))
    assert 100 < len(found.spans) <= 400
    assert {span.lane for span in found.spans} == {f"rank{i}" for i in range(8)}
    host = {lane: sum(s.end - s.start for s in found.spans if s.lane == lane and s.part == "host")
            for lane in ("rank1", "rank7")}  # fmt: skip
    assert host["rank1"] > 3_000_000 > host["rank7"]
