"""Matmul and attention times: what was measured, what stands in, and what falls back to a roofline."""

import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.arithmetic.kernels import (
    attention,
    attention_backward,
    gemm,
    head_dim_penalty,
    misalignment_penalty,
    mm_ceiling,
)
from ridgeline.core import catalog
from ridgeline.core.errors import InputError, UnknownDeviceError

MEASURED = {
    "a100_sxm": "A100-SXM-80GB", "h100_sxm": "H100-SXM-80GB", "h200_sxm": "H200-SXM-141GB", "b200_sxm": "B200-SXM",
    "gb200": "GB200", "b300_sxm": "B300-SXM", "gb300": "GB300", "l40s": "L40S",
}  # fmt: skip
SIDES = st.integers(1, 2**17)


@given(SIDES, SIDES, SIDES, st.sampled_from([*MEASURED.values(), "TPU v5p", "MI300X", "Trainium2", "H800-SXM-80GB"]))
def test_an_interval_holds_its_estimate_and_no_matmul_beats_its_peak(m: int, n: int, k: int, device: str) -> None:
    surface = gemm(device, "bf16")
    found = surface.seconds(m, n, k)
    assert 0 < found.low[0] < found.seconds[0] < found.high[0]
    assert 2 * m * n * k / found.seconds[0] < surface.surface.reference.peak_flops_s


def test_arrays_broadcast_and_scalars_agree_with_them() -> None:
    surface = gemm("H100", "bf16")
    many = surface.seconds(np.array([1024, 2048, 4096]), 4096, 4096)
    assert many.seconds.shape == many.low.shape == many.measured.shape == (3,)
    assert many.seconds[1] == surface.seconds(2048, 4096, 4096).seconds[0]


def test_measured_is_said_of_the_device_its_dtype_and_its_range_only() -> None:
    assert gemm("H100", "bf16").seconds(4096, 4096, 4096).measured[0]
    assert not gemm("H100", "fp16").seconds(4096, 4096, 4096).measured[0]
    assert not gemm("H800-SXM-80GB", "bf16").seconds(4096, 4096, 4096).measured[0]
    assert not gemm("TPU v5p", "bf16").seconds(4096, 4096, 4096).measured[0]
    assert not gemm("H100", "bf16").seconds(4096, 4096, 2**18).measured[0]
    assert not gemm("H100", "bf16").seconds(4096, 4095, 4096).measured[0]


def test_what_was_not_measured_has_the_wider_interval() -> None:
    def width(device: str, size: int) -> float:
        found = gemm(device, "bf16").seconds(size, size, size)
        return float(np.log(found.high / found.low)[0])

    assert width("H100", 8192) < width("H800-SXM-80GB", 8192) < width("TPU v5p", 8192)
    assert width("H100", 8192) < width("H100", 2**18)


def test_a_fallback_scales_with_the_roofline_and_with_the_measured_ceiling() -> None:
    v5p = catalog.device("TPU v5p")
    shape = (8192, 8192, 8192)
    share = 2 * 8192**3 / gemm(v5p, "bf16").seconds(*shape).seconds[0] / float(np.asarray(v5p.peaks["bf16"].base))
    assert 0.6 < share < 0.8
    mi300x = catalog.device("MI300X")
    reached = 2 * 8192**3 / gemm(mi300x, "bf16").seconds(*shape).seconds[0]
    assert 0.75 < reached / float(np.asarray(mi300x.ceilings["bf16"].base)) < 1


@pytest.mark.parametrize(("device", "share"), [("A100", 0.801), ("H100", 0.750), ("H200", 0.734), ("B200", 0.652)])
def test_the_ceiling_is_the_median_of_the_measured_rows(device: str, share: float) -> None:
    ceiling = mm_ceiling(device, "bf16")
    assert ceiling.kind == "measured"
    assert ceiling.source is not None
    assert float(np.asarray(ceiling.value)) / 100 == pytest.approx(share, abs=0.006)


def test_a_ceiling_of_a_device_nobody_measured_is_an_assumption() -> None:
    assert mm_ceiling("TPU v5p", "bf16").kind == "assumed"
    assert mm_ceiling("H800-SXM-80GB", "bf16").value == mm_ceiling("H100", "bf16").value


def test_head_dim_64_costs_a_third_on_an_h100_and_more_on_a_b200() -> None:
    h100, b200 = head_dim_penalty("H100", 64), head_dim_penalty("B200", 64)
    assert h100.kind == "measured"
    assert 0.26 < 1 - 1 / (1 + float(np.asarray(h100.value))) < 0.45
    assert float(np.asarray(b200.value)) > float(np.asarray(h100.value))
    assert head_dim_penalty("H100", 128).value == 0
    assert head_dim_penalty("H100", 96).kind == "assumed"
    assert 0 < float(np.asarray(head_dim_penalty("H100", 96).value)) < float(np.asarray(h100.value))


def test_rows_off_their_alignment_cost_what_the_public_case_did() -> None:
    assert misalignment_penalty([10922, 10944]) == pytest.approx([398.38 / 272.73, 1.0], rel=1e-3)
    surface = gemm("H100", "bf16")
    pair = surface.seconds(4096, np.array([10922, 10944]), 4096).seconds
    assert 1.4 < pair[0] / pair[1] < 1.55


def test_one_token_more_than_a_tile_costs_time_on_an_a100() -> None:
    pair = gemm("A100", "bf16").seconds(np.array([1024, 1025]), 8192, 8192).seconds
    assert 1.03 < pair[1] / pair[0] < 1.35


def test_attention_counts_pairs_windows_and_groups() -> None:
    surface = attention("H100")
    causal, full = surface.seconds(1, 32, 8, 8192, 128), surface.seconds(1, 32, 8, 8192, 128, causal=False)
    assert full.seconds[0] / causal.seconds[0] == pytest.approx(2, rel=1e-3)
    short = surface.seconds(1, 32, 8, 8192, 128, window=1024)
    assert 2 < causal.seconds[0] / short.seconds[0] < 8192 / 2 / 1024 * 1.2
    assert surface.seconds(1, 32, 8, 8192, 128, window=8192).seconds[0] == causal.seconds[0]
    twice = surface.seconds(2, 32, 8, 8192, 128)
    assert twice.seconds[0] / causal.seconds[0] == pytest.approx(2, rel=0.1)
    assert causal.measured[0]
    assert not surface.seconds(1, 32, 8, 2**18, 128).measured[0]


def test_attention_between_and_beyond_measured_head_dims() -> None:
    found = attention("H100").seconds(1, 32, 32, 8192, np.array([64, 96, 128]))
    assert np.all(np.diff(found.seconds) > 0)
    assert found.measured.tolist() == [True, False, True]
    a100 = attention("A100").seconds(1, 32, 32, 8192, np.array([64, 128]))
    assert a100.measured.tolist() == [False, True]
    assert 0.5 < a100.seconds[0] / a100.seconds[1] < 1


@pytest.mark.parametrize("device", ["TPU v5e", "MI300X", "Trainium1", "Gaudi2", "V100-SXM2-32GB"])
def test_attention_falls_back_to_a_roofline(device: str) -> None:
    dtype = "fp16" if device.startswith("V100") else "bf16"
    found = attention(device, dtype).seconds(1, 32, 8, 8192, 128)
    assert not found.measured[0]
    peak = catalog.device(device).peaks[dtype]
    assert 0.3 < 4 * 128 * 32 * 8192**2 / 2 / found.seconds[0] / float(np.asarray(peak.base)) < 0.95


def test_the_backward_factor_is_published() -> None:
    factor = attention_backward()
    assert float(np.asarray(factor.value)) == pytest.approx(2.5 / (63 / 73), rel=1e-3)
    assert {item.kind for item in factor.inputs.values()} == {"published"}


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        gemm("H100", "bf16").seconds(0, 1, 1)
    with pytest.raises(InputError, match="head_dim"):
        attention("H100").seconds(1, 32, 8, 8192, 0)
    with pytest.raises(UnknownDeviceError):
        gemm("H1000", "bf16")
    with pytest.raises(InputError, match="peak"):
        gemm("A100", "fp4")


def test_a_million_shapes_take_less_than_a_second() -> None:
    draw = np.random.default_rng(0)
    m, n, k = (8 * draw.integers(1, 2048, 20_000) for _ in range(3))
    surface = gemm("H100", "bf16")
    surface.seconds(m, n, k)
    best_s = float("inf")
    for _ in range(5):
        start_s = time.process_time()
        surface.seconds(m, n, k)
        best_s = min(best_s, time.process_time() - start_s)
    assert len(m) / best_s > 1e6


@pytest.mark.data
@pytest.mark.parametrize("system", MEASURED)
def test_matmuls_of_the_public_table(data_dir: Path, system: str) -> None:
    table = pl.read_csv(data_dir / "plan" / "gemm_measured.csv.gz")
    table = table.filter((pl.col("system") == system) & (pl.col("gemm_dtype") == "bfloat16"))
    actual = table["latency_ms_median"].to_numpy() / 1e3
    found = gemm(MEASURED[system], "bf16").seconds(*(table[name].to_numpy() for name in "mnk"))
    off = np.abs(found.seconds / actual - 1)
    assert np.median(off) < 0.06
    assert np.quantile(off, 0.9) < 0.18
    inside = (found.low <= actual) & (actual <= found.high)
    assert 0.75 < inside.mean() < 0.9
    assert found.measured.all()


@pytest.mark.data
@pytest.mark.parametrize("system", MEASURED)
def test_attention_of_the_public_table(data_dir: Path, system: str) -> None:
    table = pl.read_csv(data_dir / "plan" / "attention_fwd_measured.csv.gz", infer_schema_length=None)
    table = table.filter((pl.col("system") == system) & (pl.col("head_dim") == 128))
    batch, heads, kv, seq, window = (
        table[name].to_numpy() for name in ("batch_size", "num_heads", "num_key_value_heads", "isl", "window_size")
    )
    actual = 2 * batch * heads * seq.astype(float) ** 2 * 128 / (table["causal_tflops_best"].to_numpy() * 1e12)
    found = attention(MEASURED[system]).seconds(batch, heads, kv, seq, 128, window=window)
    off = np.abs(found.seconds / actual - 1)
    assert np.median(off) < 0.09
    assert 0.73 < ((found.low <= actual) & (actual <= found.high)).mean() < 0.92
