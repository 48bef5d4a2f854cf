"""Rows of work: shared by plans of one shape, split as the plan says."""

import numpy as np
import pytest
from tests.plan.specs import llama_70b, mixture

from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.machine import Machine, Software
from ridgeline.plan.steps.traffic import parameters
from ridgeline.plan.steps.work import stage_shares, work

H100 = Machine(parse("64xH100"), Software())


def test_a_plan_among_many_is_the_plan_alone() -> None:
    plans = Layout.of(tp=[1, 2, 4, 2], dp=[64, 32, 16, 32], micro_batch=[1, 2, 1, 2], zero=[3, 1, 0, 3])
    every = work(llama_70b(), H100, (64, 4096), plans)
    for row in range(len(plans)):
        alone = work(llama_70b(), H100, (64, 4096), plans.take(slice(row, row + 1)))
        assert all(np.allclose(getattr(every, name)[row], value[0]) for name, value in vars(alone).items())


def test_shares_of_uneven_stages() -> None:
    stages, most, last = stage_shares(80, Layout.of(pp=[1, 8, 12, 4], chunks=[1, 1, 1, 5]))
    assert stages.tolist() == [1, 8, 12, 4]
    assert most.tolist() == [1.0, 10 / 80, 7 / 80, 20 / 80]
    assert last.tolist() == [1.0, 10 / 80, 3 / 80, 20 / 80]


def test_parameters_by_how_they_are_split() -> None:
    dense, experts, table = parameters(mixture())
    assert experts == 48 * 128 * 3 * 2048 * 768
    assert table == 151936 * 2048
    assert 0 < dense < 0.1 * experts


def test_sharding_stages_move_the_same_bytes_at_other_times() -> None:
    done = work(llama_70b(), H100, (64, 4096), Layout.of(dp=64, zero=[0, 1, 2, 3]))
    assert (done.gather_s > 0).tolist() == [False, False, False, True]
    assert (done.params_s > 0).tolist() == [False, True, True, False]
    assert done.reduce_s[0] > 1.5 * done.reduce_s[1] > 0
    assert done.optimizer_s[0] > 30 * done.optimizer_s[3]


def test_grouped_experts_read_all_their_weights() -> None:
    """With a token or two for each expert the time is that of the weights, not of the multiplications."""
    done = work(mixture(), H100, (64, 64), Layout.of(dp=64, ep=[1, 64], zero=1))
    weights = 48 * 128 * 3 * 2048 * 768 * 2 / 3.35e12
    assert done.expert_forward_s[0] >= weights
    assert done.expert_forward_s[1] < done.expert_forward_s[0] / 10


def test_one_token_crosses_to_a_domain_once() -> None:
    plan = Layout.of(dp=64, ep=64)
    near, far = (
        work(mixture(), Machine(parse(name), Software()), (64, 4096), plan) for name in ("64xGB200", "64xB200")
    )
    copies = 64 * 4096 / 64 * 8 * 2048 * 2 * (7 / 8) * 48 * 2 / (50e9 * 0.9)
    assert near.ep_s[0] < far.ep_s[0] < copies


def test_the_last_stage_holds_a_layer_beside_the_head() -> None:
    """61 layers on 32 stages: 2 fill 31 of them, and the last one still gets one."""
    stages, most, last = stage_shares(61, Layout.of(pp=[32, 16, 1]))
    assert stages.tolist() == [32, 16, 1]
    assert (most * 61).tolist() == pytest.approx([2, 4, 61])
    assert (last * 61).tolist() == pytest.approx([1, 1, 61])


def test_context_parallelism_fills_a_chip_no_better_than_whole_sequences() -> None:
    machine = Machine(parse("16xH100"), Software())
    found = work(llama_70b(), machine, (16, 8192), Layout.of(cp=[1, 2, 4], dp=[4, 2, 1], micro_batch=[1, 2, 4]))
    assert found.attention_s.tolist() == pytest.approx([found.attention_s[0]] * 3, rel=1e-12)


def test_experts_split_finely_send_more() -> None:
    machine = Machine(parse("16xH100"), Software())
    found = work(mixture(), machine, (16, 4096), Layout.of(tp=2, dp=8, ep=4, etp=[1, 2]))
    assert found.tp_s[1] > 1.5 * found.tp_s[0]
