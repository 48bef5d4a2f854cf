"""The interactive turn and the smallest chip count that answers in time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.arithmetic.worked import chip, number, q

from ridgeline.arithmetic.latency import (
    Chip,
    ChipsNeeded,
    Served,
    Turn,
    chips_needed,
    decode_step,
    interactive_turn,
    pipelined_prefill,
    token_rate,
)
from ridgeline.core.case import Case
from ridgeline.core.catalog import device
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.core.quantity import Quantity

V5E = chip("v5e")
TURN = Turn(q(8192, "token", "prefill"), q(128, "token", "decode"), q(0.25, "s", "overhead"), q(1.0, "s", "budget"))


def served(params: float) -> Served:
    return Served(q(params, "param", "params"), q(2 * params, "B", "weights"))


def turn_s(model: Served, turn: Turn, chips: float) -> float:
    return float(number(interactive_turn(model, V5E, turn, q(chips, "chip", "chips")).total))


def hop(seconds: float) -> Turn:
    return replace(TURN, hop=q(seconds, "s/token/chip", "hop"))


@given(params=st.floats(1e8, 1e12), budget=st.floats(0.26, 20.0), seconds=st.sampled_from([0.0, 1e-7, 1e-6, 2e-5]))
def test_the_count_is_the_smallest_that_meets_the_budget(params: float, budget: float, seconds: float) -> None:
    turn = replace(hop(seconds), budget=q(budget, "s", "budget"))
    model = served(params)
    try:
        need = chips_needed(model, V5E, turn)
    except InfeasibleError:
        tried = [turn_s(model, turn, n) for n in np.unique(np.geomspace(1, 1e7, 400).round())]
        hold = number(chips_that_hold(model))
        assert min(tried) > budget * (1 - 1e-9) or turn_s(model, turn, hold) > budget
        return
    exact, hold = number(need.exact), number(need.hold)
    assert exact >= hold
    assert turn_s(model, turn, exact) <= budget * (1 + 1e-9)
    if exact > hold:
        assert turn_s(model, turn, exact - 1) > budget * (1 - 1e-9)
    if need.doubling is not None:
        power = number(need.doubling)
        assert power >= exact > power / 2
        assert float(np.log2(power)).is_integer()
        assert number(need.meets) == 1


def chips_that_hold(model: Served) -> Quantity:
    """The chips that hold the weights, from a turn that has all the time in the world."""
    return chips_needed(model, V5E, replace(TURN, budget=q(1e9, "s", "budget"))).hold


def test_without_hop_and_with_a_hop_of_zero_agree() -> None:
    assert number(chips_needed(served(70e9), V5E, hop(0)).exact) == number(chips_needed(served(70e9), V5E, TURN).exact)


def test_memory_sets_the_count_where_time_is_plenty() -> None:
    need = chips_needed(served(70e9), V5E, replace(TURN, budget=q(1, "h", "budget")))
    assert (number(need.exact), number(need.hold)) == (9, 9)
    assert need.doubling is not None
    assert number(need.doubling) == 16


def test_budget_below_its_overhead_is_bad_input() -> None:
    with pytest.raises(
        InputError, match=r"above its fixed overhead of 0\.250 s, got '0\.200 s', at the test"
    ) as caught:
        chips_needed(served(8e9), V5E, replace(TURN, budget=q(0.2, "s", "budget")))
    assert caught.value.exit_code == 2


def test_budget_that_is_all_overhead_is_met_by_no_count() -> None:
    with pytest.raises(InfeasibleError) as caught:
        chips_needed(served(8e9), V5E, replace(TURN, budget=q(250, "ms", "budget")))
    assert "fixed overhead" in caught.value.limit
    assert caught.value.exit_code == 1


def test_latency_per_chip_can_rule_out_every_count() -> None:
    with pytest.raises(InfeasibleError) as caught:
        chips_needed(served(8e9), V5E, hop(1e-3))
    assert "latency per chip" in caught.value.limit
    best = min(turn_s(served(8e9), hop(1e-3), n) for n in range(1, 200))
    assert caught.value.nearest == f"{best:.2f} s a turn on 5 chips"


def test_a_count_may_do_where_no_power_of_two_does() -> None:
    turn = hop(1.617e-4)
    need = chips_needed(served(17e9), V5E, turn)
    assert need.doubling is None
    assert number(need.exact) == 17
    assert number(need.time.total) <= 1.0
    assert min(turn_s(served(17e9), turn, 2**power) for power in range(20)) > 1.0


def _need(available: int) -> ChipsNeeded:
    return chips_needed(served(70e9), V5E, TURN, q(available, "chip", "available"))


@pytest.mark.parametrize(
    ("available", "limit"),
    [(8, "memory: the weights need 9 chips, 8 chips available"), (36, "36 chips available, 37 chips needed")],
)
def test_too_few_chips(available: int, limit: str) -> None:
    with pytest.raises(InfeasibleError) as caught:
        _need(available)
    assert caught.value.limit == limit


@pytest.mark.parametrize(("available", "doubling"), [(37, None), (63, None), (64, 64), (1000, 64)])
def test_the_doubling_series_stops_at_what_is_available(available: int, doubling: int | None) -> None:
    need = _need(available)
    assert number(need.exact) == 37
    assert (None if need.doubling is None else number(need.doubling)) == doubling
    assert number(need.time.total) == pytest.approx(turn_s(served(70e9), TURN, doubling or 37))


def test_candidates_agree_with_single_models() -> None:
    sizes = np.array([1e9, 8e9, 17e9, 35e9, 70e9, 400e9])
    many = Served(q(sizes, "param", "params"), q(2 * sizes, "B", "weights"))
    need = chips_needed(many, V5E, hop(1e-6))
    alone = [chips_needed(served(size), V5E, hop(1e-6)) for size in sizes]
    np.testing.assert_array_equal(need.exact.value, [number(one.exact) for one in alone])
    np.testing.assert_array_equal(need.hold.value, [number(one.hold) for one in alone])
    assert need.doubling is not None
    np.testing.assert_array_equal(need.doubling.value, [number(one.doubling) for one in alone if one.doubling])
    np.testing.assert_allclose(need.time.total.value, [number(one.time.total) for one in alone])


def test_candidates_that_nothing_helps_are_marked_and_stay_numbers() -> None:
    sizes = np.array([1e9, 8e9, 70e9])
    need = chips_needed(Served(q(sizes, "param", "params"), q(2 * sizes, "B", "weights")), V5E, hop(1.5e-4))
    assert np.asarray(need.meets.value).tolist() == [1, 1, 0]
    assert np.isfinite(need.exact.value).all()
    with pytest.raises(InfeasibleError):
        chips_needed(served(70e9), V5E, hop(1.5e-4))


def test_a_turn_on_candidate_chip_counts() -> None:
    found = interactive_turn(served(70e9), V5E, TURN, q(np.array([1.0, 64.0]), "chip", "chips"))
    np.testing.assert_allclose(found.total.value, [27.95, 0.683], rtol=1e-3)


def test_a_batch_shares_the_sweep_until_it_is_bound_by_compute() -> None:
    one = q(1, "chip", "chips")
    base = number(decode_step(served(8e9), one, V5E))
    assert base == pytest.approx(16e9 / 0.819e12)
    small = replace(served(8e9), batch=q(8, "1", "batch"))
    assert number(decode_step(small, one, V5E)) == pytest.approx(base)
    large = replace(served(8e9), batch=q(1024, "1", "batch"))
    assert number(decode_step(large, one, V5E)) == pytest.approx(1024 * 2 * 8e9 / 197e12)


@given(batch=st.integers(1, 64), cache=st.floats(1e6, 1e11))
def test_every_sequence_of_a_batch_adds_its_cache(batch: int, cache: float) -> None:
    model = replace(served(8e9), batch=q(batch, "1", "batch"), cache=q(cache, "B", "cache"))
    swept = (16e9 + batch * cache) / 0.819e12
    assume(swept > batch * 16e9 / 197e12)
    step = decode_step(model, q(1, "chip", "chips"), V5E)
    assert number(step) == pytest.approx(swept)
    assert number(token_rate(step)) == pytest.approx(1 / swept)


def test_a_mixture_sweeps_less_than_it_stores() -> None:
    model = Served(q(50e9, "param", "active"), q(1400e9, "B", "stored"), swept=q(100e9, "B", "swept"))
    need = chips_needed(model, V5E, TURN)
    assert number(need.hold) == 88
    assert number(need.time.step) == pytest.approx(
        100e9 / (number(need.time.decode.inputs["step"].inputs["chips"]) * 0.819e12)
    )


def test_own_forward_flops_replace_2n() -> None:
    model = replace(served(8e9), forward=q(32e9, "FLOP/token", "forward"))
    one = q(1, "chip", "chips")
    plain = number(interactive_turn(served(8e9), V5E, TURN, one).prefill)
    assert number(interactive_turn(model, V5E, TURN, one).prefill) == pytest.approx(2 * plain)


def test_chip_of_a_device() -> None:
    found = Chip.of(device("H100"), "bf16")
    assert found.memory is device("H100").hbm_bytes
    with pytest.raises(InputError, match="fp8 peak of A100"):
        Chip.of(device("A100"), "fp8")


@given(stages=st.integers(1, 64), chunks=st.integers(1, 64), compute=st.floats(1e-3, 1.0), transfer=st.floats(0, 1.0))
def test_pipelining_never_costs_time(stages: int, chunks: int, compute: float, transfer: float) -> None:
    found = pipelined_prefill(
        q(stages, "1", "s"), q(chunks, "1", "c"), q(compute, "s", "compute"), q(transfer, "s", "transfer")
    )
    assert number(found.pipelined) <= number(found.serial) * (1 + 1e-12)


def test_two_models_fit_into_one_case() -> None:
    case = Case("test", "two models")
    for size in (70e9, 8e9):
        name = f"m{size / 1e9:.0f}b"
        model = Served(q(size, "param", f"{name}.params"), q(2 * size, "B", f"{name}.weights"))
        need = chips_needed(model, V5E, TURN, prefix=name)
        assert need.doubling is not None
        case.add(need.hold, need.exact, need.doubling, need.time.total, need.meets)
    assert case.find("m70b.serve.chips").value == 64
    assert case.find("m8b.serve.chips").value == 8
    assert case.dumps()


@pytest.mark.parametrize("field", ["active", "stored"])
def test_a_model_of_no_size_is_refused(field: str) -> None:
    unit = "param" if field == "active" else "B"
    changed: Served = replace(served(8e9), **{field: q(0, unit, field)})
    with pytest.raises(InputError, match=f"above zero.*{field}"):
        chips_needed(changed, V5E, TURN)
