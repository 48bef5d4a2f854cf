"""Tiles in kernel names, padding and waves."""

import pytest

from ridgeline.trace.levels.gemm import quantization, tile_of
from ridgeline.trace.levels.op_flops import Gemm


@pytest.mark.parametrize(
    ("kernel", "tile"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize1x1x1_cublas", (128, 256)),
        ("nvjet_hsh_192x192_64x4_2x1_v_bz_coopA_NNT", (192, 192)),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", (128, 64)),
        ("Cijk_Ailk_Bljk_BBS_BH_MT64x32x64_MI16x16x16x1_SN", (64, 32)),
        ("void cutlass::Kernel<cutlass::gemm::GemmShape<128, 256, 32>>", (128, 256)),
        ("cutlass::device_kernel<cute::tuple<cute::C<64>, cute::C<128>, cute::C<64>>>", (64, 128)),
        ("elementwise_kernel", None),
        ("_99999x99999_", None),
        ("", None),
    ],
)
def test_tiles_in_names(kernel: str, tile: tuple[int, int] | None) -> None:
    assert tile_of(kernel) == tile


def test_one_tile_beyond_a_wave_costs_a_wave() -> None:
    gemms = [Gemm(1, 128 * 132, 64, 128), Gemm(1, 128 * 133, 64, 128)]
    full, over = quantization(gemms, ["_128x128_", "_128x128_"], 132, None)
    assert full is not None
    assert over is not None
    assert (full.tiles, full.waves, full.efficiency) == (132, 1.0, 1.0)
    assert over.efficiency == pytest.approx(133 / 264)


def test_padding_and_batches() -> None:
    (found,) = quantization([Gemm(4, 129, 64, 128)], [""], 8, 128)
    assert found is not None
    assert (found.named, found.tiles) == (False, 8)
    assert found.tile_efficiency == pytest.approx(129 / 256)


def test_the_better_orientation_of_a_tile() -> None:
    (found,) = quantization([Gemm(1, 256, 64, 128)], ["_128x256_"], None, None)
    assert found is not None
    assert (found.tile, found.efficiency, found.wave_efficiency) == ((256, 128), 1.0, None)


def test_no_tile_no_answer() -> None:
    assert quantization([Gemm(1, 8, 8, 8)], ["kernel"], 132, None) == [None]
    assert quantization([], [], 132, 128) == []
