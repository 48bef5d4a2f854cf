"""Blocks and what they refuse."""

import pytest
from pydantic import ValidationError
from tests.arithmetic.models import shaped

from ridgeline.arithmetic.params import size
from ridgeline.arithmetic.spec import (
    MLA,
    MLP,
    Attention,
    Block,
    Layer,
    ModelSpec,
    MoE,
    Part,
    Weight,
    embedding_block,
    linear,
    norm,
)

HEADS = {"d_model": 64, "heads": 8, "kv_heads": 2, "head_dim": 16, "v_head_dim": 16}


def _count(block: Block, *, active: bool = False) -> int:
    return sum(size(weight.formula(active=active), block.dims) for weight in block.weights)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({}, 64 * 128 + 2 * 64 * 32 + 128 * 64),
        ({"v_head_dim": 8}, 64 * 128 + 64 * 32 + 64 * 16 + 64 * 64),
        ({"qkv_bias": True}, 64 * 128 + 2 * 64 * 32 + 128 * 64 + 128 + 2 * 32),
        ({"out_bias": True}, 64 * 128 + 2 * 64 * 32 + 128 * 64 + 64),
        ({"qk_norm": "head"}, 64 * 128 + 2 * 64 * 32 + 128 * 64 + 2 * 16),
        ({"qk_norm": "full"}, 64 * 128 + 2 * 64 * 32 + 128 * 64 + 128 + 32),
        ({"qk_norm": "head", "qk_norm_bias": True}, 64 * 128 + 2 * 64 * 32 + 128 * 64 + 4 * 16),
        ({"kv_shared": True, "qk_norm": "head"}, 64 * 128 + 128 * 64 + 16),
        ({"k_equals_v": True}, 64 * 128 + 64 * 32 + 128 * 64),
        ({"out_gate": True}, 64 * 256 + 2 * 64 * 32 + 128 * 64),
        ({"window": 7}, 64 * 128 + 2 * 64 * 32 + 128 * 64),
    ],
)
def test_attention(other: dict[str, object], expected: int) -> None:
    assert _count(Attention.model_validate(HEADS | other)) == expected


def test_latent_attention() -> None:
    sizes = {"d_model": 64, "heads": 4, "kv_rank": 16, "qk_nope": 8, "qk_rope": 4, "v_head_dim": 10}
    shared = 64 * (16 + 4) + 16 + 16 * 4 * (8 + 10) + 4 * 10 * 64
    assert _count(MLA.model_validate(sizes)) == shared + 64 * 4 * 12
    assert _count(MLA.model_validate(sizes | {"q_rank": 32})) == shared + 64 * 32 + 32 + 32 * 4 * 12
    assert _count(MLA.model_validate(sizes | {"bias": True})) == shared + 64 * 4 * 12 + 20 + 64


@pytest.mark.parametrize(
    ("other", "stored", "active"),
    [
        ({}, 8 * 3 * 64 * 32 + 64 * 8, 2 * 3 * 64 * 32 + 64 * 8),
        ({"gated": False}, 8 * 2 * 64 * 32 + 64 * 8, 2 * 2 * 64 * 32 + 64 * 8),
        ({"shared_ff": 48}, 8 * 3 * 64 * 32 + 64 * 8 + 3 * 64 * 48, 2 * 3 * 64 * 32 + 64 * 8 + 3 * 64 * 48),
        (
            {"shared_ff": 48, "shared_gate": True},
            8 * 3 * 64 * 32 + 64 * 8 + 3 * 64 * 48 + 64,
            2 * 3 * 64 * 32 + 64 * 8 + 3 * 64 * 48 + 64,
        ),
        ({"router_bias": True}, 8 * 3 * 64 * 32 + 64 * 8 + 8, 2 * 3 * 64 * 32 + 64 * 8 + 8),
        (
            {"bias": True},
            8 * (3 * 64 * 32 + 2 * 32 + 64) + 64 * 8,
            2 * (3 * 64 * 32 + 2 * 32 + 64) + 64 * 8,
        ),
    ],
)
def test_mixture_of_experts(other: dict[str, object], stored: int, active: int) -> None:
    block = MoE.model_validate({"d_model": 64, "experts": 8, "top_k": 2, "expert_ff": 32} | other)
    assert (_count(block), _count(block, active=True)) == (stored, active)


def test_plain_and_gated_mlp() -> None:
    assert _count(MLP(d_model=64, d_ff=100)) == 3 * 64 * 100
    assert _count(MLP(d_model=64, d_ff=100, gated=False, bias=True)) == 2 * 64 * 100 + 100 + 64


@pytest.mark.parametrize(("tied", "head_bias", "expected"), [(True, False, 0), (True, True, 50), (False, False, 400)])
def test_embedding_block(tied: bool, head_bias: bool, expected: int) -> None:
    block = embedding_block(8, 50, tied=tied, head_bias=head_bias)
    assert _count(block) == 50 * 8 + 8 + expected
    table = block.weights[0]
    assert table.matmul is tied


def test_extra_weights_use_the_blocks_own_symbols() -> None:
    block = Block(d_model=8, extra=norm("n", "d_model", bias=True) + linear("p", Part.OTHER, "d_model", "k", bias=True),
                  extra_dims={"k": 5})  # fmt: skip
    assert _count(block) == 8 + 8 + 40 + 5
    assert block.dims == {"d_model": 8, "k": 5}


def test_formula_puts_sums_in_brackets() -> None:
    weight = Weight(name="w", part=Part.OTHER, shape=("a+b", "c"), copies="n", active="k")
    assert weight.formula() == "n*(a+b)*c"
    assert weight.formula(active=True) == "k*(a+b)*c"


@pytest.mark.parametrize(
    "bad",
    [
        {"kv_heads": 3},
        {"heads": 0},
        {"d_model": -1},
        {"head_dim": 2**41},
        {"window": 0},
        {"hedas": 8},
        {"qk_norm": "x"},
    ],
)
def test_refused_attention(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Attention.model_validate(HEADS | bad)


def test_refused_top_k() -> None:
    with pytest.raises(ValidationError, match="must not exceed experts"):
        MoE(d_model=64, experts=8, top_k=9, expert_ff=32)


def test_refused_pattern() -> None:
    spec = shaped(layers=2, d_model=8, d_ff=8, heads=1, vocab=8)
    with pytest.raises(ValidationError, match="layer kind 3"):
        ModelSpec.model_validate(spec.model_dump() | {"kinds": spec.kinds, "pattern": (0, 3), "embed": spec.embed})


def test_frozen_and_hashable() -> None:
    spec = shaped(layers=2, d_model=8, d_ff=8, heads=1, vocab=8)
    with pytest.raises(ValidationError):
        spec.d_model = 16  # type: ignore[misc]
    block = spec.kinds[0].mixers[0]
    assert hash(block) == hash(block.model_copy())
    assert len({block, block.model_copy()}) == 1
    assert isinstance(spec.kinds[0], Layer)
    assert spec.kinds[0].blocks == (*spec.kinds[0].mixers, *spec.kinds[0].ffns, spec.kinds[0].norms)
    assert (spec.layers, spec.uses(0)) == (2, 2)
