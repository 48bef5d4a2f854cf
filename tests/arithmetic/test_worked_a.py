"""Worked numbers, section A, and the parameter half of E. Each test, or id, names its row."""

import pytest
from tests.arithmetic.models import deepseek3_attention, shaped
from tests.arithmetic.worked import number, printed, q, rates

from ridgeline.arithmetic.activations import rough_activations
from ridgeline.arithmetic.budget import training_time
from ridgeline.arithmetic.flops import Recompute, Term, flops
from ridgeline.arithmetic.kv import concurrent_requests, kv_cache, plain_kv_cache
from ridgeline.arithmetic.latency import cache_sweep, token_rate
from ridgeline.arithmetic.memory import state_of_count, training_state
from ridgeline.arithmetic.mfu import hfu_of_mfu
from ridgeline.arithmetic.napkin import (
    GatedLayer,
    Shape6ND,
    attention_share,
    error_of_6nd,
    flops_per_token,
    gated_layer_flops,
    matmul_backward,
    matmul_flops,
    tokens_per_param,
    training_compute,
)
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.roofline import decode_intensity, ridge_point
from ridgeline.arithmetic.sharding import Sharding
from ridgeline.arithmetic.spec import ModelSpec, Part
from ridgeline.arithmetic.tiles import MatmulShape, padded_matmul, tile_efficiency
from ridgeline.core.quantity import Quantity

N70 = q(70e9, "param", "N")


def _matmul(m: int, k: int, n: int) -> MatmulShape:
    return MatmulShape(q(m, "1", "m"), q(k, "1", "k"), q(n, "1", "n"))


def test_matmul() -> None:
    shape = _matmul(1, 4096, 16384)
    assert number(matmul_flops(shape)) == 134_217_728 == 2 * 4096 * 16384


@pytest.mark.parametrize("shape", [(1024, 4096, 11008), (1, 1, 1), (7, 13, 8191)])
def test_backward_over_forward(shape: tuple[int, int, int]) -> None:
    assert number(matmul_backward(_matmul(*shape))) / number(matmul_flops(_matmul(*shape))) == 2.0


def test_padded_matmul_tile_128() -> None:
    found = padded_matmul(_matmul(1024, 4000, 4000), q(128, "1", "tile"))
    assert number(found.useful) == 32_768_000_000
    assert number(found.executed) == 34_359_738_368
    assert number(found.efficiency) == printed("95.4")


@pytest.mark.parametrize(("width", "share"), [(11000, "99.9"), (11008, "100"), (4097, "97.0"), (129, "50.4")])
def test_tile_efficiency_tile_128(width: int, share: str) -> None:
    assert number(tile_efficiency(q(width, "1"), q(128, "1"))) == printed(share)


def _small(kv_heads: int) -> ModelSpec:
    return shaped(layers=32, d_model=4096, d_ff=11008, heads=32, kv_heads=kv_heads, vocab=32000)


def test_block_params_swiglu() -> None:
    found = params(_small(8))
    block = {part: found.parts[part].inputs for part in (Part.ATTENTION, Part.MLP, Part.NORM)}
    attention, mlp = block[Part.ATTENTION]["layer0_mixer"], block[Part.MLP]["layer0_ffn"]
    norms = block[Part.NORM]["layer0_norms"]
    assert [number(item) for item in (attention, mlp, norms)] == [41_943_040, 135_266_304, 8_192]
    assert number(attention) + number(mlp) + number(norms) == 177_217_536


def test_model_params() -> None:
    found = params(_small(32))
    assert number(found.total) / 1e9 == printed("6.74")
    assert number(found.non_embedding) / 1e9 == printed("6.48")
    assert (number(found.total) - number(found.non_embedding)) / 1e9 == printed("0.26")


@pytest.mark.parametrize(
    ("d_model", "layers", "total", "share"),
    [(512, 8, "0.30", "88.6"), (1024, 12, "0.73", "72.3"), (4096, 32, "10.69", "19.6"), (8192, 80, "90.09", "4.7")],
)
def test_embedding_share(d_model: int, layers: int, total: str, share: str) -> None:
    heads = d_model // 128
    found = params(shaped(layers=layers, d_model=d_model, d_ff=4 * d_model, heads=heads, vocab=256000))
    assert number(found.total) / 1e9 == printed(total)
    assert 100 * (1 - number(found.non_embedding) / number(found.total)) == printed(share)


RUNS = [
    pytest.param(175e9, 300e9, "3.15e23", "1.7", id="GPT-3"),
    pytest.param(70e9, 1.4e12, "5.88e23", "20.0", id="Chinchilla"),
    pytest.param(70e9, 15e12, "6.30e24", "214.3", id="Llama-3-70B"),
    pytest.param(8e9, 15e12, "7.20e23", "1875.0", id="Llama-3-8B"),
    pytest.param(280e9, 300e9, "5.04e23", "1.1", id="Gopher"),
]


@pytest.mark.parametrize(("n", "d", "compute", "ratio"), RUNS)
def test_6nd_and_tokens_per_parameter(n: float, d: float, compute: str, ratio: str) -> None:
    inputs = q(n, "param", "N"), q(d, "token", "D")
    assert number(training_compute(*inputs)) == printed(compute)
    assert number(tokens_per_param(*inputs)) == printed(ratio)


def test_step_flops() -> None:
    spec = shaped(layers=80, d_model=8192, d_ff=28672, heads=64, vocab=32000)
    found = flops(spec, Batch.of(8192, 8), mask="full").step_parts
    attention = number(found[Term.SCORES]) + number(found[Term.VALUES])
    assert number(found[Term.MLP]) == 22_166_154_415_964_160
    assert number(found[Term.PROJECTIONS]) == 8_444_249_301_319_680
    assert attention == 4_222_124_650_659_840
    total = number(found[Term.MLP]) + number(found[Term.PROJECTIONS]) + attention
    assert total == 34_832_528_367_943_680


def test_step_flops_say_how_the_mask_is_counted() -> None:
    spec = shaped(layers=2, d_model=64, d_ff=64, heads=1, vocab=64)
    assert "not halved" in flops(spec, Batch.of(64), mask="full").train_step.note
    assert "half" in flops(spec, Batch.of(64), mask="half").train_step.note


@pytest.mark.parametrize("size", [(8, 8192, 8192, 28672, 64, 128), (3, 5, 7, 11, 13, 17)])
def test_identity_mha_gated(size: tuple[int, ...]) -> None:
    b, t, d, f, n, h = size
    layer = GatedLayer(q(b, "1"), q(t, "token"), q(d, "1"), q(f, "1"), q(n, "1"), q(h, "1"))
    assert number(gated_layer_flops(layer)) == 6 * b * t * (3 * d * f + 4 * d * n * h)


@pytest.mark.parametrize(
    ("seq", "share", "error"),
    [
        (2048, "3.7", "3.8"),
        (8192, "13.3", "15.3"),
        (32768, "38.0", "61.4"),
        (131072, "71.1", "245.4"),
        (1048576, "95.2", "1963.4"),
    ],
)
def test_attention_share(seq: int, share: str, error: str) -> None:
    shape = Shape6ND(N70, q(80, "1", "L"), q(8192, "1", "d"), q(seq, "token", "T"))
    assert number(attention_share(shape)) == printed(share)
    assert number(error_of_6nd(shape)) == printed(error)


def test_moe_params() -> None:
    spec = shaped(
        layers=60,
        d_model=7168,
        heads=128,
        head_dim=128,
        vocab=128,
        experts=256,
        top_k=8,
        expert_ff=2048,
        shared_ff=2048,
    )
    found = params(spec).parts
    body = [Part.ATTENTION, Part.EXPERTS, Part.SHARED_EXPERTS, Part.ROUTER]
    total = sum(number(found[part]) for part in body)
    idle = number(params(spec).total) - number(params(spec).active)
    assert total / 1e9 == printed("707.4")
    assert (total - idle) / 1e9 == printed("52.1")
    assert total / (total - idle) == printed("13.6")


@pytest.mark.parametrize(
    ("zero", "dp", "expected"), [(0, 1, "1120.0"), (1, 64, "293.1"), (2, 64, "155.3"), (3, 64, "17.5")]
)
def test_training_memory(zero: int, dp: int, expected: str) -> None:
    found = state_of_count(N70, Sharding.of(zero=zero, dp=dp))
    assert number(found.total) / 1e9 == printed(expected)


def test_training_memory_of_a_spec_agrees() -> None:
    spec = _small(8)
    count = number(params(spec).total)
    for zero in range(4):
        sharding = Sharding.of(zero=zero, dp=64)
        of_count = state_of_count(q(count, "param"), sharding)
        assert number(training_state(spec, sharding).total) == pytest.approx(number(of_count.total), rel=1e-12)


@pytest.mark.parametrize(("mode", "expected"), [("none", "1374.4"), ("selective", "412.3"), ("full", "85.9")])
def test_activations(mode: Recompute, expected: str) -> None:
    tokens = q(8 * 8192, "token", "tokens")
    found = rough_activations(tokens, q(80, "1", "L"), q(8192, "1", "d"), mode)
    assert number(found) / 1e9 == printed(expected)


def test_recompute() -> None:
    model, hardware = flops_per_token(N70, q(0, "1")), flops_per_token(N70, q(1, "1"))
    assert (number(model), number(hardware)) == (6 * 70e9, 8 * 70e9)
    assert number(hfu_of_mfu(q(30, "%", "mfu"), q(1, "1"))) == pytest.approx(40.0, rel=1e-12)
    assert number(hardware) / number(model) == 4 / 3


def _cache(kv_heads: int, batch: int) -> Quantity:
    return plain_kv_cache(
        q(80, "1", "L"),
        q(kv_heads, "1", "kv_heads"),
        q(128, "1", "head_dim"),
        q(8192, "token", "T"),
        q(batch, "1", "b"),
    )


@pytest.mark.parametrize(("kv_heads", "one", "many"), [(64, "21.5", "687.2"), (8, "2.7", "85.9"), (1, "0.3", "10.7")])
def test_kv_cache(kv_heads: int, one: str, many: str) -> None:
    assert number(_cache(kv_heads, 1)) / 1e9 == printed(one)
    assert number(_cache(kv_heads, 32)) / 1e9 == printed(many)
    spec = shaped(layers=80, d_model=8192, d_ff=28672, heads=64, kv_heads=kv_heads, vocab=32000)
    assert number(kv_cache(spec, q(8192, "token")).per_sequence) == number(_cache(kv_heads, 1))


@pytest.mark.parametrize(("kv_heads", "expected"), [(64, 22), (8, 182)], ids=["MHA", "GQA-8"])
def test_concurrent_requests(kv_heads: int, expected: int) -> None:
    memory, weights, workspace = q(640e9, "B"), q(140e9, "B"), q(10e9, "B")
    assert number(concurrent_requests(memory, weights, workspace, _cache(kv_heads, 1))) == expected


@pytest.mark.parametrize(("batch", "expected"), [(1, "1.0"), (8, "6.9"), (64, "28.7"), (256, "43.3"), (1024, "49.6")])
def test_decode_intensity(batch: int, expected: str) -> None:
    found = decode_intensity(N70, q(batch, "1", "batch"), q(140e9, "B"), _cache(8, 1))
    assert number(found) == printed(expected)
    if batch == 1024:
        assert 100 * number(found) / number(ridge_point(rates("H100"))) == printed("16.8")


@pytest.mark.parametrize(("chips", "days"), [(16_000, "11.4"), (1_000, "182.3")])
def test_days(chips: int, days: str) -> None:
    found = training_time(q(6.3e24, "FLOP"), q(chips, "chip"), q(1e15, "FLOP/s/chip"), q(0.4, "1"))
    assert number(found, "day") == printed(days)


def test_c_kv_sweep() -> None:
    sweep = cache_sweep(q(42e9, "B"), q(3.35e12, "B/s/chip"), q(1, "chip"))
    assert number(sweep) * 1e3 == printed("12.5")
    assert number(token_rate(sweep)) == pytest.approx(80, abs=0.5)


def test_c_kv_per_token() -> None:
    mla = number(kv_cache(deepseek3_attention(), q(8192, "token")).per_token)
    peers = {
        "Qwen3-235B": shaped(layers=94, d_model=4096, d_ff=64, heads=64, kv_heads=4, head_dim=128, vocab=64),
        "Qwen2.5-72B": shaped(layers=80, d_model=8192, d_ff=64, heads=64, kv_heads=8, vocab=64),
    }
    gqa = [number(kv_cache(spec, q(8192, "token")).per_token) for spec in peers.values()]
    assert mla / 1e3 == printed("70")
    assert [size / 1e3 for size in gqa] == [pytest.approx(192, abs=0.6), pytest.approx(328, abs=0.6)]
    assert gqa[1] / mla == pytest.approx(4.66, abs=0.01)


def test_e_sparsity_k_equals_e() -> None:
    spec = shaped(layers=4, d_model=64, heads=1, vocab=64, experts=8, top_k=8, expert_ff=32)
    assert number(params(spec).total) / number(params(spec).active) == 1.0
