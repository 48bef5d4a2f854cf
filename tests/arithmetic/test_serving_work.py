"""FLOPs, bytes and experts hit of serving kernels against hand arithmetic."""

import numpy as np
import pytest

from ridgeline.arithmetic.serving_work import decode_work, expert_work, experts_hit, latent_prefill_work, latent_work


def of(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_decode_reads_the_cache_once_and_multiplies_each_head() -> None:
    flops, moved = decode_work(of(4), of(32), of(8), of(1000), of(128), 2.0)
    assert flops == 4 * 4 * 32 * 1000 * 128
    assert moved == 4 * (2 * 8 * 1000 * 128 * 2 + 2 * 32 * 128 * 2)


def test_a_latent_is_read_once_for_all_heads() -> None:
    few, many = (latent_work(of(1), of(heads), of(1000), 512, 64, 2.0) for heads in (16, 128))
    assert many[0] / few[0] == 8
    assert many[1] - few[1] == 112 * (2 * 512 + 64) * 2
    assert few[1] > 1000 * 576 * 2


def test_a_prompt_of_latents_is_causal() -> None:
    flops, _ = latent_prefill_work(of(3), of(1), of(2), 192, 128)
    assert flops == 2 * 2 * 6 * 320


@pytest.mark.parametrize(("tokens", "expected"), [(1, 8.0), (2, 8 + 8 * 248 / 256), (1e6, 256.0)])
def test_experts_hit(tokens: float, expected: float) -> None:
    assert experts_hit(of(256), of(8), of(tokens))[0] == pytest.approx(expected)


def test_all_experts_at_once() -> None:
    assert experts_hit(of(8), of(8), of(1))[0] == 8


def test_experts_read_what_was_hit() -> None:
    flops, moved = expert_work(of(16), of(10), of(64), of(32), 1.0)
    assert flops == 2 * 3 * 16 * 64 * 32
    assert moved == 10 * 3 * 64 * 32 + 16 * (128 + 64) * 2
