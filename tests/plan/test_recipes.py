"""Recipes: aligned for the tile, close to the size asked for, counted exactly; the sweep is the one-by-one count."""

import numpy as np
import pytest
from tests.plan.studies import number

from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.shape import model
from ridgeline.core.errors import InfeasibleError
from ridgeline.plan.recipes import STYLES, TOLERANCE, grid, moe_of, recipes, sweep

SIZES = [1.5e9, 8e9, 30e9, 92.5e9, 405e9]
VOCAB = 128_000


@pytest.mark.parametrize("tile", [128, 256])
@pytest.mark.parametrize("target", SIZES)
def test_aligned_and_within_tolerance(target: float, tile: int) -> None:
    found = recipes(target, VOCAB, tile)
    for item in found:
        shape = item.shape
        total = number(params(item.spec).total)
        assert abs(total / target - 1) <= TOLERANCE
        assert shape.d_ff is not None
        assert shape.d_model % tile == shape.d_ff % tile == 0
        assert shape.heads * 128 == shape.d_model
        assert shape.kv_heads is not None
        assert shape.heads % shape.kv_heads == 0
        assert item.aspect == shape.d_model / shape.layers
    styles = [item.style for item in found]
    assert len(set(styles)) == len(styles)
    assert set(styles) <= set(STYLES)


@pytest.mark.parametrize("tile", [128, 256])
@pytest.mark.parametrize("target", [30e9, 92.5e9])
def test_a_large_recipe_is_aligned_at_eight_way_tensor_parallelism(target: float, tile: int) -> None:
    found = recipes(target, VOCAB, tile)
    assert [item.style for item in found] == ["balanced", "deeper", "wider"]
    for item in found:
        assert item.shape.d_ff is not None
        assert item.shape.d_ff % (8 * tile) == item.shape.d_model % (8 * tile) == 0
        assert item.shape.kv_heads == 8
        assert abs(number(params(item.spec).total) / target - 1) < 0.08


def test_styles_are_what_they_say() -> None:
    aspects = {item.style: item.aspect for item in recipes(30e9, VOCAB)}
    assert aspects["deeper"] < aspects["balanced"] < aspects["wider"]
    assert aspects["balanced"] == pytest.approx(128, rel=0.25)


def test_the_balanced_recipe_is_the_closest_of_its_band() -> None:
    candidates = grid(VOCAB, 8)
    total = np.asarray(sweep(candidates).total.value)
    aspect = candidates.d_model / candidates.layers / 128
    band = (aspect >= 0.8) & (aspect <= 1.25)
    (balanced, *_) = recipes(30e9, VOCAB)
    assert number(params(balanced.spec).total) == pytest.approx(total[band][np.abs(total[band] / 30e9 - 1).argmin()])


def test_the_count_by_hand() -> None:
    (item, *_) = recipes(30e9, VOCAB)
    s = item.shape
    assert s.d_ff is not None
    assert s.kv_heads is not None
    attention = s.d_model * (2 * s.heads + 2 * s.kv_heads) * 128
    block = attention + 3 * s.d_model * s.d_ff + 2 * s.d_model
    assert number(params(item.spec).total) == s.layers * block + 2 * VOCAB * s.d_model + s.d_model


def test_the_sweep_equals_one_by_one() -> None:
    candidates = grid(50_257, 4)
    counted = sweep(candidates)
    total, active = np.asarray(counted.total.value), np.asarray(counted.active.value)
    assert total.shape == candidates.layers.shape
    for index in np.linspace(0, len(total) - 1, 25).astype(int):
        alone = params(model(candidates.shape(int(index))))
        assert (total[index], active[index]) == (number(alone.total), number(alone.active))


def test_small_models_are_aligned_for_less_parallelism() -> None:
    (item, *_) = recipes(125e6, 32_000)
    assert item.shape.d_model < 1024


def test_a_model_smaller_than_its_tables_is_infeasible() -> None:
    with pytest.raises(InfeasibleError) as caught:
        recipes(5e6, VOCAB)
    text = str(caught.value)
    assert "No aligned shape has about 5e+06 parameters with a vocabulary of 128,000" in text
    assert "binding limit: the embedding tables" in text
    assert "nearest miss: " in text
    assert "hint: give a smaller vocab" in text


@pytest.mark.parametrize("target", [30e9, 92.5e9])
@pytest.mark.parametrize(("experts", "top_k", "shared"), [(64, 8, 0), (16, 2, 0), (64, 6, 2), (8, 2, 1)])
def test_moe_at_equal_active_parameters(target: float, experts: int, top_k: int, shared: int) -> None:
    (dense, *_) = recipes(target, VOCAB)
    mixture = moe_of(dense, experts=experts, top_k=top_k, shared=shared, tile=128)
    counted, before = params(mixture.spec), params(dense.spec)
    assert number(counted.active) == pytest.approx(number(before.active), rel=0.02)
    assert number(counted.total) > number(before.total)
    shape = mixture.shape
    assert (shape.experts, shape.top_k, shape.layers, shape.heads) == (
        experts,
        top_k,
        dense.shape.layers,
        dense.shape.heads,
    )
    assert shape.expert_ff is not None
    assert shape.expert_ff % 128 == 0
    assert mixture.style == "moe"
