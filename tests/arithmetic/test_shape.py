"""The compact description of a model: what it builds and what it refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.arithmetic.params import counts, params
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import Attention, MoE, Part
from ridgeline.core.errors import InputError
from ridgeline.core.specs import build

SMALL: dict[str, Any] = {"layers": 4, "d_model": 64, "d_ff": 128, "heads": 4, "vocab": 256}


def shape(**changes: Any) -> Shape:
    return build(Shape, {**SMALL, **changes})


def total(**changes: Any) -> float:
    value = params(model(shape(**changes))).total.value
    assert isinstance(value, int)
    return value


BODY = 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64


def test_dense_count_by_hand() -> None:
    assert total() == 2 * 256 * 64 + 4 * BODY + 64
    assert total(tied=True) == 256 * 64 + 4 * BODY + 64


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"gated": False}, -4 * 64 * 128),
        ({"kv_heads": 1}, -4 * 2 * 64 * 48),
        ({"head_dim": 32}, 4 * 4 * 64 * 64),
        ({"qkv_bias": True}, 4 * 3 * 64),
        ({"qk_norm": True}, 4 * 2 * 16),
        ({"window": 8}, 0),
        ({"context": 4096}, 0),
    ],
)
def test_each_key_changes_the_count_by_hand(changes: dict[str, Any], difference: int) -> None:
    assert total(**changes) - total() == difference


def test_experts_by_hand() -> None:
    spec = model(shape(experts=8, top_k=2, expert_ff=32, shared_ff=16, dense_layers=1))
    stored = counts(spec)
    assert stored[Part.EXPERTS] == (3 * 8 * 3 * 64 * 32, 3 * 2 * 3 * 64 * 32)
    assert stored[Part.SHARED_EXPERTS][0] == 3 * 3 * 64 * 16
    assert stored[Part.ROUTER][0] == 3 * 64 * 8
    assert stored[Part.MLP][0] == 3 * 64 * 128
    assert [isinstance(spec.kinds[kind].ffns[0], MoE) for kind in spec.pattern] == [False, True, True, True]


def test_windows_alternate() -> None:
    spec = model(shape(window=8, full_every=2))
    mixers = [spec.kinds[kind].mixers[0] for kind in spec.pattern]
    assert [m.window for m in mixers if isinstance(m, Attention)] == [8, None, 8, None]


def test_d_ff_is_not_needed_without_a_dense_layer() -> None:
    keys = {key: value for key, value in SMALL.items() if key != "d_ff"}
    assert model(build(Shape, {**keys, "experts": 4, "top_k": 1, "expert_ff": 32})).layers == 4
    with pytest.raises(InputError, match="d_ff"):
        build(Shape, keys)


def test_provenance_says_what_was_given() -> None:
    provenance = model(shape()).provenance
    assert provenance["layers"] == "user"
    assert provenance["kv_heads"] == "default"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"layers": 0}, "$.layers"),
        ({"layers": 10**9}, "$.layers"),
        ({"d_model": -64}, "$.d_model"),
        ({"vocab": "many"}, "$.vocab"),
        ({"kv_heads": 3}, "$.kv_heads"),
        ({"heads": 5}, "$.heads"),
        ({"experts": 8}, "$.top_k"),
        ({"shared_ff": 8}, "$.experts"),
        ({"dense_layers": 1}, "$.experts"),
        ({"experts": 2, "top_k": 3, "expert_ff": 8}, "$.top_k"),
        ({"experts": 2, "top_k": 1, "expert_ff": 8, "dense_layers": 5}, "$.dense_layers"),
        ({"full_every": 2}, "$.window"),
        ({"kvheads": 2}, "$.kvheads"),
    ],
)
def test_refusals_name_the_key(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        shape(**changes)
    assert caught.value.where == place


@given(
    layers=st.integers(1, 40),
    heads=st.sampled_from([1, 2, 4, 8]),
    head_dim=st.sampled_from([8, 64, 128]),
    d_ff=st.integers(1, 5000),
    vocab=st.integers(1, 10**6),
)
def test_count_is_the_closed_form(layers: int, heads: int, head_dim: int, d_ff: int, vocab: int) -> None:
    d = heads * head_dim
    made = shape(layers=layers, d_model=d, d_ff=d_ff, heads=heads, vocab=vocab, head_dim=head_dim)
    assert params(model(made)).total.value == 2 * vocab * d + layers * (4 * d * d + 3 * d * d_ff + 2 * d) + d
