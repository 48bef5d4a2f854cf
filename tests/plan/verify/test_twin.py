"""The twin: what it keeps of a plan, its mesh and its refusals."""

import json

import pytest
from tests.plan.verify.combos import COMBOS, DENSE, MOE, SHARED

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.job import Plan
from ridgeline.plan.verify.twin import Twin, plain, twin
from ridgeline.plan.verify.weights import units


@pytest.mark.parametrize("name", COMBOS)
def test_units_hold_every_parameter_once(name: str) -> None:
    made = COMBOS[name].twin()
    held = sum(unit.size * (made.plan.ep if unit.experts else made.plan.tp) for unit in units(made))
    stored = sum(weight.elements for weight in _weights(made))
    copies = sum(weight.elements for weight in _weights(made) if weight.whole) * (made.plan.tp - 1)
    assert held == stored + copies


@pytest.mark.parametrize("name", COMBOS)
def test_every_group_covers_the_devices(name: str) -> None:
    made = COMBOS[name].twin()
    for group in ("tp", "ep", "data", "shard", "replica", "expert_data"):
        found = made.members(group)
        assert sorted(rank for ranks in found for rank in ranks) == list(range(made.plan.chips))
        sizes = {axis.name: axis.size for axis in made.axes}
        product = 1
        for axis in made.group(group):
            product *= sizes[axis]
        assert {len(ranks) for ranks in found} == {product}


def test_groups_are_numbered_with_tp_fastest() -> None:
    made = twin(MOE, Plan.of(dp=4, tp=2, sequence_parallel=1, ep=4))
    assert made.members("tp") == {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5}), frozenset({6, 7})}
    assert made.members("ep") == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})}
    assert made.members("expert_data") == {frozenset({rank, rank + 4}) for rank in range(4)}
    assert made.members("shard") == {frozenset({0, 2, 4, 6}), frozenset({1, 3, 5, 7})}


@pytest.mark.parametrize("name", COMBOS)
def test_a_twin_travels_as_json(name: str) -> None:
    made = COMBOS[name].twin()
    assert Twin.load(json.loads(json.dumps(made.dump()))) == made


def test_it_keeps_kinds_of_layers() -> None:
    made = twin(SHARED, Plan.of(dp=4, ep=2))
    assert (made.shape.layers, made.shape.dense_layers, made.shape.top_k) == (2, 1, 2)
    assert made.shape.shared_ff > 0
    assert twin(DENSE, Plan.of(dp=2)).shape.experts is None


def test_it_says_what_it_leaves_out() -> None:
    shape = Shape(layers=2, d_model=64, heads=4, d_ff=128, vocab=256, window=128, qk_norm=True, qkv_bias=True)
    assert twin(model(shape), Plan.of()).left_out == ("biases", "norms of queries and keys", "windows")


@pytest.mark.parametrize(
    ("plan", "part"),
    [
        ({"pp": 2}, "pp=1"),
        ({"cp": 2}, "cp=1"),
        ({"dp": 128}, "at most 64"),
        ({"dp": 2, "ep": 2}, "a mixture of experts"),
    ],
)
def test_plans_that_are_not_built(plan: dict[str, int], part: str) -> None:
    with pytest.raises(InputError, match=part):
        twin(DENSE, Plan.of(**plan))


@pytest.mark.parametrize(
    "plan",
    [
        {"dp": 2, "tp": 2, "ep": 2},
        {"tp": 2},
        {"dp": 4, "ep": 4, "shard": 2, "zero": 3},
        {"dp": 6, "tp": 2, "sequence_parallel": 1, "ep": 8},
    ],
)
def test_experts_that_are_not_built(plan: dict[str, int]) -> None:
    with pytest.raises((InputError, InfeasibleError)):
        twin(MOE, Plan.of(**plan))


def test_other_mixers_are_refused() -> None:
    spec = plain(Plan.of())
    bare = spec.model_copy(update={"kinds": (spec.kinds[0].model_copy(update={"ffns": ()}),)})
    with pytest.raises(InputError, match="one MLP or mixture"):
        twin(bare, Plan.of())


class _Held:
    def __init__(self, elements: int, *, whole: bool) -> None:
        self.elements, self.whole = elements, whole


def _weights(made: Twin) -> list[_Held]:
    """Every stored weight of the twin's model, as the package counts it."""
    from ridgeline.arithmetic.params import counts
    from ridgeline.plan.steps.traffic import copied

    whole = copied(made.spec)
    every = sum(stored for stored, _ in counts(made.spec).values())
    return [_Held(every - sum(whole), whole=False), *(_Held(size, whole=True) for size in whole)]
