"""What follows from a capacity."""

import pytest
from tests.serve.capacity.asked import SPECS, llama, small

from ridgeline.serve.capacity.capacity import Capacity
from ridgeline.serve.capacity.facts import facts_of
from ridgeline.serve.capacity.settings import Settings


@pytest.mark.parametrize(("tp", "copies"), [(1, 1), (4, 1), (8, 2)])
def test_copies_of_heads(tp: int, copies: int) -> None:
    found = facts_of(small(tp=tp)).copies
    assert found.keys() == {"heads"}
    assert found["heads"].value == copies


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_copies_of_latents(tp: int) -> None:
    found = facts_of(small("latents", tp=tp)).copies
    assert found.keys() == {"latents"}
    assert found["latents"].value == tp


def test_windows_ignored() -> None:
    assert facts_of(small()).windowed is None
    ratio = facts_of(small("windows", 4096)).windowed
    assert ratio is not None
    assert ratio.value == pytest.approx(2 * 4096 / (4096 + 1000))
    whole, windowed = (small("windows", 4096, Settings(windows=on)) for on in (False, True))
    dense = (float(item.dense.per_sequence.value) for item in (whole, windowed))
    assert next(dense) / next(dense) == pytest.approx(float(ratio.value))


def _mean_waste(name: str, page: int) -> float:
    """The mean over all lengths of what pages take beyond the tokens."""
    made = [small(name, length, Settings(page=page, aligned=False)) for length in range(2048, 2048 + page)]
    return sum(float(m.paged.per_sequence.value) - float(m.dense.per_sequence.value) for m in made) / page


@pytest.mark.parametrize("name", ["full", "windows", "latents"])
def test_expected_waste_is_the_mean_over_lengths(name: str) -> None:
    found = facts_of(small(name, 2048, Settings(page=16, aligned=False)))
    assert float(found.waste.value) == pytest.approx(_mean_waste(name, 16))
    assert float(found.worst.value) >= float(found.waste.value)


def test_worst_waste_is_one_token_into_a_page() -> None:
    found = facts_of(small("full", 2049, Settings(page=16)))
    worst = float(found.capacity.paged.per_sequence.value) - float(found.capacity.dense.per_sequence.value)
    assert float(found.worst.value) == pytest.approx(worst)


def test_a_padded_state_is_waste() -> None:
    aligned, plain = (facts_of(small("states", 2048, Settings(aligned=on))) for on in (True, False))
    assert float(aligned.fragmentation.value) > 3 * float(plain.fragmentation.value)


def _more_memory(found: Capacity, gigabytes: float) -> float:
    told = Settings(memory=80e9 + gigabytes * 1e9, utilisation=1.0)
    plain = Settings(memory=80e9, utilisation=1.0)
    return float(llama(settings=told).sequences.value) - float(llama(settings=plain).sequences.value)


def test_what_a_gigabyte_buys() -> None:
    found = facts_of(llama())
    assert 100 * float(found.per_gb.value) == pytest.approx(_more_memory(found.capacity, 100), abs=1)
    assert float(found.tokens_per_gb.value) == pytest.approx(float(found.per_gb.value) * 8192)


def test_gains_are_what_the_change_would_give() -> None:
    gains = {gain.what: gain for gain in facts_of(llama()).gains}
    assert gains["kv in fp8"].sequences.value == llama(kv="fp8").sequences.value
    assert gains["weights in int4"].sequences.value == llama(weights="int4").sequences.value
    assert all(float(gain.more.value) > 0 for gain in gains.values())
    assert "kv in fp8_ds_mla" not in gains


def test_a_change_that_is_in_place_is_not_offered() -> None:
    assert "kv in fp8" not in {gain.what for gain in facts_of(llama(kv="fp8")).gains}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("tp", [1, 8])
def test_every_architecture_has_all_facts(name: str, tp: int) -> None:
    found = facts_of(small(name, tp=tp))
    assert 0 <= float(found.fragmentation.value) < 100
    assert float(found.per_gb.value) > 0
