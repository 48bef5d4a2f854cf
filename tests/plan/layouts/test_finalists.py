"""Finalists simulated exactly: against the closed forms, and layers split by cost."""

from dataclasses import replace

import numpy as np
import pytest
from tests.plan.search_cases import dense, found, mixture, request

from ridgeline.plan.layouts import finalists
from ridgeline.plan.layouts.finalists import exact, micro_batch
from ridgeline.plan.layouts.search import Found, search
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.step import predict


def one(spec: object = None, **fixed: int | str) -> Found:
    return search(request(fixed=fixed, spec=spec) if spec else request(fixed=fixed))


def test_without_a_pipeline_the_simulation_is_the_closed_form() -> None:
    result = one(pp=1, tp=8, recompute="full")
    again = exact(result, 0)
    assert again is not None
    assert again.step_s == pytest.approx(again.closed_s, rel=0.005)  # the embedding's look-up is extra
    assert again.split == (32,)
    assert again.bubble == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("spec", [dense(), mixture()], ids=["dense", "moe"])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_one_micro_batch_adds_up_to_the_step(spec: object, recompute: str) -> None:
    result = one(spec, pp=1, recompute=recompute, zero=1)
    plan = result.layouts.take(slice(0, 1))
    part = micro_batch(result.request, plan)
    micro = int(plan.micro_batches(result.request.batch[0])[0])
    inside = sum(float(v[0]) for k, v in result.steps.terms.items() if k not in ("dp_exposed", "optimizer", "step"))
    passes = part.forward_s + part.backward_s + part.weight_s + part.head_s
    assert micro * passes == pytest.approx(inside, rel=1e-9)
    assert part.transfer_s == 0
    if recompute == "full":
        assert part.backward_s > part.forward_s + part.weight_s * 0.5


@pytest.mark.parametrize(("schedule", "chunks"), [("1f1b", 1), ("interleaved", 4)])
def test_a_pipeline_is_close_to_its_closed_form(schedule: str, chunks: int) -> None:
    result = one(pp=4, tp=2, schedule=schedule, chunks=chunks)
    again = exact(result, 0)
    assert again is not None
    assert again.step_s == pytest.approx(again.closed_s, rel=0.08)
    assert sum(again.split) == 32
    assert len(again.split) == 4 * chunks


def test_the_head_takes_layers_from_the_last_stage() -> None:
    result = one(dense(vocab=256000), pp=4, chunks=1)
    again = exact(result, 0)
    assert again is not None
    assert again.split[-1] < again.split[0]
    assert again.step_s < again.closed_s  # even stages wait for the head


def test_too_many_operations_are_left_to_the_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finalists, "MOST_OPS", 10)
    assert exact(one(pp=4), 0) is None


def test_a_hand_over_is_what_the_step_model_exposes() -> None:
    result = one(pp=4, chunks=1)
    plan = result.layouts.take(slice(0, 1))
    part = micro_batch(result.request, plan)
    micro = int(plan.micro_batches(result.request.batch[0])[0])
    exposed_s = float(result.steps.terms["pp_exposed"][0])
    assert 2 * part.transfer_s * (micro + 3) == pytest.approx(exposed_s)


def test_recompute_leaves_the_forward_pass_alone() -> None:
    plan = found().layouts.take(slice(0, 1))
    parts = [micro_batch(found().request, replace(plan, recompute=np.array([code]))) for code in (0, 2)]
    assert parts[0].forward_s == parts[1].forward_s
    assert parts[1].backward_s - parts[0].backward_s == pytest.approx(parts[0].forward_s)


def test_the_same_plan_in_a_longer_table() -> None:
    asked = found().request
    layouts = Layout.join([found().layouts.take(slice(0, 1))] * 2)
    steps = predict(asked.spec, asked.cluster, asked.batch, layouts)
    assert float(steps.step_s[0]) == float(steps.step_s[1])
