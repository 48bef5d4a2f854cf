"""The same model with other key-value heads."""

from tests.arithmetic.models import deepseek3_attention
from tests.serve.levers.toys import llama, multi_head

from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.quantity import given
from ridgeline.serve.levers.heads import grouped, one_each, shares


def per_token(spec: ModelSpec) -> float:
    return float(kv_cache(spec, given("context", 1000, "token")).per_token.base)


def test_grouped_heads_spelled_out() -> None:
    """32 query heads on 8: four times the cache."""
    spec = llama().spec
    assert shares(spec)
    assert per_token(one_each(spec)) == 4 * per_token(spec)
    assert not shares(one_each(spec))


def test_a_latent_spelled_out() -> None:
    """128 heads of 192 and 128 elements a layer against one latent of 576: 71 times."""
    spec = deepseek3_attention()
    assert per_token(one_each(spec)) / per_token(spec) == 128 * 320 / 576


def test_grouping_what_is_not() -> None:
    spec = multi_head().spec
    assert per_token(spec) == 8 * per_token(grouped(spec))
    assert per_token(grouped(llama().spec)) == per_token(llama().spec)
