"""The arrays against one model at a time, the worked numbers, and the speed of the search."""

import math
import time

import numpy as np
import pytest
from tests.serve.codesign.asked import LIMITS, need

from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.params import params
from ridgeline.core.catalog import law
from ridgeline.core.quantity import given
from ridgeline.serve.codesign.evaluate import Configuration, Group, groups, losses_under


@pytest.fixture(scope="module")
def found() -> list[Group]:
    return groups(need())


def some(found: list[Group]) -> list[Configuration]:
    return [Configuration(group, index) for group in found for index in (0, group.frame.size - 1)]


def test_a_turn_by_hand(found: list[Group]) -> None:
    """8,192 tokens at 2N FLOPs, 128 sweeps of weights and the mean cache, on four H100, and a quarter of a second."""
    for one in some(found):
        total, active = (float(q.value) for q in (params(one.spec).total, params(one.spec).active))
        weight = {"bf16": 2, "fp8": 1}[one.group.weights]
        peak = {"bf16": 989.4e12, "fp8": 1978.9e12}[one.group.weights]
        dtype = one.group.kv
        cache = float(kv_cache(one.spec, given("T", 8192 + 64, "token"), dtype=dtype).per_sequence.value)
        copies = 4 if one.group.frame.attention == "mla" else max(1, 4 / one.sides["kv_heads"])
        swept = active if one.group.frame.mixture else total  # one sequence reaches its own experts alone
        step = (swept * weight + cache * copies) / (4 * 3.35e12)
        turn = 2 * active * 8192 / (4 * peak) + 128 * step + 0.25
        scale = 0.02 if dtype == "fp8" else 1e-9  # scales of an 8-bit cache
        assert float(one.figure("turn").value) == pytest.approx(turn, rel=scale), one.label


def test_the_loss_by_hand(found: list[Group]) -> None:
    for one in some(found):
        total, active = (float(one.figure(name).value) for name in ("total", "active"))
        tokens = 1e24 / 6 / active
        effective = total
        if one.group.frame.mixture:
            effective = min(total, dense_equal(active, tokens, one.sides["experts"] / one.sides["top_k"]))
        loss = 1.8172 + 482.01 / effective**0.3478 + 2085.43 / tokens**0.3658
        assert float(one.figure("loss").value) == pytest.approx(loss, rel=1e-9)
        assert float(one.figure("tokens").value) == pytest.approx(tokens)


def dense_equal(active: float, tokens: float, experts: float) -> float:
    """The dense N with the same loss under Ludziejewski et al. 2025, by bisection."""

    def joint(n: float, e: float) -> float:
        eh = 1 / (1 / (e - 1 + 1 / (1 / 2.0732 - 1 / 290.4521)) + 1 / 290.4521)
        fold = math.log(eh)
        return float(
            35.91 * eh**-0.2285 * n ** (-0.1889 + 0.0098 * fold)
            + 35.98 * eh**0.5529 * tokens ** (-0.1775 - 0.0259 * fold)
            + 1.3637
        )

    low, high = active / 100, active * 1e4
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if joint(middle, 1) > joint(active, experts) else (low, middle)
    return low


def test_a_batch_reaches_more_experts() -> None:
    group = next(g for g in groups(need({"batches": [1, 4, 64]}, **LIMITS)) if g.frame.mixture)
    c = group.frame.columns
    same = np.flatnonzero((c["d_model"] == c["d_model"][0]) & (c["layers"] == c["layers"][0]) & (c["kv_heads"] == 2))
    for index in same:
        one = Configuration(group, int(index))
        total, active = (float(one.figure(name).value) for name in ("total", "active"))
        experts = (total - active) / (1 - 2 / 8)
        share = 1 - (1 - 2 / 8) ** one.sides["batch"]
        read = next(q for q in one.figure("tpot").walk() if q.name == "codesign.swept")
        assert float(read.value) == pytest.approx(2 * (total - experts + experts * share))


def test_memory_holds_weights_and_caches(found: list[Group]) -> None:
    one = some(found)[0]
    cache = float(kv_cache(one.spec, given("T", 8320, "token")).per_sequence.value) * max(1, 4 / one.sides["kv_heads"])
    room = 4 * 80e9 * 0.9 - 4 * (1.0e9 + 2.1e9)
    resident = 2 * float(one.figure("total").value) + cache
    assert one.stress["memory"] == pytest.approx(resident / room, rel=0.02)


@pytest.mark.parametrize(("size", "chips"), [(70e9, 64), (35e9, 32), (17e9, 16), (8e9, 8)])
def test_chips_of_a_turn_are_those_of_the_worked_numbers(size: float, chips: int) -> None:
    """Section C, TPU v5e: the doubling series at which N fits a turn of a second; without a cache, as there."""
    for count, fits in ((chips, True), (chips // 2, False)):
        axes = {"widest": 16384, "aspects": [128], "kv_heads": [1], "mixtures": [], "attention": ["gqa"],
                "weights": ["bf16"], "kv": ["bf16"]}  # fmt: skip
        (group,) = groups(need(axes, device="TPU v5e", chips=count, turn="1s"))
        total, turn = (np.asarray(group.figures[name].value) for name in ("total", "turn"))
        swept = np.asarray(group.figures["tpot"].inputs["bytes"].inputs["cache"].value)
        bare = turn - 128 * swept / (count * 819e9)
        per_param = (bare - 0.25) / total
        assert np.allclose(per_param, per_param[0])
        assert bool(size * per_param[0] + 0.25 <= 1.0) is fits


def test_other_laws(found: list[Group]) -> None:
    group = next(g for g in found if g.frame.mixture)
    active, tokens = (float(group.figures[name].value[0]) for name in ("active", "tokens"))  # type: ignore[index]
    joint = losses_under(group.need, law("ludziejewski-2025"), group)
    effective = dense_equal(active, tokens, 4)
    assert float(group.figures["effective"].value[0]) == pytest.approx(effective, rel=1e-6)  # type: ignore[index]
    assert joint[0] > 1.3637
    hoffmann = losses_under(group.need, law("hoffmann-2022"), group)
    assert hoffmann[0] == pytest.approx(1.69 + 406.4 / effective**0.34 + 410.7 / tokens**0.28, rel=1e-6)


def test_ten_thousand_configurations_a_second() -> None:
    asked = need({"widest": 16384, "narrowest": 1024, "kv_heads": [1, 2, 4, 8, 16], "mixtures": [[8, 2], [64, 8]]})
    start = time.perf_counter()
    size = sum(group.frame.size for group in groups(asked))
    assert size > 2000
    assert size / (time.perf_counter() - start) > 10_000
