"""The named drill: the tool alone rebuilds section H of the worked numbers."""

from pathlib import Path

import pytest

from ridgeline.core.finding import Verdict, run_rules
from ridgeline.core.plugins import rules
from ridgeline.trace.analyse import analyse
from ridgeline.trace.bridge import Bridge
from ridgeline.trace.causes import bridge_of
from ridgeline.trace.context import read_context
from ridgeline.trace.drills.attempt import SOURCES, causes_of
from ridgeline.trace.drills.grade import grade, read_truth
from ridgeline.trace.drills.incident import write_incident
from ridgeline.trace.facts import TraceFacts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its files."""
    return write_incident(tmp_path_factory.mktemp("incident") / "drill")


@pytest.fixture(scope="module")
def facts(folder: Path) -> TraceFacts:
    """What the tool reads in them."""
    return analyse([folder / name for name in SOURCES], read_context(folder))


@pytest.fixture(scope="module")
def bars(facts: TraceFacts) -> Bridge:
    """The bridge from the findings that fired."""
    found = run_rules(rules().values(), facts, family="T")
    fired = [f for f in found if f.verdict in (Verdict.WARN, Verdict.FAIL) and f.code[1] in "1234"]
    return bridge_of(facts, fired)


@pytest.mark.parametrize(
    ("buckets", "seconds"),
    [
        (("compute",), 9.0),
        (("exposed_comm",), 3.6),
        (("input_gap", "sync_gap", "gc_gap"), 1.5 - 1.037),
        (("launch_gap", "framework_gap", "queue_gap"), 0.9),
    ],
)
def test_the_buckets(facts: TraceFacts, buckets: tuple[str, ...], seconds: float) -> None:
    for rank in facts.l0:
        assert sum(rank.mean_s(name) for name in buckets) == pytest.approx(seconds, abs=0.005)


def test_every_cause_is_found(folder: Path, facts: TraceFacts) -> None:
    found = grade(read_truth(folder), causes_of(facts))
    assert found.right, found


def test_the_bridge(bars: Bridge) -> None:
    """The causes that belong to one fix together, in the order of the worked numbers."""
    own = {bar.cause.code: bar.item.own_s for bar in bars.bars}
    assert bars.ends.ideal is not None
    ideal, step, mfu = float(bars.ends.ideal.base), float(bars.ends.step.base), []
    for fix in ((), ("T155", "T205"), ("T206", "T154"), ("T301",)):
        step -= sum(own[code] for code in fix)
        mfu.append(100 * ideal / step)
    assert mfu == pytest.approx([25.0, 33.0, 40.1, 45.0], abs=0.1)
    assert bars.reached is not None
    assert float(bars.reached.value) == pytest.approx(45.0, abs=0.1)


def test_the_corrected_target(bars: Bridge) -> None:
    assert bars.ends.corrected is not None
    assert float(bars.ends.corrected.value) == pytest.approx(47, abs=0.5)
    assert bars.unexplained_share is not None
    assert abs(float(bars.unexplained_share.value)) <= 3
