"""The operations of a step against the model's own counts."""

import pytest
from tests.arithmetic.models import PUBLISHED

from ridgeline.arithmetic.named import find_model
from ridgeline.arithmetic.params import counts, matmuls
from ridgeline.arithmetic.spec import Part
from ridgeline.core.catalog import device
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.work import work

H200 = device("h200-sxm-141gb")
DEEPSEEK = find_model("deepseek-v3")[0]


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_split_weights_add_up_to_the_model(tp: int) -> None:
    spec = PUBLISHED["llama3-70b"]()
    found = work(Deployment(spec, H200, tp=tp))
    dense = sum(item.k * item.n * item.uses * (1 if item.copied else tp) for item in found.matmuls)
    assert dense == sum(i.k * i.n * i.uses for i in matmuls(spec) if i.place != "outside")
    assert found.head.k * found.head.n * tp == spec.vocab * spec.d_model


def test_experts_are_apart_from_dense_weights() -> None:
    found = work(Deployment(DEEPSEEK, H200, tp=8))
    held = sum(m.uses * m.experts * m.sides * m.width * m.inner for m in found.mixtures)
    assert held == counts(DEEPSEEK)[Part.EXPERTS][0]
    assert {item.name for item in found.matmuls if item.wide} == {"router"}
    assert {item.name for item in found.matmuls if item.past} == {"kv_b_proj"}


def test_latents_are_not_split_and_heads_are() -> None:
    one, eight = (work(Deployment(DEEPSEEK, H200, tp=tp)).cores[0] for tp in (1, 8))
    assert (one.heads, eight.heads) == (128, 16)
    assert one.rank == eight.rank == 512


def test_key_heads_are_copied_beyond_their_number() -> None:
    spec = PUBLISHED["qwen3-235b"]()
    assert [work(Deployment(spec, H200, tp=tp)).cores[0].kv_heads for tp in (1, 4, 8)] == [4, 1, 1]


def test_two_reductions_a_layer() -> None:
    spec = PUBLISHED["llama3-8b"]()
    assert work(Deployment(spec, H200)).reductions == 2 * spec.layers
