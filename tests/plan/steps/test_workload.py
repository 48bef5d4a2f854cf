"""The work of a rank agrees with the FLOP count and with the parameter count: one list of weights."""

import pytest
from tests.plan.specs import gpt, llama_70b, mixture

from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.plan.steps.workload import workload


@pytest.mark.parametrize("spec", [llama_70b(), gpt(48, 6144, 64), mixture()], ids=["llama", "gpt", "moe"])
def test_matmuls_add_up_to_the_flop_count(spec: ModelSpec) -> None:
    load = workload(spec, 4096)
    per_token = sum(2 * m.k * m.n * m.uses * m.top_k for m in (*load.matmuls, *load.head))
    counted = flops(spec, Batch.of(4096), mask="exact")
    linear = sum(float(q.base) for term, q in counted.parts.items() if "scores" not in term and "values" not in term)
    assert per_token * 4096 == pytest.approx(linear)


def test_neighbours_with_one_input_run_as_one() -> None:
    sides = {(m.name, m.split): (m.k, m.n) for m in workload(llama_70b(), 4096).matmuls}
    assert sides == {
        ("q_proj", "column"): (8192, 8192 + 2 * 1024),
        ("o_proj", "row"): (8192, 8192),
        ("gate_proj", "column"): (8192, 2 * 28672),
        ("down_proj", "row"): (28672, 8192),
    }


@pytest.mark.parametrize("window", [128, 4096])
def test_a_window_shortens_attention(window: int) -> None:
    shape = {"layers": 2, "d_model": 1024, "d_ff": 4096, "heads": 8, "vocab": 1024, "window": window}
    core = workload(model(Shape.model_validate(shape)), 4096).cores[0]
    seen = window * 4096 - window * (window - 1) / 2
    assert core.share == pytest.approx(seen / (4096 * 4097 / 2))


def test_experts_send_every_token_to_each_of_their_choices() -> None:
    load = workload(mixture(), 4096)
    assert [(item.routed, item.top_k, item.uses) for item in load.exchanges] == [(8 * 2048, 8, 48)]
    assert {m.split for m in load.matmuls} == {"column", "row", "copied", "expert"}


def test_dropout_moves_its_masks() -> None:
    quiet, noisy = (workload(gpt(2, 1024, 8), 1024, dropout=d).traffic[0] for d in (False, True))
    assert noisy.wide_forward - quiet.wide_forward == 2 * 1024
