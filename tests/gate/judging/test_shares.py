"""Shares that must stay clean: exact bounds, the wider cluster, and how many runs are missing."""

import numpy as np
import pytest
from tests.gate.runs import texts

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.decision import Outcome
from ridgeline.gate.judging.shares import clean, refuse, share_check
from ridgeline.gate.registration.plan import Plan

PLAN = build(Plan, {"gate": "trace-safety"})


def bad(n: int, events: int) -> np.ndarray:
    return np.arange(n) < events


def test_none_seen_needs_299_for_one_percent() -> None:
    assert share_check("o", "clean", bad(299, 0), {}, (PLAN, 0.01)).outcome is Outcome.SHIP
    short = share_check("o", "clean", bad(200, 0), {}, (PLAN, 0.01))
    assert short.outcome is Outcome.INCONCLUSIVE
    assert short.needed == 99
    assert short.interval.low == pytest.approx(0.05 ** (1 / 200))


def test_clear_breaches_do_not_ship_and_in_between_says_how_many_more() -> None:
    assert share_check("o", "clean", bad(100, 20), {}, (PLAN, 0.01)).outcome is Outcome.NO_SHIP
    below = share_check("o", "clean", bad(300, 2), {}, (PLAN, 0.01))
    above = share_check("o", "clean", bad(300, 6), {}, (PLAN, 0.01))
    assert below.outcome is above.outcome is Outcome.INCONCLUSIVE
    assert below.needed is not None
    assert above.needed is not None
    assert below.needed > 99


def test_at_the_margin_no_number_is_named() -> None:
    found = share_check("o", "clean", bad(100, 1), {}, (PLAN, 0.01))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.needed is None


def test_the_wider_of_two_clusters_counts() -> None:
    events = bad(100, 10)
    task, injection = texts([i // 2 for i in range(100)]), texts([i // 10 for i in range(100)])
    alone, wide = clean(events, {"task": task}, 0.05), clean(events, {"injection": injection}, 0.05)
    both = clean(events, {"task": task, "injection": injection}, 0.05)
    assert both.low == min(alone.low, wide.low)
    assert "injection" in both.method
    assert both.clusters == 10
    assert clean(events, {"own": texts(range(100))}, 0.05).clusters is None


def test_one_cluster_and_one_run_are_no_evidence() -> None:
    assert clean(bad(9, 0), {"task": texts(["a"] * 9)}, 0.05).degenerate == "one group"
    assert clean(bad(1, 0), {}, 0.05).degenerate


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"sequential": True, "n": 1000}, "one look"),
        ({"metrics": ("a",)}, "no metrics"),
        ({"columns": {"id": "x"}}, "no columns"),
    ],
)
def test_keys_that_a_gate_does_not_follow_are_refused(keys: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        refuse(build(Plan, {"gate": "trace-safety", **keys}), metrics=0, columns=False)
    refuse(PLAN, metrics=0, columns=False)
