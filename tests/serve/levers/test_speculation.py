"""Speculation: costs by hand, where it loses, and the direction of what users reported."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.models import deepseek3_attention
from tests.serve.levers.toys import Toy, llama

from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers.acceptance import Acceptance, chance_for
from ridgeline.serve.levers.speculation import Drafter, Speculation, drafters
from ridgeline.serve.steps.step import steps

FREE = Drafter("ngram")


def one(values: object) -> float:
    """The single value of an array."""
    (found,) = np.ravel(np.asarray(values, dtype=np.float64))
    return float(found)


def toy(acceptance: float = 0.8, drafter: Drafter = FREE, **costs: float) -> Speculation:
    return Speculation(llama(), Toy(**costs), drafter, Acceptance(acceptance))


def measured(acceptance: float, drafter: str = "ngram", tp: int = 1) -> Speculation:
    deployment = llama(tp=tp)
    return Speculation(deployment, steps(deployment), Drafter.of(drafter), Acceptance(acceptance))


def test_verification_by_hand() -> None:
    """10 sequences, 4 tokens each: 40 tokens still wait for the weights; the cache is read once."""
    found = toy().verify_s(10, 1000, 3)
    assert float(found) == pytest.approx(0.010 + 10 * 1000 * 1e-8)


def test_verification_past_the_ridge_pays_for_its_tokens() -> None:
    assert one(toy().verify_s(100, 1000, 3)) == pytest.approx(400 * 1e-4 + 100 * 1000 * 1e-8)


def test_speedup_by_hand() -> None:
    one, many = toy().speedup([1, 100], 0, 3)
    assert one == pytest.approx(2.952)  # all drafts free, the whole length won
    assert many == pytest.approx(2.952 / 4)  # bound by compute: four times the tokens for 2.952


def test_drafting_by_hand() -> None:
    """One of 32 layers for each drafted token, one after another."""
    found = toy(drafter=Drafter("own", 1.0)).draft_s(1, 0, 3)
    assert float(found) == pytest.approx(3 * 0.010 / 32)


def test_nothing_drafted_is_a_plain_step() -> None:
    assert toy().token_s(8, 1000, 0) == pytest.approx(toy().step_s(8, 1000))
    assert one(toy().draft_s(8, 1000, 0)) == 0.0


@given(st.integers(1, 512), st.integers(1, 16), st.floats(0.05, 0.95))
def test_break_even_is_where_it_turns(batch: int, drafted: int, chance: float) -> None:
    spec = toy(chance)
    even, length = one(spec.break_even_length(batch, 500, drafted)), float(Acceptance(chance).length(drafted))
    assert (one(spec.speedup(batch, 500, drafted)) >= 1) == (length >= even)


@given(st.floats(0.0, 0.9), st.integers(1, 8))
def test_more_accepted_is_never_slower(chance: float, drafted: int) -> None:
    slow, fast = toy(chance), toy(min(0.99, chance + 0.05))
    assert one(fast.speedup(16, 500, drafted)) >= one(slow.speedup(16, 500, drafted))


def test_the_region_where_it_loses() -> None:
    assert toy(0.3).loses_from(0, 3, (1, 16, 64, 256)) == 64
    assert toy(0.9).loses_from(0, 3, (1, 16)) is None
    assert toy(0.0, Drafter("own", 4.0)).loses_from(0, 3, (1, 16)) == 1


def test_fewer_drafts_at_larger_batches() -> None:
    spec = measured(0.8)
    best = [spec.best(batch, 1000) for batch in (1, 16, 64, 256)]
    assert best == sorted(best, reverse=True)
    assert best[0] > best[-1]


def test_rarely_accepted_drafts_lose_at_a_batch() -> None:
    """vllm issue 16258: n-gram speculation, batch 10, a few drafts accepted, was several times slower. Most of that is
    the host's; the chip's part has the same direction once drafts are long and rarely accepted."""
    spec = measured(0.05)
    assert one(spec.speedup(10, 500, 10)) < one(spec.speedup(1, 500, 10)) < 1.06
    assert one(spec.speedup(64, 500, 10)) < 1


def test_what_a_7b_needed_to_break_even() -> None:
    """vllm issue 8439: n-gram, k = 5, batch 1: 69.8 to 61.8 tokens/s. On the chip alone almost any acceptance wins."""
    chance = chance_for(one(measured(0.5).break_even_length(1, 500, 5)), 5)
    assert chance is not None
    assert chance < 0.3


def test_thirty_two_drafts_are_too_many() -> None:
    """vllm pull request 24343: at batch 1, 48 tokens/s with k = 32 against 108 with k = 1, drafted one by one."""
    spec = measured(0.7, "eagle3")
    assert one(spec.token_s(1, 500, 1)) < one(spec.token_s(1, 500, 32))
    assert 1 <= spec.best(1, 500) < 10


def test_query_heads_that_share_a_cache_do_more_with_a_byte() -> None:
    assert measured(0.5).attention_intensity == pytest.approx(4.0)  # 32 heads on 8: 2*4 FLOPs for 2 bytes


def test_a_latent_pays_for_its_compute() -> None:
    """128 heads on one latent of 576 elements: 2*128*(2*512 + 64) FLOPs for 1,152 bytes, near the ridge."""
    deployment = Deployment(deepseek3_attention(), device("H100"))
    spec = Speculation(deployment, Toy(cached=1e-7), FREE, Acceptance(0.8))
    assert spec.attention_intensity == pytest.approx(2 * 128 * 1088 / 1152)
    once, checked = one(spec.verify_s(10, 10000, 0)), one(spec.verify_s(10, 10000, 3))
    assert checked - once == pytest.approx(0.01 * (4 * spec.attention_intensity / (989.4 / 3.35) - 1), rel=1e-2)


def test_splitting_heads_does_not_change_the_intensity_until_they_are_copied() -> None:
    assert measured(0.5, tp=8).attention_intensity == pytest.approx(4.0)
    assert measured(0.5, tp=16).attention_intensity == pytest.approx(2.0)


def test_drafters() -> None:
    assert drafters() == ["eagle3", "mtp", "ngram"]
    assert Drafter.of("mtp") == Drafter("mtp", 1.0, 1.0)
    with pytest.raises(InputError, match="known drafter"):
        Drafter.of("medusa9")
    with pytest.raises(InputError, match="zero drafted"):
        toy().verify_s(1, 1, -1)


def test_arrays_broadcast() -> None:
    assert np.shape(measured(0.7, "eagle3").speedup(np.array([[1.0], [8.0]]), np.array([100.0, 1000.0]), 3)) == (2, 2)
