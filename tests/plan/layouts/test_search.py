"""The search against brute force, and what it says when nothing fits."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.plan.search_cases import dense, found, mixture, request

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.layouts import search as searching
from ridgeline.plan.layouts.search import explore, search, short, spelled
from ridgeline.plan.layouts.space import Space, plans
from ridgeline.plan.steps import cluster, fits, layout
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.step import predict


@pytest.mark.parametrize("spec", [dense(), mixture()], ids=["dense", "moe"])
def test_finds_what_brute_force_finds(spec: object, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(chips="16xH100", batch=(64, 4096), spec=spec)
    whole = Layout.join(list(plans(asked.spec, asked.cluster, asked.batch, asked.space)))
    whole = whole.take(layout.feasible(asked.spec, *asked.batch, whole))
    held = fits.held(asked.spec, asked.batch, whole, asked.software)
    room = fits.which_fit(held, asked.cluster)
    steps = predict(asked.spec, asked.cluster, asked.batch, whole.take(room))
    monkeypatch.setattr(searching, "KEEP", 10)
    result = search(asked)
    assert result.counts.divide == len(whole)
    assert result.counts.fit == int(room.sum())
    assert float(result.steps.step_s[0]) == pytest.approx(float(steps.step_s.min()), rel=1e-3)
    assert np.all(result.held_bytes <= result.limit_bytes)


def test_small_blocks_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(chips="16xH100", batch=(64, 4096))
    one = search(asked)
    monkeypatch.setattr(plans, "__defaults__", (100,))
    many = search(asked)
    assert many.counts == one.counts
    for rows in ("front", "meshes"):
        first, second = (part.take(getattr(part, rows)) for part in (one, many))
        assert [first.layouts.row(i) for i in range(len(first))] == [second.layouts.row(i) for i in range(len(second))]


def test_fastest_first_and_fronts_are_positions() -> None:
    result = found()
    steps = result.steps.step_s
    assert np.all(np.diff(np.floor(np.log(steps) / 1e-3)) >= 0)
    assert result.front[0] == 0
    assert result.meshes[0] == 0
    assert np.all(np.diff(result.meshes) > 0)
    assert np.all((result.headroom >= 0) & (result.headroom < 1))


def test_reserved_memory_is_not_used() -> None:
    tight = search(replace(request(), reserved_bytes=60e9))
    assert tight.limit_bytes == 20e9
    assert tight.counts.fit < found().counts.fit
    assert float(tight.held_bytes.max()) <= 20e9


def test_above_memory_names_the_stage_the_miss_and_the_chips_that_would_do() -> None:
    asked = request(chips="8xH100", batch=(256, 4096), spec=dense(layers=80, d_model=8192, d_ff=28672, heads=64))
    with pytest.raises(InfeasibleError) as caught:
        search(asked)
    error = caught.value
    assert error.limit == "memory of the only pipeline stage"
    assert "GB too much" in error.nearest
    assert "it fits 32 chips: " in error.hint
    assert explore(replace(asked, cluster=cluster.parse("32xH100")))[0] is not None


def test_above_memory_with_fixed_columns_names_the_nearest_plan_that_fits() -> None:
    fixed = {"tp": 1, "pp": 1, "zero": 0, "recompute": "none", "micro_batch": 4}
    with pytest.raises(InfeasibleError, match=r"Expected at most 80\.0 GB") as caught:
        search(request(fixed=fixed))
    assert caught.value.hint.startswith("the nearest plan that fits: ")
    assert "micro-batch 4" in caught.value.hint  # one change is enough: the rest stays


def test_the_binding_stage_of_a_pipeline_is_named() -> None:
    fixed = {"tp": 1, "pp": 8, "dp": 8, "zero": 0, "recompute": "none", "micro_batch": 16, "chunks": 1}
    with pytest.raises(InfeasibleError, match="memory of pipeline stage 1 of 8"):
        search(request(fixed=fixed))


def test_the_first_count_of_chips_that_fits_is_named() -> None:
    asked = request(chips="1xL4", batch=(16, 4096), spec=dense(layers=80, d_model=16384, d_ff=53248, heads=64))
    with pytest.raises(InfeasibleError) as caught:
        search(asked)
    found = re.match(r"it fits (\d+) chips: ", caught.value.hint)
    assert found is not None
    chips = int(found[1])
    fits_there = [explore(replace(asked, cluster=cluster.parse(f"{n}xL4")))[0] is not None for n in (chips // 2, chips)]
    assert fits_there == [False, True]


def test_a_model_that_fits_nowhere() -> None:
    asked = request(chips="8xL4", batch=(1, 2**24 + 1), spec=dense(layers=80, d_model=16384, d_ff=53248, heads=64))
    with pytest.raises(InfeasibleError, match="no plan of this batch fits"):
        search(asked)


@pytest.mark.parametrize(
    ("batch", "fixed", "text"),
    [
        ((256, 4096), {"tp": 64}, "heads over tp to divide, got 32 over 64"),
        ((100, 4096), {"dp": 64}, "sequences over dp\\*micro_batch to divide, got 100 over 64"),
        ((7, 4096), {"tp": 1, "pp": 1, "cp": 1}, "sequences over dp\\*micro_batch to divide, got 7 over 64"),
        ((256, 4096), {"pp": 64}, "a layer for every stage's chunks, got 32 over 64"),
    ],
)
def test_what_does_not_divide(batch: tuple[int, int], fixed: dict[str, int], text: str) -> None:
    with pytest.raises(InfeasibleError, match=text):
        search(request(batch=batch, fixed=fixed))


def test_a_batch_that_no_mesh_divides_names_the_next_that_does() -> None:
    with pytest.raises(InfeasibleError) as caught:
        search(request(batch=(7, 4096), spec=dense(heads=1, kv_heads=1, head_dim=128, layers=4)))
    assert caught.value.nearest in ("64 sequences", "dp*micro_batch = 7")


def test_more_ranks_than_chips() -> None:
    with pytest.raises(InputError, match="at most 64 ranks"):
        search(request(fixed={"tp": 8, "pp": 16}))


@pytest.mark.parametrize("network", ["infiniband", "carrier-pigeon"])
def test_an_unknown_interconnect(network: str) -> None:
    with pytest.raises(InputError, match="a known interconnect"):
        cluster.parse("64xH100", network=network)


@pytest.mark.parametrize("speed", [0.0, -1.0])
def test_a_bandwidth_that_is_not_positive(speed: float) -> None:
    asked = request()
    with pytest.raises(InputError, match="above zero"):
        search(replace(asked, cluster=replace(asked.cluster, network_bytes_per_s=speed)))


def test_plans_in_words() -> None:
    plan = Layout.of(tp=4, cp=2, pp=2, dp=8, ep=4, etp=2, chunks=8, zero=3, shard=4, sequence_parallel=1).row(0)
    long = "tp=4 cp=2 pp=2 dp=8 ep=4 etp=2 interleaved x8 micro-batch 1 ZeRO-3 over 4 SP"
    assert spelled(plan) == long
    assert short(plan) == "tp4 cp2 pp2x8 dp8 ep4 etp2 b1 z3/4 sp"
    assert short(Layout.of(pp=4, schedule="zb-h1", recompute="full").row(0)) == "pp4 b1 zb-h1 rc-full"


def test_the_whole_space_is_never_slower() -> None:
    asked = request()
    whole = search(replace(asked, space=Space.whole(asked.cluster)))
    assert whole.counts.tried > found().counts.tried
    assert float(whole.steps.step_s[0]) <= float(found().steps.step_s[0]) * 1.001
