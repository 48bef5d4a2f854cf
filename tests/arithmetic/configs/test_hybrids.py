"""Readers of state-space, recurrent, linear-attention and hybrid families.

``hybrid_counts.jsonl`` holds small configs that vary every count-changing field. Their counts were taken from the
published model classes (transformers 5.24) instantiated without memory: the sizes of the distinct parameters, and for
``active`` the share ``top_k / experts`` of the routed ones.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.params import counts, params
from ridgeline.arithmetic.spec import Attention, Mixer, ModelSpec, Part
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given

CASES = [json.loads(line) for line in Path(__file__).with_name("hybrid_counts.jsonl").read_text("utf-8").splitlines()]
NAMES = [f"{number}-{case['config']['model_type']}" for number, case in enumerate(CASES)]


def config_of(model_type: str, **changes: Any) -> dict[str, Any]:
    """The first case of this type, with some fields replaced."""
    case = next(case for case in CASES if case["config"]["model_type"] == model_type)
    return {**case["config"], **changes}


def total_and_active(spec: ModelSpec) -> tuple[int, int]:
    parts = [pair for part, pair in counts(spec).items() if part is not Part.MTP]
    return sum(stored for stored, _ in parts), sum(active for _, active in parts)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_counts_are_those_of_the_model_class(case: dict[str, Any]) -> None:
    assert total_and_active(read_config(case["config"])) == (case["total"], case["active"])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_printed_formula_gives_the_same_count(case: dict[str, Any]) -> None:
    found = params(read_config(case["config"]))
    assert (found.total.value, found.active.value) == (case["total"], case["active"])


@pytest.mark.parametrize(
    ("model_type", "changes", "field"),
    [
        ("mamba", {"hidden_size": -64}, "hidden_size"),
        ("mamba", {"ssm_cfg": {"layer": "Mamba2"}}, "ssm_cfg"),
        ("mamba", {"time_step_rank": "large"}, "time_step_rank"),
        ("mamba2", {"num_heads": 7}, "num_heads"),
        ("bamba", {"mamba_d_head": 17}, "mamba_d_head"),
        ("bamba", {"mamba_n_heads": 7}, "mamba_n_heads"),
        ("bamba", {"attn_layer_indices": [3]}, "attn_layer_indices"),
        ("falcon_h1", {"mamba_use_mlp": False}, "mamba_use_mlp"),
        ("falcon_h1", {"num_key_value_heads": 3}, "num_key_value_heads"),
        ("granitemoehybrid", {"layer_types": ["mamba"]}, "layer_types"),
        ("granitemoehybrid", {"num_experts_per_tok": 7}, "num_experts_per_tok"),
        ("granitemoehybrid", {"normalization_function": "layernorm"}, "normalization_function"),
        ("jamba", {"attn_layer_offset": 4}, "attn_layer_offset"),
        ("jamba", {"mamba_inner_layernorms": False}, "mamba_inner_layernorms"),
        ("zamba", {"num_hidden_layers": 2}, "num_hidden_layers"),
        ("zamba", {"tie_word_embeddings": False}, "tie_word_embeddings"),
        ("zamba2", {"attention_hidden_size": 64}, "attention_hidden_size"),
        ("zamba2", {"hybrid_layer_ids": [0]}, "hybrid_layer_ids"),
        ("zamba2", {"layers_block_type": None}, "num_hidden_layers"),
        ("zamba2", {"use_shared_block_lora": True}, "use_shared_block_lora"),
        ("nemotron_h", {"hybrid_override_pattern": "M-X"}, "hybrid_override_pattern"),
        ("nemotron_h", {"num_hidden_layers": 5}, "num_hidden_layers"),
        ("nemotron_h", {"attention_bias": True}, "attention_bias"),
        ("nemotron_h", {"tie_word_embeddings": True}, "tie_word_embeddings"),
        ("nemotron_h", {"num_experts_per_tok": 9}, "num_experts_per_tok"),
        ("lfm2", {"conv_dim": 128}, "conv_dim"),
        ("lfm2", {"block_ffn_dim_multiplier": None}, "block_ffn_dim_multiplier"),
        ("lfm2_moe", {"layer_types": None}, "layer_types"),
        ("recurrent_gemma", {"lru_width": 42}, "num_attention_heads"),
        ("recurrent_gemma", {"intermediate_size": 97}, "intermediate_size"),
        ("qwen3_next", {"linear_num_key_heads": 3}, "linear_num_key_heads"),
        ("qwen3_next", {"num_experts_per_tok": 7}, "num_experts_per_tok"),
        ("qwen3_5_text", {"attn_output_gate": False}, "attn_output_gate"),
        ("minimax", {"shared_intermediate_size": 64}, "shared_intermediate_size"),
        ("minimax", {"attn_type_list": [0, 2, 1]}, "attn_type_list"),
        ("lfm2_vl", {"vision_config": {"hidden_size": 32}}, "vision_config.vision_use_head"),
        ("xlstm", {"num_heads": 7}, "num_heads"),
        ("xlstm", {"num_blocks": 3}, "num_blocks"),
        ("nemotron_h", {"num_nextn_predict_layers": 10**9}, ""),
        ("kimi_linear", {"num_nextn_predict_layers": 1}, "num_nextn_predict_layers"),
        ("kimi_linear", {"routed_expert_hidden_size": 32}, "routed_expert_hidden_size"),
    ],
)
def test_what_is_not_known_is_refused_by_name(model_type: str, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_config(config_of(model_type, **changes))
    assert refusal.value.where == (f"$.{field}" if field else "$")


def test_delta_layers_must_cover_the_model() -> None:
    sizes = {"full_attn_layers": [2], "kda_layers": [1, 3]}
    with pytest.raises(InputError) as refusal:
        read_config(config_of("kimi_linear", linear_attn_config=sizes))
    assert refusal.value.where == "$.linear_attn_config.kda_layers"


def test_a_shared_block_is_stored_once_and_used_often() -> None:
    spec = read_config(config_of("zamba"))
    shared = next(layer for layer in spec.kinds if layer.stored is not None)
    # 9 layers: the third, and of the 6 after it those with i % 2 == 1, are hybrid
    assert (shared.stored, spec.uses(spec.kinds.index(shared)), spec.layers) == (1, 4, 9 + 4)
    attention = shared.mixers[0]
    assert isinstance(attention, Attention)
    assert attention.d_in == 2 * spec.d_model


def test_shared_blocks_in_turn_are_never_stored_more_often_than_used() -> None:
    stored = [
        layer.stored
        for blocks in (1, 2, 3, 4)
        for layer in read_config(config_of("zamba2", num_mem_blocks=blocks)).kinds
        if layer.stored is not None
    ]
    assert stored == [1, 2, 3, 3]  # three hybrid layers


def test_parallel_heads_are_two_mixers_of_one_layer() -> None:
    spec = read_config(config_of("falcon_h1"))
    assert [type(mixer) for mixer in spec.kinds[0].mixers] == [Attention, Mixer]


def test_recurrent_gemma_attends_in_a_window() -> None:
    spec = read_config(config_of("recurrent_gemma", attention_window_size=512))
    windows = [m.window for layer in spec.kinds for m in layer.mixers if isinstance(m, Attention)]
    assert windows == [512]


def test_prediction_modules_are_listed_apart() -> None:
    plain = read_config(config_of("nemotron_h"))
    twice = read_config(config_of("nemotron_h", num_nextn_predict_layers=2, mtp_hybrid_override_pattern="*E"))
    assert total_and_active(twice) == total_and_active(plain)
    d, latent, experts = 64, 16, 8
    attention = d * 12 * (4 + 2 + 2) + 4 * 12 * d + d
    routed = experts * 2 * latent * 24 + d * experts
    shared = 2 * d * 40 + 40 + d
    projections = 2 * d * latent + latent + d
    module = 2 * d * d + 3 * d  # [token, state] -> state, and three norms
    assert counts(twice)[Part.MTP][0] == 2 * (attention + routed + shared + projections + d + module)


def test_the_language_model_of_a_config_with_a_tower_is_counted_and_the_tower_named() -> None:
    text = config_of("qwen3_5_moe_text", tie_word_embeddings=True)
    tower = {"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "out_hidden_size": 64}
    spec = read_config({"model_type": "qwen3_5_moe", "text_config": text, "vision_config": tower})
    assert total_and_active(spec) == total_and_active(read_config(text))
    patch = 3 * 2 * 16 * 16 * 32 + 32
    layer = 4 * (32 * 32 + 32) + 32 * 48 + 48 + 48 * 32 + 32 + 4 * 32
    merger = 2 * 32 + 128 * 128 + 128 + 128 * 64 + 64
    assert f"{patch + 2304 * 32 + 2 * layer + merger:,}" in spec.notes[0]


def test_both_spellings_of_the_layer_order_agree() -> None:
    letters = read_config(config_of("nemotron_h"))
    names = ["mamba", "mlp", "mamba", "moe", "attention", "mamba"]
    listed = config_of("nemotron_h", layers_block_type=names)
    assert read_config(listed).pattern == letters.pattern
    with pytest.raises(InputError, match="hybrid_override_pattern"):
        read_config({**listed, "layers_block_type": names[::-1]})


def test_numbered_layer_types_mean_the_same_as_named_ones() -> None:
    named = config_of("minimax", layer_types=["linear_attention", "full_attention", "linear_attention"])
    numbered = {**named, "model_type": "minimax_text_01", "layer_types": None, "attn_type_list": [0, 1, 0]}
    assert read_config(numbered).kinds == read_config(named).kinds


def test_kimi_k3_is_read_and_its_unknowns_are_noted() -> None:
    """Two latent layers among three of delta attention; experts in a latent width; the tower is left out."""
    text: dict[str, Any] = {
        "model_type": "kimi_linear", "hidden_size": 64, "num_hidden_layers": 5, "num_attention_heads": 4,
        "vocab_size": 100, "intermediate_size": 96, "first_k_dense_replace": 1, "kv_lora_rank": 16, "q_lora_rank": 24,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "num_experts": 6, "num_experts_per_token": 2,
        "num_shared_experts": 1, "moe_intermediate_size": 20, "routed_expert_hidden_size": 32, "mla_use_nope": True,
        "mla_use_output_gate": True, "latent_moe_use_norm": True, "attn_res_block_size": 2, "hidden_act": "situ",
        "tie_word_embeddings": False, "num_key_value_heads": 4, "moe_layer_freq": 1,
        "linear_attn_config": {
            "full_attn_layers": [4, 5], "kda_layers": [1, 2, 3], "head_dim": 16, "num_heads": 4,
            "short_conv_kernel_size": 4, "use_full_rank_gate": True, "gate_lower_bound": -5.0,
        },
    }  # fmt: skip
    config: dict[str, Any] = {"model_type": "kimi_k3", "text_config": text, "vision_config": {"vt_hidden_size": 8}}
    spec = read_config(config, name="k3")
    assert len(spec.notes) == 2
    delta = 3 * 64 * 64 + 3 * 64 * 4 + (64 * 16 + 16 * 64) + 64 + 4 + 64 * 4 + 64 * 64 + 16 + 64 * 64
    latent = 64 * 24 + 24 + 24 * 4 * 12 + 64 * 20 + 16 + 16 * 4 * 16 + 4 * 8 * 64 + 64 * 4 * 8
    sparse = 64 * 6 + 6 * 3 * 32 * 20 + 64 * 32 + 32 * 64 + 32 + 3 * 64 * 20
    expected = 3 * delta + 2 * latent + 3 * 64 * 96 + 4 * sparse + 5 * 2 * 64 + 2 * 100 * 64 + 64
    assert params(spec).total.value == expected
    cache = kv_cache(spec, given("context", 100, "token"))
    assert cache.per_token.value == 2 * 2 * (16 + 4)
    other = {**text["linear_attn_config"], "use_full_rank_gate": False}
    with pytest.raises(InputError, match="use_full_rank_gate"):
        read_config({**config, "text_config": {**text, "linear_attn_config": other}}, name="k3")
