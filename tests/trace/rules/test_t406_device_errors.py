"""T406: errors that devices counted."""

import numpy as np
import pytest
from tests.trace.logs import sampled, samples
from tests.trace.runs import context, facts, finding, number

from ridgeline.trace.levels.l4 import rank_spread


@pytest.mark.parametrize(
    ("name", "verdict"), [("dbe_errors", "fail"), ("nvlink_replay_errors", "warn"), ("xid", "fail")]
)
def test_a_counter_that_grew(name: str, verdict: str) -> None:
    grown = np.repeat(np.arange(40.0), 4) * np.tile([0.0, 1.0, 0.0, 0.0], 40)
    column = np.where(grown > 0, 79.0, 0.0) if name == "xid" else grown
    found = finding(facts(context(), l4=rank_spread(samples=[sampled({name: column})])), "T406")
    assert str(found.verdict) == verdict
    assert number(found.value) == (1 if name == "xid" else 39)
    assert found.sentence.startswith("rank1's device")


def test_a_counter_that_stood_still_passes() -> None:
    found = finding(facts(context(), l4=rank_spread(samples=[samples(sbe_errors=[7, 7, 7, 7])])), "T406")
    assert str(found.verdict) == "pass"
