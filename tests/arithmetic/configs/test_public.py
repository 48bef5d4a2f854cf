"""Configs as they are published, with every field of the file, and traps built on them.

Totals: "class" is the model class of transformers 5.24 instantiated without memory (for a first format, the class that
reads the same weights today), "card" the total that is shown for the stored tensors, "code" a sum over the shapes in
the code that was published with the weights.
"""

from typing import Any

import pytest

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.params import params
from ridgeline.core.errors import InputError

COMMON: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.02, "use_cache": True}
LLAMA = COMMON | {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
}
GPT2 = COMMON | {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "n_ctx": 1024,
    "n_positions": 1024,
    "n_special": 0,
    "predict_special_tokens": True,
    "attn_pdrop": 0.1,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "vocab_size": 50257,
}
LING = COMMON | {
    "architectures": ["BailingMoeForCausalLM"],
    "model_type": "bailing_moe",
    "attention_dropout": 0.0,
    "embedding_dropout": 0.0,
    "first_k_dense_replace": 0,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 1408,
    "max_position_embeddings": 32768,
    "moe_intermediate_size": 1408,
    "norm_head": False,
    "norm_softmax": False,
    "norm_topk_prob": True,
    "num_attention_heads": 16,
    "num_experts": 64,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "num_shared_experts": 2,
    "output_dropout": 0.0,
    "rope_theta": 600000,
    "tie_word_embeddings": False,
    "use_bias": False,
    "use_qkv_bias": False,
    "vocab_size": 126464,
}
LING_2 = LING | {
    "architectures": ["BailingMoeV2ForCausalLM"],
    "first_k_dense_replace": 1,
    "head_dim": 128,
    "intermediate_size": 5120,
    "moe_intermediate_size": 512,
    "moe_router_enable_expert_bias": True,
    "moe_shared_expert_intermediate_size": 512,
    "n_group": 8,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 20,
    "num_nextn_predict_layers": 0,
    "num_shared_experts": 1,
    "partial_rotary_factor": 0.5,
    "routed_scaling_factor": 2.5,
    "router_dtype": "fp32",
    "score_function": "sigmoid",
    "topk_group": 4,
    "use_qk_norm": True,
    "use_rmsnorm": True,
    "vocab_size": 157184,
}
PHI_MSFT = COMMON | {
    "architectures": ["PhiForCausalLM"],
    "model_type": "phi-msft",
    "activation_function": "gelu_new",
    "attn_pdrop": 0.0,
    "flash_attn": False,
    "flash_rotary": False,
    "fused_dense": False,
    "img_processor": None,
    "layer_norm_epsilon": 1e-05,
    "n_embd": 2560,
    "n_head": 32,
    "n_head_kv": None,
    "n_inner": None,
    "n_layer": 32,
    "n_positions": 2048,
    "rotary_dim": 32,
    "tie_word_embeddings": False,
    "vocab_size": 51200,
}
STABLELM_EPOCH = LLAMA | {
    "architectures": ["StableLMEpochForCausalLM"],
    "model_type": "stablelm_epoch",
    "hidden_size": 2560,
    "intermediate_size": 6912,
    "norm_eps": 1e-05,
    "num_heads": 32,
    "rope_pct": 0.25,
    "rotary_scaling_factor": 1.0,
    "vocab_size": 50304,
}
FALCON_2 = COMMON | {
    "architectures": ["FalconForCausalLM"],
    "model_type": "falcon",
    "alibi": False,
    "bias": False,
    "ff_factor": 4,
    "ffn_hidden_size": 16384,
    "hidden_size": 4096,
    "multi_query": True,
    "new_decoder_architecture": True,
    "num_attention_heads": 32,
    "num_hidden_layers": 60,
    "num_kv_heads": 8,
    "num_ln_in_parallel_attn": 1,
    "parallel_attn": True,
    "tie_word_embeddings": False,
    "vocab_size": 65024,
}
SMOLLM = LLAMA | {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "is_llama_config": True,
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "rope_interleaved": False,
    "tie_word_embeddings": True,
    "transformers.js_config": {"dtype": "q4"},
    "vocab_size": 49152,
}
DECI = LLAMA | {
    "architectures": ["DeciLMForCausalLM"],
    "model_type": "deci",
    "intermediate_size": 14336,
    "num_key_value_heads": 4,
    "num_key_value_heads_per_layer": [4] * 11 + [2] * 2 + [1] * 19,
}
MINICPM = LLAMA | {
    "architectures": ["MiniCPMForCausalLM"],
    "model_type": "minicpm",
    "dim_model_base": 256,
    "hidden_size": 2304,
    "intermediate_size": 5760,
    "num_attention_heads": 36,
    "num_hidden_layers": 40,
    "num_key_value_heads": 36,
    "scale_depth": 1.4,
    "scale_emb": 12,
    "vocab_size": 122753,
}
del MINICPM["tie_word_embeddings"]

# name: (total, where the total comes from, config)
PUBLIC: dict[str, tuple[int, str, dict[str, Any]]] = {
    "Llama-2-7B": (6_738_415_616, "class", LLAMA),
    "SmolLM-135M": (134_515_008, "class", SMOLLM),
    "GPT-2": (124_439_808, "class", GPT2 | {"n_embd": 768, "n_head": 12, "n_layer": 12}),
    "GPT-2 large": (774_030_080, "class", GPT2 | {"n_embd": 1280, "n_head": 20, "n_layer": 36}),
    "Falcon 2 11B sizes": (11_102_822_400, "class", FALCON_2),
    "Phi-2, first format": (2_779_683_840, "class", PHI_MSFT),
    "Phi-1.5, first format": (1_418_270_720, "class", PHI_MSFT | {"n_embd": 2048, "n_layer": 24}),
    "StableLM-3B-4E1T, first format": (2_795_443_200, "class", STABLELM_EPOCH),
    "Ling-lite-1.5": (16_801_974_272, "code", LING),
    # the card counts the 19 buffers of 256 expert biases too: 16,255,643,392
    "Ling-mini-2.0": (16_255_638_528, "card", LING_2),
    "MiniCPM-2B": (2_724_880_896, "card", MINICPM),
    "DeciLM-7B with 67 key-value heads": (7_043_551_232, "code", DECI),
    "InternLM-7B": (
        7_321_948_160,
        "code",
        LLAMA
        | {"architectures": ["InternLMForCausalLM"], "model_type": "internlm", "bias": True, "vocab_size": 103168},
    ),
    "Orion-14B": (
        14_498_703_360,
        "code",
        LLAMA
        | {
            "architectures": ["OrionForCausalLM"],
            "model_type": "orion",
            "hidden_size": 5120,
            "intermediate_size": 15360,
            "num_hidden_layers": 40,
            "num_attention_heads": 40,
            "num_key_value_heads": 40,
            "vocab_size": 84608,
        },
    ),
    "Yi-6B, first format": (
        6_061_035_520,
        "class",
        LLAMA | {"architectures": ["YiForCausalLM"], "model_type": "Yi", "num_key_value_heads": 4, "vocab_size": 64000},
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_total(name: str) -> None:
    total, _, config = PUBLIC[name]
    assert params(read_config(config)).total.value == total


MIXTRAL = LLAMA | {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 8}
KIND_OF_MAMBA = {"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100}
TRAPS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (LLAMA, {"hidden_act": "xielu"}, "hidden_act"),
    (LLAMA, {"hidden_act": "prelu"}, "hidden_act"),
    (LLAMA, {"num_extra_experts": 4}, "num_extra_experts"),
    (LLAMA, {"use_extra_bias": True}, "use_extra_bias"),
    (LLAMA, {"gated_mlp": False}, "gated_mlp"),
    (LLAMA, {"use_rms_norm": False}, "use_rms_norm"),
    (LLAMA, {"draft_vocab_size": 32000}, "draft_vocab_size"),
    (MIXTRAL, {"num_experts_per_tok": 9}, "num_experts_per_tok"),
    (GPT2 | {"n_embd": 64, "n_head": 2, "n_layer": 2}, {"n_special": 3}, "n_special"),
    (FALCON_2, {"ff_factor": 8}, "ff_factor"),
    (STABLELM_EPOCH, {"num_heads": 16}, "num_heads"),
    (MINICPM, {"num_experts": 8}, "num_experts"),
    (DECI, {"num_key_value_heads_per_layer": [4] * 31}, "num_key_value_heads_per_layer"),
    (DECI, {"num_key_value_heads_per_layer": [5] * 32}, "num_key_value_heads_per_layer"),
    (LING, {"norm_head": True}, "norm_head"),
    (PHI_MSFT, {"n_head_kv": 5}, "n_head"),
    (KIND_OF_MAMBA, {"d_model": 32}, "d_model"),
    (KIND_OF_MAMBA, {"n_layer": 3}, "n_layer"),
]


@pytest.mark.parametrize(("config", "trap", "field"), TRAPS, ids=[f"{t[0]['model_type']}-{t[2]}" for t in TRAPS])
def test_refuses_what_changes_the_count(config: dict[str, Any], trap: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config | trap)
    assert f"$.{field}" in str(caught.value)


def test_copies_of_the_text_config_are_accepted_when_they_agree() -> None:
    """Saved vision-language configs repeat the sizes of the language model beside ``text_config``."""
    text: dict[str, Any] = {
        key: LLAMA[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size")
    }
    text |= {"num_attention_heads": 32, "num_key_value_heads": 8, "model_type": "qwen2_5_vl_text"}
    vision = {"depth": 2, "hidden_size": 64, "num_heads": 4, "intermediate_size": 96, "out_hidden_size": 4096}
    config = {"model_type": "qwen2_5_vl", "text_config": text, "vision_config": vision, "tie_word_embeddings": False}
    plain = params(read_config(config)).total.value
    copies = {key: value for key, value in text.items() if key != "model_type"}
    assert params(read_config(config | copies)).total.value == plain
    with pytest.raises(InputError, match="hidden_size"):
        read_config(config | copies | {"hidden_size": 2048})


def test_says_when_the_class_and_the_model_type_disagree() -> None:
    spec = read_config(LLAMA | {"architectures": ["Qwen2ForCausalLM"]})
    assert any("qwen2" in note and "llama" in note for note in spec.notes)
    assert not any("architectures" in note for note in read_config(LLAMA).notes)


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ({"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 8}, "org/base"),
        ({"_class_name": "UNet2DConditionModel", "sample_size": 64}, "diffusion"),
        ({"model_type": "bert", "hidden_size": 768}, "encoders"),
        ({"model_type": "lama"}, "llama"),
    ],
)
def test_says_what_a_file_is_that_is_no_language_model(config: dict[str, Any], hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        read_config(config)
