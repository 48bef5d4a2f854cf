"""The cache of a published configuration counted again from its raw fields, without the package's readers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Counted:
    """Elements that a token adds, and that a request of some length keeps, in keys and values."""

    per_token: float
    per_request: float


def recount(config: Fields, tokens: int) -> Counted:
    """Elements of cache of one request of ``tokens`` tokens, states left out."""
    text = next((config[key] for key in ("text_config", "llm_config") if key in config), config)
    layers = list(_layers(text))
    return Counted(
        sum(each for each, _ in layers),
        sum(each * (tokens if window is None else min(window, tokens)) for each, window in layers),
    )


def _layers(c: Fields) -> list[tuple[float, int | None]]:
    """Elements per token of every layer, and its window."""
    kind = c.get("model_type", "")
    if "compress_ratios" in c:
        return _compressed(c)
    if c.get("kv_lora_rank"):
        latent = c["kv_lora_rank"] + c["qk_rope_head_dim"]
        if "linear_attn_config" in c:  # delta attention keeps a state instead
            return [(latent, None)] * len(c["linear_attn_config"]["full_attn_layers"])
        return [(latent + own, None) for own in _index(c)]
    if kind == "nemotron-nas":
        heads = c["num_attention_heads"]
        blocks = [b["attention"] for b in c["block_configs"]]
        groups = [b["n_heads_in_group"] for b in blocks if not b["no_op"] and not b.get("replace_with_linear")]
        return [(2 * heads // group * (c["hidden_size"] // heads), None) for group in groups]
    if "sparse_attention_config" in c:
        freq = c["sparse_attention_config"]["sparse_attention_freq"]
        return [(_pair(c) + on * c["sparse_attention_config"]["sparse_index_dim"], None) for on in freq]
    if kind == "mimo_v2_flash":
        wide = c["num_key_value_heads"] * (c["head_dim"] + c["v_head_dim"])
        local = c["swa_num_key_value_heads"] * (c["swa_head_dim"] + c["swa_v_head_dim"])
        return [(local, c["sliding_window"]) if on else (wide, None) for on in c["hybrid_layer_pattern"]]
    if kind == "llama4_text":
        return [(_pair(c), None if (i + 1) % 4 == 0 else c["attention_chunk_size"])
                for i in range(c["num_hidden_layers"])]  # fmt: skip
    return [item for item in (_typed(c, name) for name in _types(c)) if item[0]]


def _types(c: Fields) -> list[str]:
    """The kind of every layer by name; ``full_attention`` where the configuration names none."""
    pattern = c.get("hybrid_override_pattern")
    if pattern:
        return ["attention" if letter == "*" else "other" for letter in pattern]
    if "layers_block_type" in c:
        return list(c["layers_block_type"])
    if c.get("full_attention_interval") and not c.get("layer_types"):
        every = c["full_attention_interval"]
        return ["linear" if (i + 1) % every else "full_attention" for i in range(c["num_hidden_layers"])]
    types = c.get("layer_types")
    return list(types or ["full_attention"] * c["num_hidden_layers"])


def _typed(c: Fields, name: str) -> tuple[float, int | None]:
    if name in ("full_attention", "attention"):
        heads = c.get("num_global_key_value_heads") or c["num_key_value_heads"]
        width = c.get("global_head_dim") or _width(c)
        return 2 * heads * width, None
    if name == "sliding_attention":
        return _pair(c), c["sliding_window"]
    return 0, None


def _pair(c: Fields) -> int:
    return 2 * int(c["num_key_value_heads"]) * _width(c)


def _width(c: Fields) -> int:
    return int(c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"])


def _index(c: Fields) -> list[int]:
    """Width of the index key of every layer, 0 for none."""
    count, width = c["num_hidden_layers"], c.get("index_head_dim") or 0
    kinds = c.get("indexer_types")
    return [width if kinds is None or kinds[i] == "full" else 0 for i in range(count)]


def _compressed(c: Fields) -> list[tuple[float, int | None]]:
    rows: list[tuple[float, int | None]] = []
    for span in c["compress_ratios"][: c["num_hidden_layers"]]:
        rows.append((c["head_dim"], c["sliding_window"]))
        index = c["index_head_dim"] if span == 4 else 0
        if span:
            rows.append(((c["head_dim"] + index) / span, None))
    return rows
