"""Which weights are split how, and which run as one matmul."""

import pytest
from tests.arithmetic.models import deepseek3_attention, shaped

from ridgeline.arithmetic.params import matmuls
from ridgeline.arithmetic.spec import MLP, Attention, MoE
from ridgeline.arithmetic.tensor_split import split_matmuls


def test_queries_keys_and_values_run_as_one_and_so_do_gate_and_up() -> None:
    attention = Attention(d_model=64, heads=8, kv_heads=2, head_dim=8, v_head_dim=8)
    assert [(i.name, i.k, i.n, i.split) for i in split_matmuls(attention)] == [
        ("q_proj", 64, 96, "column"),
        ("o_proj", 64, 64, "row"),
    ]
    assert [(i.n, i.split) for i in split_matmuls(MLP(d_model=64, d_ff=256))] == [(512, "column"), (64, "row")]


def test_latent_projections_are_copied_and_read_the_stream_together() -> None:
    mixer = deepseek3_attention(1).kinds[0].mixers[0]
    found = {item.name: item for item in split_matmuls(mixer)}
    assert (found["q_a_proj"].n, found["q_a_proj"].split) == (1536 + 576, "copied")
    assert found["kv_b_proj"].split == "column"


def test_a_router_runs_alone_and_routed_experts_are_not_here() -> None:
    block = MoE(d_model=64, experts=8, top_k=2, expert_ff=32, shared_ff=32, shared_gate=True)
    assert [item.name for item in split_matmuls(block)] == [
        "router",
        "shared_gate_proj",
        "shared_down_proj",
        "shared_gate",
    ]


@pytest.mark.parametrize("experts", [0, 8])
def test_no_weight_is_lost(experts: int) -> None:
    routed = {"experts": experts, "top_k": 2, "expert_ff": 128} if experts else {"d_ff": 256}
    spec = shaped(layers=2, d_model=64, heads=8, kv_heads=2, vocab=100, **routed)
    ours = sum(i.k * i.n * i.copies for layer in spec.kinds for block in layer.blocks for i in split_matmuls(block))
    every = sum(i.k * i.n for i in matmuls(spec) if i.place.startswith("layer") and i.part != "experts")
    assert ours == every
