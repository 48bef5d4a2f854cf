"""Enumeration: every plan once, all of them divide the chips, and fixed columns stay."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.search_cases import dense, mixture

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.layouts.space import Space, divisors, plans
from ridgeline.plan.steps import cluster, layout
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.pipeline import SCHEDULES, Stages, simulate

BATCH = (64, 4096)


def every(space: Space, spec: ModelSpec | None = None, chips: str = "16xH100") -> Layout:
    return Layout.join(list(plans(spec or dense(), cluster.parse(chips), BATCH, space)))


def table(layouts: Layout) -> np.ndarray:
    return np.stack([getattr(layouts, f.name) for f in fields(layouts)], axis=1)


@given(total=st.integers(1, 5000))
def test_divisors(total: int) -> None:
    assert divisors(total) == [size for size in range(1, total + 1) if total % size == 0]


def test_no_plan_twice_and_all_on_all_chips() -> None:
    for spec in (dense(), mixture()):
        layouts = every(Space.whole(cluster.parse("16xH100")), spec)
        assert len(np.unique(table(layouts), axis=0)) == len(layouts)
        assert set(layouts.chips.tolist()) == {16}


def test_blocks_hold_the_same_plans() -> None:
    machine = cluster.parse("16xH100")
    small = Layout.join(list(plans(dense(), machine, BATCH, Space(), block=50)))
    assert np.array_equal(table(small), table(every(Space())))


def test_the_whole_space_contains_the_usual_one() -> None:
    whole = {tuple(row) for row in table(every(Space.whole(cluster.parse("16xH100")))).tolist()}
    usual = {tuple(row) for row in table(every(Space())).tolist()}
    assert usual < whole


def test_every_mesh_that_divides_is_tried() -> None:
    layouts = every(Space.whole(cluster.parse("16xH100")))
    found = {tuple(row) for row in np.stack([layouts.tp, layouts.cp, layouts.pp, layouts.dp], 1).tolist()}
    sizes = (1, 2, 4, 8, 16)
    expected = {(t, c, p, 16 // (t * c * p)) for t in sizes for c in sizes for p in sizes if 16 % (t * c * p) == 0}
    assert found == expected


def test_what_has_no_effect_is_not_tried_twice() -> None:
    layouts = every(Space.whole(cluster.parse("16xH100")))
    assert not np.any((layouts.dp * layouts.cp == 1) & (layouts.zero > 0))
    assert not np.any((layouts.tp == 1) & (layouts.sequence_parallel > 0))
    assert set(layouts.schedule[layouts.pp == 1].tolist()) == {SCHEDULES.index("1f1b")}
    assert not np.any((layouts.zero == 2) & (layouts.micro_batches(BATCH[0]) > 1))
    assert np.any(layouts.zero == 2)


def test_limits_of_the_usual_space() -> None:
    layouts = every(Space(), chips="64xH100")
    assert layouts.tp.max() == 8
    assert layouts.cp.max() == 1  # 4096 tokens stay on one rank
    assert layouts.micro_batch.max() <= 16
    assert np.all((layouts.chunks == 1) | (32 % (layouts.pp * layouts.chunks) == 0))


@settings(max_examples=20)
@given(tp=st.sampled_from([1, 2, 4]), pp=st.sampled_from([1, 2, 4]), recompute=st.sampled_from(["none", "full"]))
def test_fixed_columns_stay(tp: int, pp: int, recompute: str) -> None:
    layouts = every(Space(fixed={"tp": tp, "pp": pp, "recompute": recompute}))
    assert set(layouts.tp.tolist()) == {tp}
    assert set(layouts.pp.tolist()) == {pp}
    assert layouts.row(0)["recompute"] == recompute


def test_a_fixed_size_may_pass_the_usual_limit() -> None:
    assert set(every(Space(fixed={"tp": 16})).tp.tolist()) == {16}
    assert 2 in every(Space(fixed={"cp": 2})).cp


@pytest.mark.parametrize(
    "fixed",
    [
        {"pp": 2, "schedule": "zb-h1"},
        {"pp": 2, "schedule": "gpipe"},
        {"pp": 2, "chunks": 3},
        {"micro_batch": 32, "dp": 2},
        {"zero": 3, "shard": 4, "tp": 1, "dp": 16},
        {"cp": 4},
    ],
)
def test_a_fixed_choice_beyond_the_usual_space_is_tried(fixed: dict[str, int | str]) -> None:
    layouts = every(Space(fixed=fixed))
    assert len(layouts)
    assert {name: layouts.row(0)[name] for name in fixed} == fixed


def test_schedules_can_run() -> None:
    machine = cluster.parse("24xA100", node_size=8)
    parts = list(plans(dense(), machine, (72, 4096), Space.whole(machine)))
    layouts = Layout.join(parts)
    layouts = layouts.take(layout.feasible(dense(), 72, 4096, layouts))
    seen = set()
    for row in range(0, len(layouts), 7):
        plan = layouts.row(row)
        micro = 72 // (int(plan["dp"]) * int(plan["micro_batch"]))
        stages = int(plan["pp"]) * int(plan["chunks"])
        key = (plan["schedule"], plan["pp"], stages, micro)
        if key not in seen and stages * micro < 500:
            simulate(str(plan["schedule"]), int(plan["pp"]), micro, Stages.even(stages, 1.0, 1.0, 1.0))
            seen.add(key)
    assert {str(schedule) for schedule, *_ in seen} == set(SCHEDULES) - {"gpipe"}


def test_experts_divide_ranks() -> None:
    layouts = every(Space(), mixture())
    assert set(layouts.ep.tolist()) == {1, 2, 4, 8}
    assert np.all((layouts.tp * layouts.cp * layouts.dp) % (layouts.ep * layouts.etp) == 0)
    assert np.all(layout.feasible(mixture(), *BATCH, layouts.take(layouts.chunks == 1)))


def test_hybrid_sharding_stays_inside_a_domain() -> None:
    layouts = every(Space(), chips="64xH100")
    hybrid = layouts.take(layouts.shard < layouts.dp * layouts.cp)
    assert len(hybrid)
    assert set(hybrid.zero.tolist()) == {3}
    assert int((hybrid.shard * hybrid.tp).max()) <= 8


def test_more_ranks_than_chips() -> None:
    with pytest.raises(InputError, match="at most 16 ranks, one a chip, got 32"):
        every(Space(fixed={"tp": 8, "pp": 4}))


def test_a_size_that_divides_nothing() -> None:
    with pytest.raises(InfeasibleError, match="to divide 16 chips, got 3"):
        every(Space(fixed={"tp": 3}))


def test_an_unknown_column() -> None:
    with pytest.raises(InputError, match="Expected a column of a plan, got 'tpp'"):
        every(Space(fixed={"tpp": 3}))


def test_an_empty_batch() -> None:
    with pytest.raises(InputError, match="at least one sequence and token"):
        list(plans(dense(), cluster.parse("16xH100"), (0, 4096), Space()))
