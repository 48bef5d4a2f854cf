"""What recipes cost: names of their own, memory against the pieces, chips with the cache, the cluster's state."""

from pathlib import Path
from typing import Any

import pytest
from tests.plan.studies import NEED, number, plan, product_plan

from ridgeline.arithmetic.params import params
from ridgeline.plan.recipe_facts import sharding


def test_names_are_below_the_recipe_and_shared_figures_are_not() -> None:
    made = product_plan(moe={"experts": 64, "top_k": 8})
    assert [f.recipe.style for f in made.recipes] == ["balanced", "deeper", "wider", "moe"]
    for facts in made.recipes:
        own = f"recipe.{facts.recipe.style}."
        assert all(q.name.startswith(own) for q in facts.all)
        below = {q.name for q in facts.device.walk()}
        assert f"{own}memory.device" in below
        assert not {name for name in below if name.split(".")[0] in ("params", "memory", "model", "batch")}
    names = [q.name for facts in made.recipes for q in facts.all]
    assert len(set(names)) == len(names)


def test_counts_are_those_of_the_spec_and_tokens_spend_the_budget() -> None:
    made = product_plan(moe={"experts": 64, "top_k": 8})
    for facts in made.recipes:
        counted = params(facts.recipe.spec)
        assert (number(facts.total), number(facts.active)) == (number(counted.total), number(counted.active))
        assert 6 * number(facts.active) * number(facts.tokens) == pytest.approx(number(made.cluster.compute))
        assert number(facts.weights) == 2 * number(facts.total)


def test_a_mixture_has_no_loss_and_a_dense_recipe_that_of_its_own_size() -> None:
    made = product_plan(moe={"experts": 64, "top_k": 8})
    assert made.recipes[-1].loss is None
    chosen = made.choice.losses[made.judge.law.slug]
    assert number(made.recipes[0].loss) == pytest.approx(number(chosen), abs=0.002)


def test_a_mixture_holds_more_and_computes_the_same() -> None:
    dense, *_, mixture = product_plan(moe={"experts": 64, "top_k": 8}).recipes
    assert number(mixture.active) == pytest.approx(number(dense.active), rel=0.02)
    assert number(mixture.weights) > 4 * number(dense.weights)
    assert mixture.needed is not None
    assert dense.needed is not None
    assert number(mixture.needed.hold) > number(dense.needed.hold)


def test_memory_of_a_chip_is_its_state_and_its_activations() -> None:
    (facts, *_) = plan().recipes
    parts = facts.device.inputs
    assert number(facts.device) == pytest.approx(number(parts["state"]) + number(parts["activations"]))
    assert number(parts["state"]) == pytest.approx(16 * number(facts.total) / 1000, rel=0.01)  # ZeRO-3 over all chips
    assert number(facts.room) == pytest.approx(100 * number(facts.device) / 80e9)


@pytest.mark.parametrize(("chips", "tp", "dp"), [(1000, 8, 125), (8, 8, 1), (7, 7, 1), (12, 8, 1), (1, 1, 1)])
def test_sharding_covers_whole_tensor_parallel_groups(chips: int, tp: int, dp: int) -> None:
    split = sharding(plan({"chips": f"{chips}xH100"}).cluster)
    assert (split.tp.value, split.dp.value) == (tp, dp)


def test_cache_is_that_of_the_turn_or_of_a_training_sequence() -> None:
    (with_need, *_) = plan(need=NEED | {"prefill": "16k", "budget": "10s"}).recipes
    (without, *_) = plan().recipes
    s = without.recipe.shape
    assert s.kv_heads is not None
    assert number(without.cache) == 2 * s.layers * s.kv_heads * 128 * 8192 * 2
    assert number(with_need.cache) == 2 * number(without.cache)
    assert without.needed is None


def test_chips_of_a_recipe_sweep_its_cache_too() -> None:
    need = NEED | {"prefill": "128k", "decode": 2048, "budget": "10s"}
    (facts, *_) = plan(need=need, choice="30B").recipes
    assert facts.needed is not None
    work = 2 * number(facts.active) * 131072 / 989.4e12
    weights, cache = 2048 * 2 * number(facts.active) / 3.35e12, 2048 * number(facts.cache) / 3.35e12
    assert number(facts.needed.exact) == -(-(work + weights + cache) // 9.75)
    assert number(facts.needed.exact) > -(-(work + weights) // 9.75)


def test_the_sequence_is_an_assumption_until_it_is_given() -> None:
    def length(**rest: Any) -> tuple[str, float]:
        (facts, *_) = plan(**rest).recipes
        found = next(q for q in facts.device.walk() if q.name == "recipe.balanced.batch.seq_len")
        return found.kind, number(found)

    assert length() == ("assumed", 8192)
    assert length(sequence="4k") == ("specified", 4096)


def test_longer_sequences_take_more_memory_and_more_attention() -> None:
    short, long = (plan(sequence=s).recipes[0] for s in ("4k", "32k"))
    assert number(long.device) > number(short.device)
    assert number(long.attention) > 2 * number(short.attention)
    assert 0 < number(short.attention) < number(long.attention) < 100


def test_the_tile_of_the_device_is_kept() -> None:
    for facts in plan({"chips": "1000xTPU v6e"}, moe={"experts": 8, "top_k": 2}).recipes:
        shape = facts.recipe.shape
        assert (shape.d_ff or shape.expert_ff or 0) % 256 == shape.d_model % 2048 == 0
        assert shape.d_ff is None or shape.d_ff % 2048 == 0 or shape.experts


def test_state_share_is_that_of_the_chosen_model() -> None:
    assert number(plan().state_share) == pytest.approx(100 * 16 * number(plan().choice.params) / 80e12)
    assert number(plan(choice="30B").state_share) == pytest.approx(100 * 16 * 30e9 / 80e12)


def test_a_device_without_memory_has_no_share(tmp_path: Path) -> None:
    file = tmp_path / "chip.toml"
    file.write_text('name = "Chip"\npeak.bf16 = 1e15\n')
    made = plan({"chips": f"64x{file}"})
    assert made.state_share is None
    assert [facts.room for facts in made.recipes] == [None] * len(made.recipes)
    assert number(made.recipes[0].device) > 0
