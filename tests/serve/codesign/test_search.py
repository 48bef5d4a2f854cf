"""The walk against trying every candidate, and the front against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.codesign.asked import LIMITS, limits, need, turn

from ridgeline.serve.codesign.evaluate import Configuration
from ridgeline.serve.codesign.facts import Designed, codesign
from ridgeline.serve.codesign.measured import Bench
from ridgeline.serve.codesign.search import front, pareto, thinned


def tried(facts: Designed) -> list[Configuration]:
    """Every candidate that keeps the limits as measured."""
    bench = Bench(facts.need)
    every = [Configuration(group, i) for group in facts.space.groups for i in range(group.frame.size)]
    return [one for one in every if one.timed <= 1 and bench.measure(one).meets]


@pytest.mark.parametrize("case", ["turn", "limits"])
def test_the_walk_finds_the_least_loss_of_all(case: str) -> None:
    axes = {"widest": 5120, "aspects": [128], "weights": ["fp8"]}
    facts = codesign(need(axes) if case == "turn" else need(axes | {"batches": [1, 16]}, **LIMITS, ceiling=3.0))
    assert facts.winner is not None
    least = min(float(one.group.loss[one.index]) for one in tried(facts))
    assert least <= float(facts.loss.value) <= least + 2 * 0.001  # a tie, and what the heads add to the size
    assert facts.walk.measured is not None
    assert facts.walk.measured.meets


def test_the_roofline_is_a_lower_bound() -> None:
    for facts in (turn(), limits()):
        seen = facts.walk.measured
        assert seen is not None
        for name, share in seen.stress.items():
            assert seen.configuration.stress[name] <= share, name


def test_ties_go_to_wider_types_and_more_heads() -> None:
    facts = codesign(need({"widest": 3072, "aspects": [128], "mixtures": [], "attention": ["gqa"]}, turn="5s"))
    assert facts.winner is not None
    assert (facts.winner.types, facts.winner.sides["kv_heads"]) == ("bf16/bf16", 8)


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), max_size=40))
def test_pareto_is_its_definition(rows: list[tuple[int, int, int]]) -> None:
    points = np.array(rows, dtype=np.float64).reshape(-1, 3)
    kept = pareto(points)
    values = {tuple(points[row]) for row in kept}
    assert len(values) == len(kept)
    for number, row in enumerate(points):
        beaten = np.any(np.all(points <= row, axis=1) & np.any(points < row, axis=1))
        assert (tuple(row) in values) == (not beaten), number
    assert [points[row][0] for row in kept] == sorted(points[row][0] for row in kept)


def test_the_front_is_not_beaten() -> None:
    space = limits().space
    members = front(space)
    assert all(one.timed <= 1 and one.stress["memory"] <= 1 for one in members)
    rows = np.array([[float(one.figure(name).value) for name in ("loss", "tpot", "price")] for one in members])
    assert len(pareto(rows)) == len(rows) > 3


def test_thinned_keeps_both_ends() -> None:
    assert thinned(range(100), 5) == [0, 25, 50, 74, 99]
    assert thinned([1, 2], 5) == [1, 2]
