"""Candidates: tokens, loss and worth on one budget, chips of a conversation, the largest product."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.arithmetic.worked import printed
from tests.plan.studies import NEED, number, study

from ridgeline.arithmetic import laws
from ridgeline.core.catalog import device, law
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, given
from ridgeline.plan.candidates import (
    Candidate,
    Product,
    candidate,
    fits_need,
    key_of,
    label_of,
    largest_servable,
    product,
    sized,
)

COMPUTE = given("compute", 1.026e24, "FLOP")
H100, V5E = device("H100"), device("TPU v5e")


def need_for(**changes: object) -> Product:
    need = study(need=NEED | changes).need
    assert need is not None
    return product(need, H100, "bf16")


def one(params: float, need: Product | None = None, compute: Quantity = COMPUTE) -> Candidate:
    losing = {slug: laws.optimum(law(slug), compute, f"law.{slug}") for slug in ("hoffmann-2022", "besiroglu-2024")}
    return candidate(sized(params, Source("the test")), compute, losing, need, key=key_of(params))


@pytest.mark.parametrize(
    ("params", "label", "key"),
    [
        (30e9, "30B", "30b"),
        (92.5e9, "92.5B", "92_5b"),
        (350e6, "350M", "350m"),
        (1.2e12, "1.2T", "1_2t"),
        (999.9e9, "1T", "1t"),
    ],
)
def test_labels_and_keys(params: float, label: str, key: str) -> None:
    assert (label_of(params), key_of(params)) == (label, key)


def test_everything_is_on_the_same_budget() -> None:
    for params in (8e9, 30e9, 92.5e9):
        found = one(params)
        assert 6 * params * number(found.tokens) == pytest.approx(1.026e24, rel=1e-12)
        assert number(found.tokens_per_param) == pytest.approx(number(found.tokens) / params)
        assert number(found.weights) == 2 * params


def test_loss_excess_and_worth_hang_together() -> None:
    found = one(30e9)
    for slug, loss in found.losses.items():
        best = laws.optimum(law(slug), COMPUTE, "best").loss
        assert number(loss) == pytest.approx(number(laws.loss(law(slug), found.params, found.tokens, "again")))
        assert number(found.excess[slug]) == pytest.approx(number(loss) - number(best))
        assert number(found.excess[slug]) > 0
        assert 0 < number(found.worth[slug]) < 100
    assert list(found.losses) == ["hoffmann-2022", "besiroglu-2024"]


@pytest.mark.parametrize(
    ("params", "hold", "chips", "total"),
    [(70e9, 9, 64, "0.683"), (35e9, 5, 32, "0.683"), (17e9, 3, 16, None), (8e9, 1, 8, None)],
)
def test_section_c_on_tpu_v5e(params: float, hold: int, chips: int, total: str | None) -> None:
    need = need_for(chip="TPU v5e")
    found = one(params, need).needed[need.main]
    assert (number(found.hold), number(found.doubling)) == (hold, chips)
    assert chips / 2 < number(found.exact) <= chips
    if total:
        assert number(found.time.total) == printed(total)


def turn_s(params: float, chips: int) -> float:
    """The napkin by hand on an H100, at two bytes a weight."""
    return (2 * params * 8192 / 989.4e12 + 128 * 2 * params / 3.35e12) / chips + 0.25


@pytest.mark.parametrize(("params", "chips"), [(92.5e9, 12), (70e9, 9), (30e9, 4), (17e9, 3), (8e9, 1)])
def test_the_story_on_h100(params: float, chips: int) -> None:
    need = need_for()
    assert number(one(params, need).needed[need.main].exact) == chips
    assert turn_s(params, chips) <= 1.0
    assert chips == 1 or turn_s(params, chips - 1) > 1.0


def test_further_devices_come_after_the_one_that_decides() -> None:
    need = need_for(chip="TPU v5e", also=["H100", "v5e"])
    assert list(need.chips) == [V5E.slug, H100.slug]
    assert need.main == V5E.slug
    assert set(one(30e9, need).needed) == {V5E.slug, H100.slug}


@for_all(
    chips=st.integers(1, 512), budget=st.floats(0.3, 20), prefill=st.integers(1, 200_000), decode=st.integers(1, 4000),
    bits=st.sampled_from([4, 8, 16]),
)  # fmt: skip
def test_the_largest_servable_size_just_fits(chips: int, budget: float, prefill: int, decode: int, bits: int) -> None:
    need = need_for(
        chips_per_conversation=chips, budget=f"{budget:.6f}s", prefill=prefill, decode=decode, weight_bits=bits
    )
    largest = number(largest_servable(need))
    if largest > 1e6:
        assert fits_need(one(largest * 0.999, need), need)
        assert not fits_need(one(largest * 1.001, need), need)


def test_the_largest_servable_size_of_the_story() -> None:
    assert number(largest_servable(need_for())) == printed("32.3e9")
    assert turn_s(number(largest_servable(need_for())), 4) == pytest.approx(1.0)


def test_memory_caps_what_is_servable() -> None:
    need = need_for(budget="100s", chips_per_conversation=2)
    assert number(largest_servable(need)) == pytest.approx(2 * 80e9 / 2)


def test_fewer_bits_are_fewer_chips() -> None:
    counts = []
    for bits in (16, 8, 4):
        need = need_for(weight_bits=bits)
        assert number(need.bytes_per_param) == bits / 8
        counts.append(number(one(92.5e9, need).needed[need.main].exact))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_a_default_turn_is_assumed_and_a_given_one_is_not() -> None:
    silent = study(need={"budget": "1s"}).need
    assert silent is not None
    found = product(silent, H100, "bf16")
    by_default = (found.turn.prefill, found.turn.decode, found.turn.overhead, found.chips_limit)
    assert {q.kind for q in by_default} == {"assumed"}
    assert [q.value for q in by_default] == [8192, 128, 0.25, 8]
    assert found.turn.budget.kind == "specified"
    assert found.bytes_per_param.inputs["bits"].kind == "assumed"
    spoken = need_for()
    assert {q.kind for q in (spoken.turn.prefill, spoken.turn.decode, spoken.turn.overhead, spoken.chips_limit)} == {
        "specified"
    }


def test_a_serving_chip_without_a_figure_is_refused() -> None:
    need = study(need=NEED | {"chip": "TPU v5e"}).need
    assert need is not None
    with pytest.raises(InputError, match="Expected the fp8 peak of TPU v5e, got no figure"):
        product(need, H100, "fp8")


def test_every_quantity_of_a_candidate_has_its_own_name() -> None:
    need = need_for(also=["TPU v5e"])
    names = [q.name for q in one(30e9, need).all]
    assert len(names) == len(set(names))
    assert all(name.startswith("candidate.30b.") for name in names)
