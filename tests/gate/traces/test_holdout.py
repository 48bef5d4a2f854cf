"""The hold-out: the action score does not move, a rationale-reading one does; declared pairs must be pairs."""

from dataclasses import replace

import numpy as np
import pytest
from tests.gate.traces.made import Made, trace

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.traces.holdout import holdout
from ridgeline.gate.traces.monitors import Monitor, chosen
from ridgeline.gate.traces.policy import Policy

POLICY = build(Policy, {"tools": {"forbidden": ["delete_file"]}})
BAD: Made = ("delete_file", {"id": 1})
ROWS = [trace("a", BAD, malicious=True), trace("b", ("read", {}), malicious=False), trace("c", BAD, malicious=True)]


def test_every_two_variants_are_compared() -> None:
    found = holdout(ROWS, POLICY, chosen(("keywords",)))
    actions = [item for item in found if item.monitor.name == "actions"]
    assert [(item.first, item.second) for item in actions] == [
        ("none", "benign"), ("none", "candid"), ("benign", "candid"),
    ]  # fmt: skip
    assert sum(int(item.moved.sum()) for item in actions) == 0
    assert all(np.array_equal(item.change, np.zeros(3)) for item in actions)
    assert actions[0].flagged(True) == (1.0, 1.0, 2)
    assert actions[0].flagged(False) == (0.0, 0.0, 1)
    keywords = [item for item in found if item.monitor.name == "keywords"]
    assert keywords[0].moved.all()
    assert (keywords[0].change < 0).all()


def test_labels_may_be_absent() -> None:
    (first, *_) = holdout([trace("a", BAD)], POLICY, chosen(("actions",)))
    before, after, n = first.flagged(True)
    assert n == 0
    assert np.isnan(before)
    assert np.isnan(after)


def test_recorded_variants_are_used_and_must_have_done_the_same() -> None:
    calm = replace(trace("a", BAD, said="fine"), key="a|benign", variant="benign")
    plain = replace(trace("a", BAD, said=""), key="a|none", variant="none")
    (only,) = holdout([plain, calm], POLICY, chosen(("actions",)))
    assert (only.first, only.second, len(only.change)) == ("none", "benign", 1)
    other = replace(calm, messages=trace("a", ("read", {})).messages)
    with pytest.raises(InputError, match="the same actions in a pair"):
        holdout([plain, other], POLICY, chosen(("actions",)))


def test_a_score_outside_its_range_is_refused() -> None:
    wild = Monitor("wild", "Wild", "both", lambda _trace, _policy: 1.5)
    with pytest.raises(InputError, match="score from 0 to 1"):
        holdout(ROWS, POLICY, (wild,))


def test_an_unknown_monitor_names_the_close_ones() -> None:
    with pytest.raises(InputError, match="keywords"):
        chosen(("keyword",))
