"""FLOPs and bytes of operators, against what can be counted by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.calls import shaped

from ridgeline.trace.levels.op_flops import AttentionShape, attention_flops, visible_pairs, work


@pytest.mark.parametrize(
    ("name", "shapes", "flops"),
    [
        ("aten::mm", [[16384, 3072], [3072, 768]], 77_309_411_328),
        ("aten::addmm", [[768], [4, 8], [8, 768]], 2 * 4 * 8 * 768),
        ("aten::bmm", [[6, 5, 7], [6, 7, 3]], 2 * 6 * 5 * 7 * 3),
        ("aten::baddbmm", [[6, 5, 3], [6, 5, 7], [6, 7, 3]], 2 * 6 * 5 * 7 * 3),
        ("aten::linear", [[2, 10, 16], [32, 16], [32]], 2 * 20 * 16 * 32),
        ("aten::_scaled_mm", [[16, 32], [32, 64]], 2 * 16 * 32 * 64),
        ("aten::_grouped_mm", [[100, 32], [4, 32, 64]], 2 * 100 * 32 * 64),
    ],
)
def test_matmuls(name: str, shapes: list[list[int]], flops: int) -> None:
    found = work(name, shaped(shapes))
    assert found is not None
    assert found.flops == flops


def test_matmul_bytes_once_each() -> None:
    found = work("aten::mm", shaped([[10, 20], [20, 30]]))
    assert found is not None
    assert found.bytes == 2 * (200 + 600 + 300)
    narrow = work("aten::_scaled_mm", shaped([[10, 20], [20, 30]], "c10::Float8_e4m3fn"))
    assert narrow is not None
    assert (narrow.dtype, narrow.bytes) == ("fp8", 200 + 600 + 2 * 300)


def test_convolution() -> None:
    concrete = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"]
    meta = shaped([[8, 3, 32, 32], [16, 3, 3, 3], [], [], [], [], []], concrete=concrete)
    found = work("aten::conv2d", meta)
    assert found is not None
    assert found.flops == 2 * 8 * 16 * 16 * 16 * 3 * 9  # 16 x 16 outputs with stride 2 and padding 1


def test_convolution_backward_counts_the_gradients_that_are_made() -> None:
    shapes: list[list[int]] = [[8, 16, 16, 16], [8, 3, 32, 32], [16, 3, 3, 3], []]
    forward = 2 * 8 * 16 * 16 * 16 * 3 * 9
    both = work("aten::convolution_backward", shaped(shapes, concrete=["", "", "", "[True, True, False]"]))
    one = work("aten::convolution_backward", shaped(shapes, concrete=["", "", "", "[False, True, False]"]))
    assert both is not None
    assert one is not None
    assert (both.flops, one.flops) == (2 * forward, forward)


def sdpa(causal: str, kv: int = 8) -> Any:
    shapes = [[2, 8, 128, 64], [2, kv, 128, 64], [2, kv, 128, 64], [], [], []]
    found = work("aten::_scaled_dot_product_flash_attention", shaped(shapes, concrete=["", "", "", "0.", causal, ""]))
    assert found is not None
    return found


def test_attention_full_and_causal() -> None:
    assert sdpa("False").flops == 4 * 2 * 8 * 128 * 128 * 64
    assert sdpa("True").flops == 4 * 2 * 8 * (128 * 129 // 2) * 64


def test_grouped_queries_compute_as_much_and_read_less() -> None:
    assert sdpa("True", kv=2).flops == sdpa("True").flops
    assert sdpa("True", kv=2).bytes < sdpa("True").bytes


def test_backward_is_five_matmuls() -> None:
    forward = AttentionShape(1, 4, 4, 64, 64, 32, 32, False, None, False)
    backward = AttentionShape(1, 4, 4, 64, 64, 32, 32, False, None, True)
    assert attention_flops(backward) * 2 == attention_flops(forward) * 5


@given(st.integers(1, 200), st.integers(1, 250))
def test_a_window_lets_through_what_a_loop_counts(length: int, window: int) -> None:
    shape = AttentionShape(1, 1, 1, length, length, 8, 8, True, window, False)
    assert visible_pairs(shape) == sum(min(q + 1, window) for q in range(length))


def test_packed_flash_attention_says_what_it_assumes() -> None:
    shapes: list[list[int]] = [[4096, 6, 128]] * 3 + [[5], [5], [], [], [], [], [], []]
    concrete = ["", "", "", "", "", "1024", "1024", "0.1", "True", "383", "0"]
    found = work("flash_attn_3::_flash_attn_forward", shaped(shapes, concrete=concrete))
    assert found is not None
    assert found.attention is not None
    assert (found.attention.batch, found.attention.queries, found.attention.window) == (4, 1024, 384)
    assert "upper bound" in found.note


def test_elementwise_bytes() -> None:
    assert work("aten::add", shaped([[64, 64], [64, 64], []])).bytes == 3 * 2 * 4096  # type: ignore[union-attr]
    assert work("aten::mul_", shaped([[64, 64], []])).bytes == 2 * 2 * 4096  # type: ignore[union-attr]
    assert work("triton_poi_fused_add_0", shaped([[64], [64], [64]])).bytes == 3 * 2 * 64  # type: ignore[union-attr]
    assert work("aten::whatever", shaped([[64]])).bytes is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "meta",
    [
        {}, {"shapes": None}, {"shapes": "x"}, {"shapes": [[-1, 2], [2, 3]], "dtypes": ["float", "float"]},
        {"shapes": [[2.5, 2], [2, 3]], "dtypes": ["float", "float"]}, {"shapes": [[2, 2], [3, 3]], "dtypes": [1, 2]},
        {"shapes": [[1] * 100], "dtypes": ["float"]}, {"shapes": [[10**30, 2], [2, 3]], "dtypes": ["float"] * 2},
        {"shapes": [[True, 2], [2, 3]], "dtypes": ["float", "float"]},
    ],
)  # fmt: skip
def test_surprising_shapes_have_no_flops(meta: dict[str, Any]) -> None:
    found = work("aten::mm", meta)
    assert found is None or found.flops is None


def test_a_hostile_scalar_costs_no_time() -> None:
    meta = shaped([[1, 1, 4, 4], [1, 1, 2, 2], [], [], [], []], concrete=["", "", "", "1" * 190 + "x", "[0]", "[1]"])
    found = work("aten::conv2d", meta)
    assert found is not None
    assert found.flops is None
