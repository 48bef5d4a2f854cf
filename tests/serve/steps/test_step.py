"""Properties that every step time must have, and hand-checked volumes of work."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import strategies as st
from tests.arithmetic.models import PUBLISHED, compressed, deepseek3_attention

from ridgeline.arithmetic.named import find_model
from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.measure import hit
from ridgeline.serve.steps.step import TERMS, steps

H100, H200 = device("h100-sxm-80gb"), device("h200-sxm-141gb")
LAID = {
    "dense": Deployment(PUBLISHED["llama3-8b"](), H100),
    "dense-tp": Deployment(PUBLISHED["llama3-70b"](), H100, tp=8, weights="fp8", kv="fp8"),
    "dense-pp": Deployment(PUBLISHED["llama3-70b"](), H100, tp=2, pp=4),
    "moe": Deployment(PUBLISHED["mixtral-8x7b"](), H100, tp=4),
    "moe-dp": Deployment(PUBLISHED["qwen3-235b"](), H200, tp=1, dp_attention=8, ep=8, weights="fp8"),
    "latent": Deployment(find_model("deepseek-v3")[0], H200, tp=8, weights="fp8", kv="fp8_ds_mla"),
    "hybrid": Deployment(find_model("qwen3.5-397b-a17b")[0], H200, tp=8, weights="fp8"),
    "windowed": Deployment(find_model("gpt-oss-120b")[0], H100, tp=2, weights="fp4"),
    "unmeasured": Deployment(PUBLISHED["llama3-8b"](), device("mi300x")),
}
MODELS = {name: steps(laid) for name, laid in LAID.items()}
every = pytest.mark.parametrize("name", list(MODELS))


@every
def test_terms_add_up_inside_the_interval(name: str) -> None:
    model = MODELS[name]
    for found in (model.decode(8, 1000), model.prefill(512, 100, 2), model.mixed(256, 0, 8, 1000)):
        assert set(found.terms) == set(TERMS)
        assert sum(found.terms.values()) == pytest.approx(found.seconds)
        assert np.all((found.low > 0) & (found.low <= found.seconds) & (found.seconds <= found.high))


@every
@sampled(batch=st.integers(1, 2000), more=st.integers(1, 500), context=st.integers(1, 200_000))
def test_more_to_decode_is_never_faster(name: str, batch: int, more: int, context: int) -> None:
    model = MODELS[name]
    found = model.decode([batch, batch + more, batch], [context, context, context + more]).seconds
    assert found[1] >= found[0] * (1 - 1e-12)
    assert found[2] >= found[0] * (1 - 1e-12)


@every
@sampled(tokens=st.integers(1, 50_000), more=st.integers(1, 5_000), past=st.integers(0, 50_000))
def test_more_to_read_is_always_slower(name: str, tokens: int, more: int, past: int) -> None:
    model = MODELS[name]
    found = model.prefill([tokens, tokens + more], past).seconds
    assert found[1] > found[0]


@every
@sampled(chunk=st.integers(1, 8192), more=st.integers(1, 2000), batch=st.integers(1, 500))
def test_a_longer_chunk_beside_decodes_is_slower(name: str, chunk: int, more: int, batch: int) -> None:
    model = MODELS[name]
    found = model.mixed([chunk, chunk + more], 0, batch, 2000).seconds
    assert found[1] > found[0]


@every
def test_a_mixed_step_takes_at_least_each_part(name: str) -> None:
    model = MODELS[name]
    mixed = model.mixed(512, 1024, 32, 4096).seconds
    assert mixed > model.decode(32, 4096).seconds
    assert mixed > model.prefill(512, 1024).terms["attention"]


@every
def test_arrays_are_what_single_calls_are(name: str) -> None:
    model = MODELS[name]
    batch, context = np.array([1, 7, 300]), np.array([17, 900, 33000])
    each = [model.decode(b, c).seconds[0] for b, c in zip(batch, context, strict=True)]
    assert model.decode(batch, context).seconds == pytest.approx(each)
    assert model.decode(batch[:, None], context[None, :]).seconds.shape == (3, 3)


def test_one_chip_sends_nothing() -> None:
    found = MODELS["dense"].decode([1, 64], 1000).terms
    assert not np.any(found["tensor_parallel"] + found["expert_exchange"] + found["pipeline"])
    assert np.all(MODELS["dense-tp"].decode([1, 64], 1000).terms["tensor_parallel"] > 0)
    assert np.all(MODELS["dense-pp"].decode([1, 64], 1000).terms["pipeline"] > 0)
    exchanged = MODELS["moe-dp"].decode(64, 1000).terms
    assert exchanged["expert_exchange"] > 0
    assert exchanged["tensor_parallel"] == 0


def test_double_the_bandwidth_is_never_slower() -> None:
    slow = LAID["unmeasured"]
    assert slow.device.hbm_bandwidth is not None
    bandwidth = given("bandwidth", 2 * float(slow.device.hbm_bandwidth.base), "B/s/chip")
    fast = steps(replace(slow, device=replace(slow.device, hbm_bandwidth=bandwidth)))
    for batch in (1, 16, 256):
        assert fast.decode(batch, 4000).seconds < MODELS["unmeasured"].decode(batch, 4000).seconds
        assert fast.prefill(batch * 16).seconds <= MODELS["unmeasured"].prefill(batch * 16).seconds


def test_a_mixture_reads_k_experts_for_one_token_and_all_for_many() -> None:
    (mixture,) = MODELS["moe"].work.mixtures
    assert hit(mixture, np.array([1.0, 1e4])) == pytest.approx([2, 8])
    one, many = MODELS["moe"].decode([1, 4000], 1).bytes
    expert = 3 * 4096 * 14336 * 2 * 32
    cache = 2 * 8 * 128 * 2 * 32 * 4000
    assert many - one == pytest.approx(6 * expert + cache, rel=0.001)


def test_bytes_and_flops_of_a_dense_step() -> None:
    found, params = MODELS["dense"].decode(4, 1000), 8.03e9 - 128256 * 4096  # the input table is looked up
    cache = 4 * 1000 * 32 * 2 * 8 * 128 * 2
    assert found.bytes == pytest.approx(2 * params + cache, rel=0.005)
    assert found.flops == pytest.approx(4 * (2 * params + 4 * 32 * 128 * 1000 * 32), rel=0.005)


def test_prompts_compute_the_triangle_and_sample_once() -> None:
    found, layers = MODELS["dense"].prefill(2048), 8.03e9 - 2 * 128256 * 4096
    attention = 4 * 32 * 128 * 2048 * 2049 / 2 * 32
    assert found.flops == pytest.approx(2048 * 2 * layers + 2 * 128256 * 4096 + attention, rel=0.005)


def test_a_window_bounds_decode_and_prefill() -> None:
    core = next(core for core in MODELS["windowed"].work.cores if core.window)
    whole = next(core for core in MODELS["windowed"].work.cores if not core.window)
    tables = {item.core: item for item in MODELS["windowed"].tables.cores}
    far = np.array([100_000.0])
    assert tables[core].decode(np.array([8.0]), far).seconds < tables[whole].decode(np.array([8.0]), far).seconds / 10
    one = np.ones(1)
    assert tables[core].prompted(one, far, 0 * one).seconds < tables[whole].prompted(one, far, 0 * one).seconds / 10


def test_states_cost_the_same_at_any_context() -> None:
    model = MODELS["hybrid"]
    assert model.tables.states is not None
    assert model.work.states[0].uses == 45
    near, far = model.decode(8, [1000, 100_000]).terms["attention"]
    assert far - near < MODELS["latent"].decode(8, 100_000).terms["attention"]


def test_rebuilding_a_past_of_latents_costs_matmuls() -> None:
    fresh, later = MODELS["latent"].prefill(512, [0, 30_000]).terms["dense"]
    assert later > 1.2 * fresh
    dense = MODELS["dense"].prefill(512, [0, 30_000]).terms["dense"]
    assert dense[0] == dense[1]


def test_more_sequences_a_chip_are_more_tokens_a_second() -> None:
    batch = np.array([1, 8, 64])
    rate = batch / MODELS["dense"].decode(batch, 1000).seconds
    assert np.all(np.diff(rate) > 0)


def test_a_compressed_past_is_shorter() -> None:
    spec = compressed(window=128, compress=16, top_k=64)
    model = steps(Deployment(spec, H100))
    found = model.decode(4, [64, 1_000_000])
    assert np.all(np.isfinite(found.seconds))
    assert steps(Deployment(deepseek3_attention(1), H100)).decode(4, 1_000_000).bytes > found.bytes[1]


@pytest.mark.parametrize("bad", [0, -3, float("nan"), float("inf")])
def test_bad_sizes_are_refused(bad: float) -> None:
    model = MODELS["dense"]
    with pytest.raises(InputError, match="at least 1"):
        model.decode(bad, 1000)
    with pytest.raises(InputError, match="at least 1"):
        model.decode(1, bad)
    with pytest.raises(InputError, match="at least 1"):
        model.prefill(bad)
    with pytest.raises(InputError, match="at least 1"):
        model.prefill(10, 0, bad)
    with pytest.raises(InputError, match="at least 1"):
        model.mixed(bad, 0, 1, 10)


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf")])
def test_a_negative_past_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match="zero tokens or more"):
        MODELS["dense"].prefill(10, bad)


def test_an_estimate_takes_less_than_five_milliseconds() -> None:
    model, taken = MODELS["latent"], []
    for _ in range(20):
        start = time.process_time()
        model.decode(64, 4000)
        model.prefill(1000)
        taken.append(time.process_time() - start)
    assert min(taken) < 0.005


def test_more_chips_than_heads_are_refused() -> None:
    with pytest.raises(InputError, match="divisor"):
        Deployment(PUBLISHED["llama3-8b"](), H100, tp=64)
