"""Defaults, traps and refusals of ``read_config``, on small hand-made configs."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ridgeline.arithmetic.configs.fields import harmless_patterns, is_harmless
from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.configs.registry import readers
from ridgeline.arithmetic.params import counts, params
from ridgeline.arithmetic.spec import MLA, Attention, MoE, Part
from ridgeline.core.errors import InputError

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 160,
}
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 6, "num_experts_per_tok": 2}
FIRST_OF_EACH: dict[str, dict[str, Any]] = {}
for _file in ("attention_counts.jsonl", "hybrid_counts.jsonl"):
    for _line in Path(__file__).with_name(_file).read_text("utf-8").splitlines():
        _config = json.loads(_line)["config"]
        FIRST_OF_EACH.setdefault(_config["model_type"], _config)


def total(**fields: Any) -> int:
    value = params(read_config(LLAMA | fields)).total.value
    assert isinstance(value, int)
    return value


def attention(**fields: Any) -> Attention:
    mixer = read_config(LLAMA | fields).kinds[0].mixers[0]
    assert isinstance(mixer, Attention)
    return mixer


# --- defaults ----------------------------------------------------------------------------------------------------


def test_a_llama_by_hand() -> None:
    attention_weights, mlp, norms = 4 * 64 * 64, 3 * 64 * 96, 2 * 64
    assert total() == 2 * 160 * 64 + 4 * (attention_weights + mlp + norms) + 64


@pytest.mark.parametrize("fields", [{}, {"num_key_value_heads": None}, {"head_dim": None}])
def test_absent_or_null_means_one_head_each(fields: dict[str, Any]) -> None:
    block = attention(**fields)
    assert (block.kv_heads, block.head_dim) == (8, 8)


def test_absent_and_null_differ_where_the_family_says_so() -> None:
    assert attention(model_type="mistral").kv_heads == 8
    assert attention(model_type="mistral", num_attention_heads=16).kv_heads == 8
    assert attention(model_type="mistral", num_attention_heads=16, num_key_value_heads=None).kv_heads == 16


def test_qwen2_has_biases_that_its_config_does_not_mention() -> None:
    biased = total(model_type="qwen2", num_key_value_heads=4)
    assert biased - total(num_key_value_heads=4) == 4 * (64 + 2 * 32)


def test_gemma_is_tied_by_default_and_llama_is_not() -> None:
    gemma = LLAMA | {"model_type": "gemma", "num_key_value_heads": 8, "head_dim": 8}
    assert read_config(gemma).tied
    assert not read_config(LLAMA).tied
    assert total(tie_word_embeddings=True) == total() - 160 * 64


def test_the_outer_tie_flag_decides_over_the_inner_one() -> None:
    config = FIRST_OF_EACH["qwen3_vl_moe"]
    inner = config["text_config"] | {"tie_word_embeddings": True}
    assert not read_config(config | {"text_config": inner}).tied
    assert read_config(config | {"tie_word_embeddings": True}).tied


def test_gpt2_inner_width_null_means_four_times() -> None:
    config = FIRST_OF_EACH["gpt2"]
    absent = {k: v for k, v in config.items() if k != "n_inner"}
    assert read_config(config | {"n_inner": None}).kinds == read_config(absent).kinds
    wide = params(read_config(config | {"n_inner": 8 * config["n_embd"]})).total.value
    assert wide > params(read_config(config)).total.value


@pytest.mark.parametrize(
    ("fields", "kv_heads", "norms"),
    [
        ({"new_decoder_architecture": False, "multi_query": True, "parallel_attn": True}, 1, 1),  # 7B
        ({"new_decoder_architecture": True, "num_kv_heads": 4}, 4, 2),  # 40B
        ({"new_decoder_architecture": True, "num_kv_heads": 4, "num_ln_in_parallel_attn": 1}, 4, 1),  # 11B
        ({"multi_query": False, "parallel_attn": False}, 8, 2),  # RW
    ],
)
def test_falcon_layouts(fields: dict[str, Any], kv_heads: int, norms: int) -> None:
    layer = read_config(FIRST_OF_EACH["falcon"] | {"num_attention_heads": 8} | fields).kinds[0]
    block = layer.mixers[0]
    assert isinstance(block, Attention)
    assert block.kv_heads == kv_heads
    assert len(layer.norms.weights) == 2 * norms  # gain and bias


def test_windows_follow_the_layer_types() -> None:
    config = LLAMA | {"model_type": "gemma2", "num_key_value_heads": 4, "head_dim": 8, "sliding_window": 16}
    spec = read_config(config)
    mixers = [spec.kinds[i].mixers[0] for i in spec.pattern]
    assert [m.window for m in mixers if isinstance(m, Attention)] == [16, None, 16, None]


def test_deepseek_layers() -> None:
    spec = read_config(FIRST_OF_EACH["deepseek_v3"])
    kinds = [type(spec.kinds[i].ffns[0]).__name__ for i in spec.pattern]
    assert kinds == ["MLP", "MLP", "MoE", "MoE", "MoE"]
    assert all(isinstance(layer.mixers[0], MLA) for layer in spec.kinds)
    moe = spec.kinds[1].ffns[0]
    assert isinstance(moe, MoE)
    assert moe.shared_ff == moe.expert_ff


# --- what is kept apart ------------------------------------------------------------------------------------------


def test_prediction_modules_are_not_in_the_total() -> None:
    config = {k: v for k, v in FIRST_OF_EACH["deepseek_v3"].items() if k != "num_mtp_layers"}
    plain = read_config(config)
    spec = read_config(config | {"num_nextn_predict_layers": 2})
    assert params(spec).total.value == params(plain).total.value
    assert len(spec.mtp) == 2
    assert counts(spec)[Part.MTP][0] > 2 * spec.d_model**2
    assert any("multi-token-prediction" in note for note in spec.notes)


def test_quantization_does_not_change_logical_parameters() -> None:
    packed = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}, "torch_dtype": "float8"}
    assert total(**packed) == total()


def test_vision_is_counted_apart() -> None:
    spec = read_config(FIRST_OF_EACH["gemma3"])
    vision, active = counts(spec)[Part.VISION]
    assert vision == active > 0


def test_provenance_says_where_each_field_came_from() -> None:
    spec = read_config(LLAMA | {"mystery_size": 7}, allow_fields=["mystery_size"])
    assert spec.provenance["hidden_size"] == "config"
    assert spec.provenance["num_key_value_heads"] == "default"
    assert spec.provenance["head_dim"] == "derived"
    assert spec.provenance["mystery_size"] == "user"
    nested = read_config(FIRST_OF_EACH["gemma3"])
    assert nested.provenance["text_config.hidden_size"] == "config"


# --- unknown fields ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", sorted(FIRST_OF_EACH))
def test_no_family_ignores_a_field_it_does_not_know(model_type: str) -> None:
    config = FIRST_OF_EACH[model_type] | {"mystery_size": 7}
    with pytest.raises(InputError, match="mystery_size") as caught:
        read_config(config)
    assert "--allow-field mystery_size" in caught.value.hint
    assert read_config(config, allow_fields=["mystery_size"]).family == model_type


@pytest.mark.parametrize("empty", [None, False, "", [], {}])
def test_an_unknown_field_without_content_is_noted(empty: Any) -> None:
    spec = read_config(LLAMA | {"mystery_size": empty})
    assert spec.provenance["mystery_size"] == "ignored: empty"


def test_an_unknown_nested_field_is_named_with_its_path() -> None:
    config = FIRST_OF_EACH["gemma3"]
    text = config["text_config"] | {"mystery_size": 7}
    with pytest.raises(InputError) as caught:
        read_config(config | {"text_config": text})
    assert caught.value.where == "$.text_config.mystery_size"


@pytest.mark.parametrize(
    "name",
    [
        "num_experts_per_token",
        "ffn_dim_multiplier",
        "block_ffn_dim_multiplier",
        "nope_head_dim",
        "rope_head_dim",
        "num_global_key_value_heads",
        "output_dim",
        "tie_word_embeddings",
        "vocab_size_per_layer_input",
        "head_dim",
    ],
)
def test_fields_that_change_counts_are_not_harmless(name: str) -> None:
    assert not is_harmless(name)


def test_the_harmless_list_has_no_repeated_name() -> None:
    exact, globs = harmless_patterns()
    assert len(exact) > 100
    assert len(set(globs)) == len(globs)


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "where"),
    [
        (LLAMA | {"num_key_value_heads": 3}, "$.num_key_value_heads"),
        (LLAMA | {"num_attention_heads": 7}, "$.num_attention_heads"),
        (MIXTRAL | {"num_experts_per_tok": 7}, "$.num_experts_per_tok"),
        (LLAMA | {"hidden_size": -64}, "$.hidden_size"),
        (LLAMA | {"hidden_size": 0}, "$.hidden_size"),
        (LLAMA | {"hidden_size": 10**15}, "$.hidden_size"),
        (LLAMA | {"hidden_size": "64"}, "$.hidden_size"),
        (LLAMA | {"hidden_size": 64.5}, "$.hidden_size"),
        (LLAMA | {"hidden_size": True}, "$.hidden_size"),
        (LLAMA | {"hidden_size": float("inf")}, "$.hidden_size"),
        (LLAMA | {"hidden_size": None}, "$.hidden_size"),
        (LLAMA | {"num_hidden_layers": 10**9}, "$.num_hidden_layers"),
        (LLAMA | {"attention_bias": "yes"}, "$.attention_bias"),
        (LLAMA | {"architectures": ["LlamaForSequenceClassification"]}, "$.architectures[0]"),
        (LLAMA | {"model_type": "lama"}, "$.model_type"),
        (LLAMA | {"model_type": 7}, "$.model_type"),
        (LLAMA | {"model_type": "gemma2", "head_dim": 8, "num_key_value_heads": 4, "layer_types": []}, "$.layer_types"),
        (
            LLAMA | {"model_type": "gemma2", "head_dim": 8, "num_key_value_heads": 4, "layer_types": ["wide"] * 4},
            "$.layer_types[0]",
        ),
        ({"weights": [1, 2]}, "$"),
        ({}, "$"),
    ],
)
def test_refusals_name_the_place(config: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config)
    assert caught.value.where == where
    assert caught.value.message.startswith("Expected")


@pytest.mark.parametrize("missing", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_essential_sizes_have_no_silent_default(missing: str) -> None:
    with pytest.raises(InputError, match=missing):
        read_config({k: v for k, v in LLAMA.items() if k != missing})


@pytest.mark.parametrize("document", [[1, 2], "config", 7, None])
def test_only_objects_are_configs(document: Any) -> None:
    with pytest.raises(InputError, match="JSON object"):
        read_config(document)


def test_a_misspelt_family_gets_the_close_matches() -> None:
    with pytest.raises(InputError) as caught:
        read_config(LLAMA | {"model_type": "qwen3moe"})
    assert "qwen3_moe" in caught.value.hint


def test_two_names_of_one_field_must_agree() -> None:
    assert read_config(MIXTRAL | {"num_experts": 6}).layers == 4
    with pytest.raises(InputError, match=r"num_experts"):
        read_config(MIXTRAL | {"num_experts": 8})


def test_a_config_without_model_type_is_known_by_its_class() -> None:
    config = {k: v for k, v in FIRST_OF_EACH["qwen3_vl"].items() if k != "model_type"}
    named = config | {"architectures": ["Qwen3VLForConditionalGeneration"]}
    assert read_config(named).kinds == read_config(FIRST_OF_EACH["qwen3_vl"]).kinds


def test_where_prefixes_every_path() -> None:
    with pytest.raises(InputError) as caught:
        read_config(LLAMA | {"hidden_size": -1}, where="model")
    assert caught.value.where == "model.hidden_size"


def test_every_reader_is_documented_and_found() -> None:
    found = readers()
    assert len(found) >= 100
    assert [name for name, reader in found.items() if not reader.__doc__] == []


@pytest.mark.parametrize("junk", [None, -1, "x", 1.5, True, [], {}, 10**30, [1], float("nan")])
@pytest.mark.parametrize("model_type", sorted(FIRST_OF_EACH))
def test_junk_in_any_field_is_refused_or_read(model_type: str, junk: Any) -> None:
    """A wrong value is the user's mistake: an ``InputError``, never another exception."""
    config = FIRST_OF_EACH[model_type]
    for name in config:
        with suppress(InputError):
            counts(read_config(config | {name: junk}))
