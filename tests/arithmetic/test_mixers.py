"""State and scan FLOPs of the mixers, worked by hand; their weights are checked against model classes in configs."""

import pytest

from ridgeline.arithmetic.mixers import (
    GatedDeltaNet,
    KimiDelta,
    Mamba1,
    Mamba2,
    lightning_attention,
    mlstm,
    rg_lru,
    rwkv4_channel_mix,
    rwkv4_time_mix,
    short_conv,
)
from ridgeline.arithmetic.params import size
from ridgeline.arithmetic.spec import Mixer

MAMBA1 = Mamba1(d_model=8, d_inner=16, d_state=4, dt_rank=2, conv_kernel=3)
MAMBA2 = Mamba2(d_model=8, d_inner=16, heads=2, d_state=4, groups=1, conv_kernel=3)
DELTA = GatedDeltaNet(d_model=8, k_heads=1, v_heads=2, k_dim=3, v_dim=5, conv_kernel=4)
KIMI = KimiDelta(d_model=8, heads=2, head_dim=3, conv_kernel=4)


@pytest.mark.parametrize(
    ("mixer", "state", "core_flops"),
    [
        # 16 channels x 4 states, 2 past inputs each; 7 a state element, 3 a channel, 2*3 a channel of convolution
        (MAMBA1.mixer(), 16 * 4 + 16 * 2, 16 * (7 * 4 + 3) + 2 * 3 * 16),
        # x, B and C (16 + 2*4 channels) go through the convolution; dt*A and exp once a head
        (MAMBA2.mixer(), 16 * 4 + 24 * 2, 16 * (5 * 4 + 3) + 2 * 2 + 2 * 3 * 24),
        # 2 heads of 3 x 5; the convolution covers query, key (3 each) and value (10)
        (DELTA.mixer(), 2 * 15 + 16 * 3, 7 * 30 + 2 * 10 + 2 * 4 * 16),
        (KIMI.mixer(), 2 * 9 + 18 * 3, 7 * 18 + 3 * 6 + 2 * 4 * 18),
        (lightning_attention(8, 2, 3), 2 * 9, 5 * 18),
        (short_conv(8, 3, bias=False), 8 * 2, 8 * (2 * 3 + 2)),
        # one recurrent element and 3 past inputs a channel
        (rg_lru(8, 6, 2, 4), 6 + 6 * 3, 6 * (10 + 2 * 4)),
        (rwkv4_time_mix(8, 6), 8 + 3 * 6, 3 * 3 * 8 + 23 * 6),
        (rwkv4_channel_mix(8, 32), 8, 2 * 3 * 8),
        # 2 heads of 2 x 4; the normalizer has 4 elements, the gates one maximum a head
        (mlstm(8, 2, 4, 8, bias=False), 2 * 8 + 4 + 2, 5 * 16 + 5 * 4 + 8 + 6 * 2),
    ],
    ids=lambda value: value.kind if isinstance(value, Mixer) else "",
)
def test_state_and_scan(mixer: Mixer, state: int, core_flops: int) -> None:
    assert (mixer.state, mixer.core_flops) == (state, core_flops)


def per_token(mixer: Mixer) -> int:
    """Forward FLOPs per token of the multiplications by a weight."""
    return sum(2 * size(weight.formula(), mixer.dims) for weight in mixer.weights if weight.matmul)


def test_only_projections_are_matmuls() -> None:
    names = [weight.name for weight in MAMBA1.mixer().weights if weight.matmul]
    assert names == ["in_proj", "x_proj", "dt_proj", "out_proj"]
    assert per_token(MAMBA1.mixer()) == 2 * (8 * 32 + 16 * (2 + 8) + 2 * 16 + 16 * 8)


def test_heads_split_the_selection_without_changing_its_size() -> None:
    split = Mamba1(d_model=8, d_inner=16, d_state=4, dt_rank=2, conv_kernel=3, heads=4).mixer()
    # each head projects only its own channels: as many weights for x_proj, every head its own copy
    assert per_token(split) == per_token(MAMBA1.mixer())
    assert {w.name: w.copies for w in split.weights if w.copies != "1"} == {
        "x_proj": "mixer_heads",
        "dt_proj": "mixer_heads",
    }


def test_full_rank_gates_replace_two_projections_by_one() -> None:
    full = KimiDelta(d_model=8, heads=2, head_dim=3, conv_kernel=4, low_rank=False).mixer()
    low = KIMI.mixer()
    # decay and gate: 8*6 each, against 8*3 + 3*6 each
    assert per_token(full) - per_token(low) == 2 * 2 * (8 * 6 - (8 * 3 + 3 * 6))
