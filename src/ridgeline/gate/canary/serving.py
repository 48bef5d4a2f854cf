"""Does a server forget on a retrieval path: windows, eviction, truncation and lengths in its configuration.

Names are those of vLLM, SGLang, TensorRT-LLM and Hugging Face. What is about attention and not known here is said.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ridgeline.core.catalog import constant
from ridgeline.core.finding import Verdict
from ridgeline.core.format import count
from ridgeline.gate.canary.configs import Serving, Setting


class Kind(StrEnum):
    """What a remark is about; each is a rule of its own."""

    WINDOW = "window"
    EVICTION = "eviction"
    LENGTH = "length"
    OTHER = "other"


@dataclass(frozen=True)
class Remark:
    """One statement on a configuration, with the place that it is about."""

    kind: Kind
    verdict: Verdict
    place: str
    said: str
    fix: str = ""


@dataclass(frozen=True)
class Window:
    """``layers`` of ``total`` attend to the last ``tokens`` alone; None where the file does not say how many."""

    tokens: int
    layers: int | None
    total: int | None
    place: str
    chunked: bool = False


LENGTHS = ("max_model_len", "context_length", "max_seq_len", "max_position_embeddings", "n_positions")
WINDOWS = {
    "sliding_window": False, "interleaved_sliding_window": False, "attention_window_size": False,
    "sliding_window_size": False, "max_attention_window_size": False, "max_attention_window": False,
    "attention_chunk_size": True,
}  # fmt: skip
TRUNCATES = ("allow_auto_truncate", "truncate_prompt_tokens", "context_shift", "enable_context_shift")
_METHODS = re.compile(
    r"streaming_?llm|h2o(?![a-z])|heavy_hitter|heavy_ratio|recent_ratio|snap_?kv|pyramid_?kv|ada_?kv|kv_?press"
    r"|max_capacity_prompt|scissorhands|sink_token|num_sink|start_size|recent_size|expected_attention"
    r"|kv_(cache_)?(evict|compress|prun|drop)|cache_(evict|compress|budget)|token_evict"
)
_SELECTS = re.compile(
    r"double_sparsity|^ds_heavy|index_topk|minference|(^|_)quest(_|$)|sparse_attention|dual_chunk|block_sparse"
)
_LAYOUT = (
    "disable_hybrid_kv_cache_manager", "disable_hybrid_swa_memory", "swa_full_tokens_ratio", "hybrid_kvcache_ratio",
)  # fmt: skip
_RELEVANT = re.compile(
    r"attn|attention|window|sliding|kv_|_kv|kvcache|cache|sparse|evict|chunk|context_len|context_shift|sink|truncat"
    r"|compress|layer_types|sliding_window_pattern|global_layer"
)
_KNOWN = re.compile(
    r"^(num_(attention|key_value|kv)_heads|num_attention_groups|attention_(bias|dropout|multiplier|probs_dropout_prob"
    r"|out_bias|qkv_bias)|attn_(implementation|pdrop|dropout|logit_softcapping|scale)|_attn_implementation"
    r"|.*attention_backend|enable_chunked_prefill|chunked_prefill_size|max_chunked_prefill_tokens|use_cache"
    r"|(enable|disable)_(prefix_caching|radix_cache|mixed_chunk|cascade_attn)|prefix_caching_hash_algo|calculate_kv_scales"
    r"|.*_eviction_policy|eviction_policy|kv_lora_rank|max_seq_len_to_capture|quantization_param_path|kv_cache_memory.*"
    r"|(download|cache)_dir|.*cache_size|.*mm_.*|no_rope_layers|no_rope_layer_interval|use_sliding_window|max_window_layers"
    r"|sliding_window_pattern|_sliding_window_pattern|layer_types|disable_sliding_window|kv_cache_dtype|enable_dp_attention"
    r"|cache_implementation|.*kv_cache_scheme.*|kv_cache_quant_algo|rope_.*)$"
)
_NAMED = re.compile(r"^(model|model_path|_name_or_path|architectures|served_model_name|tokenizer.*|name)$")
_FIX = "Serve with full attention on this path, or keep prompts within the window; then ask the canary beyond it."


def remarks(servings: Sequence[Serving], longest: int | None = None) -> tuple[Remark, ...]:
    """What the files say together; ``longest`` is the longest context of the canary in tokens, where there is one."""
    settings = [item for serving in servings for item in serving.settings]
    if not settings:
        return ()
    windows, off = _windows(settings)
    limit = _limit(settings)
    return (
        *off,
        *(_on_window(item, limit, longest) for item in windows),
        *_evictions(settings),
        *_lengths(settings, limit, longest),
        *_others(settings),
        *_unsaid(settings, windows),
    )


def windows_of(servings: Sequence[Serving]) -> list[int]:
    """The windows that the files name, in tokens."""
    return sorted({w.tokens for w in _windows([s for item in servings for s in item.settings])[0]})


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _first(settings: Sequence[Setting], name: str) -> Setting | None:
    return next((item for item in settings if item.name == name), None)


def _value(settings: Sequence[Setting], name: str) -> Any:
    found = _first(settings, name)
    return None if found is None else found.value


def _windows(settings: Sequence[Setting]) -> tuple[list[Window], list[Remark]]:
    """Windows in force, and remarks on those that are switched off."""
    found: list[Window] = []
    off: list[Remark] = []
    disabled = _first([s for s in settings if s.value is True], "disable_sliding_window")
    for item in settings:
        sizes = [v for v in (item.value if isinstance(item.value, list) else [item.value]) if _is_size(v)]
        if item.name not in WINDOWS or not sizes:
            continue
        scope = [s for s in settings if s.scope == item.scope]
        why = _switched_off(item, scope, disabled)
        if why:
            said = f"the window of {min(sizes):,} tokens is not used: {why}"
            off.append(Remark(Kind.WINDOW, Verdict.PASS, item.place, said))
            continue
        layers, total = _layers(item, scope)
        if layers == 0:
            said = f"the window of {min(sizes):,} tokens is named and no layer uses it"
            off.append(Remark(Kind.WINDOW, Verdict.PASS, item.place, said))
        else:
            found.append(Window(min(sizes), layers, total, item.place, WINDOWS[item.name]))
    return found, off


def _switched_off(item: Setting, scope: Sequence[Setting], disabled: Setting | None) -> str:
    """Why a window is not in force, empty where it is."""
    if item.name != "sliding_window":
        return ""
    if disabled is not None:
        return f"{disabled.place} keeps prompts within it instead"
    use = _first(scope, "use_sliding_window")
    if use is not None and use.value is False:
        return f"use_sliding_window is false at {use.place}"
    if use is None and str(_value(scope, "model_type")).startswith("qwen2"):
        return "use_sliding_window is not set, and off unless it is"
    return ""


def _layers(item: Setting, scope: Sequence[Setting]) -> tuple[int | None, int | None]:
    """How many layers have the window, of how many; None where the file does not say."""
    total = _value(scope, "num_hidden_layers")
    total = total if _is_size(total) else None
    if isinstance(item.value, list):
        return sum(map(_is_size, item.value)), len(item.value)
    kinds, word = _value(scope, "layer_types"), "chunked" if WINDOWS[item.name] else "sliding"
    if isinstance(kinds, list) and kinds:
        return sum(word in str(kind) for kind in kinds), len(kinds)
    ropes = _value(scope, "no_rope_layers")
    if WINDOWS[item.name] and isinstance(ropes, list) and ropes:
        return sum(map(bool, ropes)), len(ropes)
    pattern = _value(scope, "sliding_window_pattern") or _value(scope, "_sliding_window_pattern")
    if pattern is None:
        usual = constant(f"gate.pattern.{_value(scope, 'model_type')}", missing_ok=True)
        pattern = None if usual is None else int(usual.base)
    if total and isinstance(pattern, str) and set(pattern) <= {"L", "G"}:
        return sum(pattern[i % len(pattern)] == "L" for i in range(total)), total
    if total and _is_size(pattern):
        return total - total // pattern, total
    most = _value(scope, "max_window_layers")
    if total and isinstance(most, int) and _value(scope, "use_sliding_window") is True:
        return max(0, total - most), total
    return (None if WINDOWS[item.name] else total), total


def _limit(settings: Sequence[Setting]) -> Setting | None:
    """The longest prompt that is served: a server's own limit before the model's; at most a window that caps it."""
    disabled = any(item.name == "disable_sliding_window" and item.value is True for item in settings)
    caps = [item for item in settings if disabled and item.name == "sliding_window" and _is_size(item.value)]
    for name in LENGTHS:
        sizes = [item for item in settings if item.name == name and _is_size(item.value)]
        if sizes:
            return min([*sizes, *caps], key=lambda item: item.value)
    return min(caps, key=lambda item: item.value, default=None)


def _on_window(item: Window, limit: Setting | None, longest: int | None) -> Remark:
    kind = "chunk" if item.chunked else "window"
    size = f"{item.tokens:,} tokens"
    if limit is not None and limit.value <= item.tokens:
        said = f"the {kind} of {size} holds every prompt that is served, {limit.value:,} at most ({limit.place})"
        return Remark(Kind.WINDOW, Verdict.PASS, item.place, said)
    reach = f"prompts reach {limit.value:,} ({limit.place})" if limit else "how long prompts may be is not said"
    whole = item.layers is not None and item.layers == item.total
    every = whole or (item.layers is None and not item.chunked)
    share = "all layers" if every else f"{item.layers} of {item.total} layers" if item.layers else "some layers"
    said = f"{share} attend within a {kind} of {size} alone, and {reach}"
    if longest is not None and longest <= item.tokens:
        more = f"; no canary context is longer than it ({longest:,} at most), so that nothing was tried"
        return Remark(Kind.WINDOW, Verdict.FAIL if every and limit else Verdict.UNKNOWN, item.place, said + more, _FIX)
    if not every:
        more = "; a needle beyond it is found through the other layers alone, which only results can show"
        return Remark(
            Kind.WINDOW, Verdict.WARN, item.place, said + more, "Ask the canary at lengths beyond the window."
        )
    return Remark(Kind.WINDOW, Verdict.FAIL if limit else Verdict.UNKNOWN, item.place, said, _FIX)


def _evictions(settings: Sequence[Setting]) -> Iterator[Remark]:
    for item in settings:
        cache = item.name == "cache_implementation"
        if item.value in (None, False, 0, "", "none", "off") or (_KNOWN.match(item.name) and not cache):
            continue
        if _NAMED.match(item.name):
            continue
        text = item.value.lower().replace("-", "_") if isinstance(item.value, str) and len(item.value) < 80 else ""
        shown = f"{item.name} = {item.value}"[:80]
        if cache:
            if "sliding" in text:
                yield Remark(Kind.EVICTION, Verdict.FAIL, item.place, f"{shown} keeps the last tokens alone", _FIX)
        elif _METHODS.search(item.name) or _METHODS.search(text):
            said = f"{shown}: keys and values are dropped from the cache"
            fix = "Serve without it, or ask the canary at lengths beyond its budget and ship on every depth."
            yield Remark(Kind.EVICTION, Verdict.FAIL, item.place, said, fix)
        elif _SELECTS.search(item.name) or _SELECTS.search(text):
            said = f"{shown}: nothing is dropped, but a query attends to chosen tokens alone"
            yield Remark(
                Kind.EVICTION, Verdict.WARN, item.place, said, "Ask the canary at the lengths that are served."
            )


def _lengths(settings: Sequence[Setting], limit: Setting | None, longest: int | None) -> Iterator[Remark]:
    for item in settings:
        if item.name in TRUNCATES and item.value not in (None, False, -1):
            said = f"{item.name} = {item.value}: a prompt that is too long loses a part, and its answer does not say so"
            yield Remark(Kind.LENGTH, Verdict.FAIL, item.place, said, "Refuse prompts that are too long instead.")
    if limit is None or longest is None:
        return
    if longest > limit.value:
        said = f"the longest canary context has {longest:,} tokens, and {limit.value:,} are served"
        fix = "Make the canary for the served length: `ridgeline gate haystack --length`."
        yield Remark(Kind.LENGTH, Verdict.FAIL, limit.place, said, fix)
    elif 2 * longest < limit.value:
        said = f"prompts reach {limit.value:,} tokens, and the longest canary context has {longest:,}"
        fix = "Ask the canary up to the served length, or serve less."
        yield Remark(Kind.LENGTH, Verdict.WARN, limit.place, said, fix)
    else:
        said = f"the canary reaches {longest:,} of {limit.value:,} served tokens"
        yield Remark(Kind.LENGTH, Verdict.PASS, limit.place, said)


def _others(settings: Sequence[Setting]) -> Iterator[Remark]:
    for item in settings:
        if item.name == "kv_cache_dtype":
            said = f"the cache is held as {item.value}: that is what the canary compares"
            yield Remark(Kind.OTHER, Verdict.PASS, item.place, said)
        elif item.name in _LAYOUT:
            said = f"{item.name} = {item.value} changes where windows are held in memory, not what attends to what"
            yield Remark(Kind.OTHER, Verdict.PASS, item.place, said)


def _unsaid(settings: Sequence[Setting], windows: Sequence[Window]) -> Iterator[Remark]:
    """Settings about attention that are not known here, and a model whose configuration is not there."""
    handled = (*WINDOWS, *LENGTHS, *TRUNCATES, *_LAYOUT)
    for item in settings:
        known = item.name in handled or _KNOWN.match(item.name) or _METHODS.search(item.name)
        if _RELEVANT.search(item.name) and not known and not _SELECTS.search(item.name):
            said = f"{item.name} is about attention or its cache, and what it does is not known here"
            fix = "Read the server's page on it, and ask the canary with it and without."
            yield Remark(Kind.OTHER, Verdict.UNKNOWN, item.place, said, fix)
    kinds = {str(kind) for item in settings if item.name == "layer_types" and isinstance(item.value, list)
             for kind in item.value}  # fmt: skip
    strange = sorted(kind for kind in kinds if not re.search(r"^full|sliding|chunked", kind))
    for item in settings:
        if item.name == "layer_types" and strange:
            said = f"layers of {count(len(strange), 'kind')} that are not known here: {', '.join(strange)}"
            yield Remark(
                Kind.OTHER, Verdict.UNKNOWN, item.place, said, "Ask the canary at the lengths that are served."
            )
    if not windows and not any(item.name in ("model_type", "num_hidden_layers", *WINDOWS) for item in settings):
        said = "whether the model itself has a window is not said"
        fix = "Give the model's config.json as well: --serving may be repeated."
        yield Remark(Kind.WINDOW, Verdict.UNKNOWN, settings[0].place.partition(":")[0], said, fix)
