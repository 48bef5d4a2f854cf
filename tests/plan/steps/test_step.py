"""The step model: terms add up, more work takes longer, closed forms agree with the event simulation, and speed."""

import time
from itertools import product

import numpy as np
import pytest
from tests.plan.specs import gpt, llama_70b, mixture

from ridgeline.core.errors import InputError
from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.layout import Layout, feasible
from ridgeline.plan.steps.machine import Machine, Software
from ridgeline.plan.steps.pipeline import Stages, simulate
from ridgeline.plan.steps.step import Constants, combine, predict
from ridgeline.plan.steps.work import work

H100 = parse("512xH100")


def many() -> Layout:
    sizes = np.array(list(product([1, 2, 4, 8], [1, 2, 4, 8, 16], [1, 2], [1, 2, 4], [0, 1, 3], [0, 1, 2]))).T
    tp, pp, cp, micro_batch, zero, recompute = sizes
    dp = 512 // (tp * pp * cp)
    return Layout.of(tp=tp, pp=pp, cp=cp, dp=dp, micro_batch=micro_batch, zero=zero, recompute=recompute)


def test_terms_add_up_and_none_is_negative() -> None:
    steps = predict(llama_70b(), H100, (512, 8192), many())
    assert np.allclose(sum(steps.terms.values()), steps.step_s)
    assert all((value >= -1e-12).all() for value in (*steps.terms.values(), *steps.wire.values()))
    assert np.isfinite(steps.step_s).all()


def test_no_plan_beats_the_chips() -> None:
    plans = many()
    flops = 6 * 70e9 * 512 * 8192
    mfu = predict(llama_70b(), H100, (512, 8192), plans).mfu(flops)[feasible(llama_70b(), 512, 8192, plans)]
    assert mfu.min() > 0.05
    assert mfu.max() < 0.80


def test_recompute_adds_a_forward_pass() -> None:
    plans = Layout.of(tp=8, pp=4, dp=16, recompute=["none", "selective", "full"])
    none, selective, full = predict(llama_70b(), H100, (512, 8192), plans).step_s
    assert none < selective < full < 1.4 * none


def test_exposed_is_at_most_the_wire() -> None:
    steps = predict(mixture(), H100, (512, 4096), Layout.of(dp=[512, 64], ep=[8, 64], zero=1, tp=[1, 2], cp=[1, 4]))
    for name in ("tp", "ep", "cp", "dp"):
        assert (steps.terms[f"{name}_exposed"] <= steps.wire[name] * (1 + 1e-9)).all(), name


@pytest.mark.parametrize(
    "slow", ["matmul", "attention", "vector", "optimizer", "launch_s", "wire", "far_wire", "step_s"]
)
def test_every_constant_slows_what_it_names(slow: str) -> None:
    done = work(llama_70b(), Machine(H100, Software()), (512, 8192), Layout.of(tp=8, pp=4, dp=16, zero=1))
    base = Constants(step_s=0.01, launch_s=1e-4)
    slower = Constants(**{**vars(base), slow: 2 * getattr(base, slow)})
    assert combine(done, slower).step_s[0] > combine(done, base).step_s[0]


@pytest.mark.parametrize(("schedule", "chunks"), [("1f1b", 1), ("gpipe", 1), ("interleaved", 2), ("zb-h1", 1)])
def test_bubbles_agree_with_the_event_simulation(schedule: str, chunks: int) -> None:
    """Even stages, no head to speak of, no transfers: the closed form is the schedule's own."""
    spec = llama_70b(vocab=8)
    plans = Layout.of(tp=8, pp=8, dp=8, chunks=chunks, schedule=schedule)
    done = work(spec, Machine(H100, Software()), (512, 8192), plans)
    steps = combine(done, Constants(launch_s=0.0, wire=0.0, far_wire=0.0))
    terms = {name: float(value[0]) for name, value in steps.terms.items()}
    turns = 64.0 * chunks  # passes of a stage
    weight = terms["wgrad_matmul"] / turns
    forward = (terms["forward_matmul"] + _share(done.attention_s, done) + _share(done.vector_s, done)) / turns
    busy = sum(value for name, value in terms.items() if name not in ("bubble", "optimizer", "dp_exposed", "step"))
    backward = busy / turns - forward - weight
    found = simulate(schedule, 8, 64, Stages.even(8 * chunks, forward, backward, weight))
    assert terms["bubble"] + busy == pytest.approx(found.step_s, rel=0.002)


def _share(seconds: np.ndarray, done: object) -> float:
    return float(seconds[0]) * float(done.most[0]) * 64  # type: ignore[attr-defined]


def test_a_head_slower_than_a_stage_sets_the_pace() -> None:
    """Against the simulation of eight stages of which the last has the head too."""
    spec = llama_70b(layers=8, vocab=512_000)
    done = work(spec, Machine(H100, Software()), (512, 2048), Layout.of(pp=8, dp=64))
    steps = combine(done, Constants(launch_s=0.0, wire=0.0, far_wire=0.0))
    layer, head = (steps.terms["head"] * 0 + steps.step_s)[0], steps.terms["head"][0] / 8
    bubble, optimizer, data = (steps.terms[name][0] for name in ("bubble", "optimizer", "dp_exposed"))
    layer = (layer - steps.terms["head"][0] - bubble - optimizer - data) / 8
    forward = np.full(8, layer / 3)
    forward[-1] += head / 3
    found = simulate("1f1b", 8, 8, Stages(forward, forward, forward))
    assert head > 0.5 * layer
    assert steps.step_s[0] - optimizer - data == pytest.approx(found.step_s, rel=1e-6)


def test_tensor_parallelism_across_nodes_is_slower() -> None:
    plans = Layout.of(tp=[8, 16], dp=[64, 32])
    inside, across = predict(llama_70b(), H100, (512, 8192), plans).terms["tp_exposed"]
    assert across > 1.5 * inside


def test_a_rank_serves_the_experts_it_holds() -> None:
    plans = Layout.of(dp=64, ep=[1, 8, 64])
    done = work(mixture(), Machine(parse("64xH100"), Software()), (512, 4096), plans)
    assert done.ep_s[0] == 0 < done.ep_s[1] < done.ep_s[2]
    assert done.expert_forward_s[0] > done.expert_forward_s[2]  # fewer experts, more rows for each


def test_full_sharding_under_a_pipeline_gathers_once_a_step() -> None:
    flat, piped = predict(llama_70b(), H100, (512, 8192), Layout.of(pp=[1, 4], dp=[512, 128], zero=3)).wire["dp"]
    assert piped < flat


def test_a_type_the_chip_has_not() -> None:
    with pytest.raises(InputError, match="fp8 peak"):
        predict(gpt(2, 1024, 8), parse("8xA100"), (8, 1024), Layout.of(dp=8), Software(dtype="fp8"))


def test_fifty_thousand_plans_a_second() -> None:
    plans = Layout.join([many()] * 10)
    assert len(plans) == 10_800
    predict(llama_70b(), H100, (512, 8192), plans)  # reads the surfaces
    started = time.process_time()
    predict(llama_70b(), H100, (512, 8192), plans)
    assert len(plans) / (time.process_time() - started) > 50_000
