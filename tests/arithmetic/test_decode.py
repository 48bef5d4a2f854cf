"""Serving kernels: what was measured comes back, what was not is marked, and bad sizes are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ridgeline.arithmetic.decode import (
    decode_attention,
    expert_matmuls,
    latent_attention,
    mixed_attention,
    prompt_attention,
    small_all_reduce,
    thin_gemm,
)
from ridgeline.arithmetic.serving_work import decode_work
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.core import catalog, surfaces
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given

SYSTEMS = {
    "a100_sxm": "a100-sxm-80gb",
    "h100_sxm": "h100-sxm-80gb",
    "h200_sxm": "h200-sxm-141gb",
    "b200_sxm": "b200-sxm",
    "l40s": "l40s",
}
# Share of the memory bandwidth that decode attention reaches: caches above 1 GB, of 10 to 100 MB; medians.
LARGE = {"a100_sxm": 0.74, "h100_sxm": 0.90, "h200_sxm": 0.87, "b200_sxm": 0.86, "l40s": 0.82}
SMALL = {"a100_sxm": 0.30, "h100_sxm": 0.33, "h200_sxm": 0.23, "b200_sxm": 0.22}


def rows(folder: Path, system: str) -> dict[str, np.ndarray]:
    table = pl.read_parquet(folder / "serve" / "kernels" / "aic_generation_attention_perf.parquet")
    full = (pl.col("window_size").fill_null(0) == 0) & (pl.col("kv_cache_dtype") == "bfloat16")
    table = table.filter((pl.col("system") == system) & full & (pl.col("head_dim") == 128))
    names = {"batch_size": "batch", "num_heads": "heads", "num_key_value_heads": "kv", "step": "step"}
    found = {ours: table[theirs].to_numpy().astype(float) for theirs, ours in names.items()}
    found["seconds"] = table["latency"].to_numpy() / 1e3
    found["bytes"] = 2 * 2 * 128 * found["batch"] * found["kv"] * (found["step"] + 1)
    return found


@pytest.mark.data
@pytest.mark.parametrize("system", list(LARGE))
def test_large_caches_reach_the_measured_share_of_the_bandwidth(system: str, data_dir: Path) -> None:
    device, held = catalog.device(SYSTEMS[system]), rows(data_dir, system)
    assert device.hbm_bandwidth is not None
    rate = float(device.hbm_bandwidth.base)
    found = decode_attention(device).seconds(held["batch"], held["heads"], held["kv"], held["step"] + 1, 128)
    large = held["bytes"] > 1e9
    assert np.median(held["bytes"][large] / held["seconds"][large]) / rate == pytest.approx(LARGE[system], abs=0.03)
    assert np.median(held["bytes"][large] / found.seconds[large]) / rate == pytest.approx(LARGE[system], abs=0.04)
    if system in SMALL:
        small = (held["bytes"] > 1e7) & (held["bytes"] < 1e8)
        assert np.median(held["bytes"][small] / found.seconds[small]) / rate == pytest.approx(SMALL[system], abs=0.06)


@pytest.mark.data
@pytest.mark.parametrize(("system", "most"), [("a100_sxm", 0.09), ("h100_sxm", 0.05), ("b200_sxm", 0.05)])
def test_the_surface_is_near_the_rows_and_its_interval_holds_most(system: str, most: float, data_dir: Path) -> None:
    held = rows(data_dir, system)
    found = decode_attention(SYSTEMS[system]).seconds(held["batch"], held["heads"], held["kv"], held["step"] + 1, 128)
    assert np.median(np.abs(found.seconds / held["seconds"] - 1)) < most
    inside = (held["seconds"] >= found.low) & (held["seconds"] <= found.high)
    assert 0.72 < inside.mean() < 0.95


def test_every_system_ships_its_surfaces_and_their_errors() -> None:
    for system in SYSTEMS:
        held = surfaces.serving(system)
        assert held is not None
        for by_dim in held.decode.values():
            for surface in by_dim.values():
                assert surface.held_out["random"][0] < 0.16
    typical = surfaces.serving(surfaces.TYPICAL)
    assert typical is not None
    assert typical.decode["bf16"][128].held_out["systems"][0] < 0.15
    assert surfaces.serving("no_such_system") is None


@pytest.mark.parametrize("device", ["h100-sxm-80gb", "mi300x", "tpu-v5e", "gb200"])
def test_every_kernel_answers_on_every_device(device: str) -> None:
    found = [
        decode_attention(device, "fp8").seconds(8, 32, 8, 4096, 128),
        latent_attention(device).seconds(8, 16, 4096),
        latent_attention(device).prompt_seconds(1, 16, 4096),
        expert_matmuls(device, "fp8").seconds(64, (7168, 2048), 256, 8, (1, 8)),
        prompt_attention(device).seconds(1, 32, 8, 512, 128),
    ]
    for item in found:
        assert np.all(item.low <= item.seconds)
        assert np.all(item.seconds <= item.high)
        assert np.all(item.low > 0)


def test_what_nobody_measured_is_marked_and_wider() -> None:
    own = decode_attention("h100-sxm-80gb").seconds(32, 32, 8, 4096, 128)
    relative = decode_attention("h800-sxm-80gb").seconds(32, 32, 8, 4096, 128)
    other = decode_attention("mi300x").seconds(32, 32, 8, 4096, 128)
    assert own.measured.all()
    assert not relative.measured.any()
    assert not other.measured.any()
    assert own.high / own.low < relative.high / relative.low < other.high / other.low
    assert not decode_attention("h100-sxm-80gb").seconds(32, 32, 8, 4096, 96).measured.any()


def test_a_head_dim_between_two_lies_between_them() -> None:
    low, mid, high = (decode_attention("h100-sxm-80gb").seconds(64, 32, 8, 8192, d).seconds[0] for d in (64, 96, 128))
    assert low < mid < high


def test_a_window_bounds_what_is_read() -> None:
    surface = decode_attention("h100-sxm-80gb")
    whole, windowed = (surface.seconds(64, 64, 8, 32768, 128, window=w).seconds[0] for w in (0, 1024))
    assert windowed < whole / 4


def test_narrow_caches_are_read_faster() -> None:
    bf16, fp8, int4 = (
        decode_attention("h100-sxm-80gb", kv).seconds(256, 32, 8, 8192, 128).seconds[0]
        for kv in ("bf16", "fp8", "int4")
    )
    assert 1.6 < bf16 / fp8 < 2.4
    assert int4 < fp8


def test_double_the_bandwidth_is_never_slower() -> None:
    device = catalog.device("mi300x")
    assert device.hbm_bandwidth is not None
    fast = replace(device, hbm_bandwidth=given("b", 2 * float(device.hbm_bandwidth.base), "B/s/chip"))
    slow_s, fast_s = (
        decode_attention(item).seconds([1, 64], 32, 8, [128, 8192], 128).seconds for item in (device, fast)
    )
    assert np.all(fast_s < slow_s)


def test_one_token_of_a_mixture_costs_less_than_many() -> None:
    surface = expert_matmuls("h200-sxm-141gb", "fp8")
    found = surface.seconds([1, 8, 64, 512], (7168, 2048), 256, 8, (1, 8)).seconds
    assert np.all(np.diff(found) > 0)


@pytest.mark.parametrize("weights", ["fp8", "int4", "fp4"])
@pytest.mark.parametrize("device", ["h100-sxm-80gb", "mi300x", "tpu-v5e", "b200-sxm"])
def test_experts_of_narrow_weights_stay_between_the_roof_and_the_wide_kernel(device: str, weights: str) -> None:
    """Eight large experts, far from the shapes at which 4-bit kernels were measured."""
    tokens = np.array([1.0, 16.0, 128.0, 4096.0, 16384.0])
    narrow, wide = (
        expert_matmuls(device, item).seconds(tokens, (4096, 14336), 8, 2, (2, 1)) for item in (weights, "bf16")
    )
    assert np.all(narrow.seconds <= 2 * wide.seconds * (1 + 1e-9))
    assert np.all(narrow.low <= narrow.seconds)
    assert np.all(narrow.seconds <= narrow.high)
    bandwidth = catalog.device(device).hbm_bandwidth
    assert bandwidth is not None
    read = 2 * 3 * 4096 * 7168 * float(dtype_bytes(weights).base) / float(bandwidth.base)
    assert narrow.seconds[0] >= read  # one token: two experts, half of each on a chip


def test_an_all_reduce_is_measured_where_there_is_a_switch() -> None:
    own, usual = small_all_reduce("h100-sxm-80gb"), small_all_reduce("gb200")
    assert own is not None
    assert usual is not None
    # 8 chips, 16 KiB: 5.3 us in the table
    assert own.seconds(16384, 8).seconds[0] == pytest.approx(5.3e-6, rel=0.1)
    assert own.seconds(16384, 1).seconds[0] == 0
    assert usual.seconds(16384, 4).seconds[0] > 0
    assert small_all_reduce("tpu-v5e") is None


def test_few_tokens_take_the_ratio_of_all_systems_without_a_jump() -> None:
    surface = thin_gemm(catalog.device("gb200"), "bf16")
    found = surface.seconds([1, 16, 64, 200, 256, 300], 8192, 8192).seconds
    assert np.all(found[1:] / found[:-1] < 1.3)
    assert found[0] > 8192 * 8192 * 2 / 8e12


def test_mixed_attention_is_no_sum() -> None:
    prompt, decode = np.array([1e-3, 1e-3, 1e-3]), np.array([1e-4, 1e-3, 1e-2])
    card = "rtx-4090"
    found = mixed_attention(prompt, decode, 32, 8, card)
    assert np.all(found.seconds >= np.maximum(prompt, decode))
    assert found.seconds[1] / 2e-3 > 1.1
    other = mixed_attention(prompt, decode, 32, 8, "h100-sxm-80gb")
    assert other.seconds == pytest.approx(np.sqrt(found.seconds * (prompt + decode)))
    assert np.all((other.low <= prompt + decode) & (other.high >= found.seconds))
    assert not other.measured.any()
    assert np.all(np.diff(mixed_attention(1e-3, np.geomspace(1e-5, 1e-1, 50), 32, 8, card).seconds) >= 0)
    assert np.all(np.diff(mixed_attention(np.geomspace(1e-5, 1e-1, 50), 1e-3, 32, 8, card).seconds) >= -1e-15)


@pytest.mark.data
def test_mixed_attention_against_its_table(data_dir: Path) -> None:
    table = pl.read_parquet(data_dir / "serve" / "kernels" / "lss_attention.parquet")
    table = table.filter((pl.col("hw") == "RTXPRO6000") & (pl.col("model") == "Qwen/Qwen3-32B") & (pl.col("tp") == 2))
    median = pl.col("time_us").median()
    chunk, count = pl.col("prefill_chunk"), pl.col("n_decode")
    prompt = table.filter(count == 0).group_by("prefill_chunk", "kv_prefill").agg(median.alias("prompt"))
    decode = table.filter(chunk == 0).group_by("n_decode", "kv_decode").agg(median.alias("decode"))
    both = table.filter((chunk > 0) & (count > 0)).join(prompt, on=["prefill_chunk", "kv_prefill"])
    both = both.join(decode, on=["n_decode", "kv_decode"])
    first, second, mixed, sequences = (both[name].to_numpy() for name in ("prompt", "decode", "time_us", "n_decode"))
    assert np.median(mixed / (first + second)) == pytest.approx(1.55, abs=0.02)  # of the sum: it is not additive
    found = mixed_attention(first, second, sequences, 8, "rtx-pro-6000-blackwell-server")
    assert np.median(np.abs(found.seconds / mixed - 1)) < 0.6 * np.median(np.abs((first + second) / mixed - 1))


@pytest.mark.parametrize("bad", [0, -1, float("nan")])
def test_bad_sizes_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="at least 1"):
        decode_attention("h100-sxm-80gb").seconds(bad, 32, 8, 1024, 128)
    with pytest.raises(InputError, match="at least 1"):
        latent_attention("h100-sxm-80gb").seconds(1, 16, bad)
    with pytest.raises(InputError, match="at least 1"):
        expert_matmuls("h100-sxm-80gb").seconds(bad, (1024, 1024), 8, 2)


def test_more_chips_than_experts_are_refused() -> None:
    with pytest.raises(InputError, match="at most 8 chips"):
        expert_matmuls("h100-sxm-80gb").seconds(1, (1024, 1024), 8, 2, (1, 16))


def test_a_decode_on_the_roofline_of_an_unknown_device_is_near_its_bandwidth() -> None:
    device = catalog.device("mi300x")
    found = decode_attention(device).seconds(512, 32, 8, 8192, 128).seconds[0]
    batch, heads, kv, seen, dim = (np.array([float(size)]) for size in (512, 32, 8, 8192, 128))
    _, moved = decode_work(batch, heads, kv, seen, dim, 2.0)
    assert device.hbm_bandwidth is not None
    assert 0.7 < moved[0] / found / float(device.hbm_bandwidth.base) < 1.0
