"""Columns of candidate plans: defaults, what divides, and the error that names what does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.specs import llama_70b, mixture

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.steps.layout import Layout, check, check_batch, feasible, limits


def test_defaults_follow_from_what_is_given() -> None:
    plans = Layout.of(tp=[1, 2], dp=8, cp=2, chunks=[1, 4], pp=4, recompute="full")
    assert plans.row(1) == {
        "tp": 2, "pp": 4, "dp": 8, "cp": 2, "ep": 1, "etp": 2, "chunks": 4, "micro_batch": 1, "zero": 0, "shard": 16,
        "sequence_parallel": 0, "recompute": "full", "schedule": "interleaved",
    }  # fmt: skip
    assert plans.row(0)["schedule"] == "1f1b"
    assert Layout.of(ep=8, dp=8, tp=2).row(0)["etp"] == 1
    assert plans.chips.tolist() == [64, 128]


def test_take_and_join_are_inverse() -> None:
    plans = Layout.of(tp=[1, 2, 4], micro_batch=[1, 2, 3])
    again = Layout.join([plans.take(np.array([0])), plans.take(slice(1, None))])
    assert [again.row(i) for i in range(3)] == [plans.row(i) for i in range(3)]


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ({"tp": 0}, "plan.tp"), ({"tp": 1.5}, "plan.tp"), ({"tp": "abc"}, "plan.tp"), ({"dp": 10**30}, "plan.dp"),
        ({"tp": float("nan")}, "plan.tp"), ({"zero": 4}, "plan.zero"), ({"tpp": 2}, "plan"),
        ({"recompute": "some"}, "plan.recompute"), ({"schedule": "1f2b"}, "plan.schedule"),
        ({"sequence_parallel": 2}, "plan.sequence_parallel"),
    ],
)  # fmt: skip
def test_bad_columns(columns: dict[str, object], where: str) -> None:
    with pytest.raises(InputError) as caught:
        Layout.of(**columns)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("columns", "limit", "nearest"),
    [
        ({"tp": 3}, "heads over tp", "tp = 2"),
        ({"pp": 81}, "a layer for every stage", "pp*chunks = 80"),
        ({"dp": 3, "micro_batch": 1}, "sequences over dp*micro_batch", "dp*micro_batch = 2"),
        ({"cp": 3}, "sequence over 2*cp, so that causal work is even", "2*cp = 4"),
        ({"dp": 16, "pp": 4, "chunks": 2, "micro_batch": 2}, "micro-batches over pp when interleaved", "pp = 2"),
        ({"ep": 2, "dp": 2}, "experts over ep", "ep = 1"),
    ],
)
def test_what_does_not_divide_is_named_with_the_nearest_that_does(
    columns: dict[str, object], limit: str, nearest: str
) -> None:
    plans = Layout.of(**columns)
    assert not feasible(llama_70b(), 64, 8192, plans).any()
    with pytest.raises(InfeasibleError) as caught:
        check(llama_70b(), 64, 8192, plans, 10_000)
    assert (caught.value.limit, caught.value.nearest) == (limit, nearest)


def test_more_ranks_than_chips() -> None:
    with pytest.raises(InputError, match="Expected at most 8 ranks, one a chip, got 16"):
        check(llama_70b(), 64, 8192, Layout.of(tp=8, dp=2), 8)


def test_experts_divide_by_their_own_group() -> None:
    fine = Layout.of(ep=[8, 64], dp=64)
    assert feasible(mixture(), 64, 4096, fine).all()
    assert not feasible(mixture(), 64, 4096, Layout.of(ep=3, dp=3)).any()


def test_a_shard_group_holds_every_expert() -> None:
    plans = Layout.of(ep=8, dp=64, zero=3, shard=[4, 8, 64])
    assert feasible(mixture(), 64, 4096, plans).tolist() == [False, True, True]


@pytest.mark.parametrize(("sequences", "seq"), [(2**24 + 1, 1), (1, 2**30 + 1)])
def test_a_batch_beyond_any_step_is_a_slip(sequences: int, seq: int) -> None:
    with pytest.raises(InputError, match="check the exponent"):
        check_batch(sequences, seq, "--batch")


@given(st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 4, 5, 8, 10]), st.integers(1, 9))
def test_feasible_is_the_absence_of_broken_limits(tp: int, pp: int, micro_batch: int) -> None:
    plans = Layout.of(tp=tp, pp=pp, micro_batch=micro_batch)
    broken = [limit.name for limit in limits(llama_70b(), 64, 8192, plans) if limit.broken.any()]
    assert feasible(llama_70b(), 64, 8192, plans).all() == (broken == [])


def test_hybrid_sharding_is_a_smaller_group_to_the_memory_formulas() -> None:
    sharding = Layout.of(dp=64, cp=2, shard=16, zero=3).sharding(128)
    assert np.asarray(sharding.dp.base * sharding.cp.base).tolist() == [16]
