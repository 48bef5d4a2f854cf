"""Configurations of servers and models: what forgets is named with its place, what is not known is said."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.core.finding import Verdict
from ridgeline.gate.canary.configs import read_serving
from ridgeline.gate.canary.serving import Kind, Remark, remarks, windows_of

DENSE = {"model_type": "llama", "num_hidden_layers": 4, "max_position_embeddings": 131072}


def serving(folder: Path, *files: str | dict[str, Any], longest: int | None = None) -> tuple[Remark, ...]:
    read = []
    for index, content in enumerate(files):
        text = content if isinstance(content, str) else json.dumps(content)
        path = folder / (f"{index}.txt" if isinstance(content, str) else f"{index}.json")
        path.write_text(text, encoding="utf-8")
        read.append(read_serving(path))
    return remarks(read, longest)


def about(found: tuple[Remark, ...], kind: Kind) -> list[tuple[Verdict, str]]:
    return [(item.verdict, item.place) for item in found if item.kind is kind]


def hf(**more: Any) -> dict[str, Any]:
    return {**DENSE, **more}


FAIL, WARN, PASS, UNKNOWN = Verdict.FAIL, Verdict.WARN, Verdict.PASS, Verdict.UNKNOWN
MIXED = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]


@pytest.mark.parametrize(
    ("config", "verdict", "said"),
    [
        (hf(sliding_window=4096), FAIL, "all layers attend within a window of 4,096 tokens"),
        (hf(sliding_window=4096, layer_types=MIXED), WARN, "3 of 4 layers"),
        (hf(sliding_window=4096, layer_types=["full_attention"] * 4), PASS, "no layer uses it"),
        (hf(sliding_window=4096, use_sliding_window=False), PASS, "use_sliding_window is false"),
        (hf(sliding_window=4096, model_type="qwen2"), PASS, "off unless"),
        (hf(sliding_window=4096, use_sliding_window=True, max_window_layers=3), WARN, "1 of 4 layers"),
        (hf(sliding_window=4096, use_sliding_window=True, max_window_layers=4), PASS, "no layer uses it"),
        (hf(sliding_window=131072), PASS, "holds every prompt"),
        (hf(sliding_window=4096, sliding_window_pattern=2), WARN, "2 of 4 layers"),
        (hf(sliding_window=4096, sliding_window_pattern="LLLG"), WARN, "3 of 4 layers"),
        (hf(sliding_window=4096, model_type="gemma2"), WARN, "2 of 4 layers"),
        (hf(interleaved_sliding_window=[4096, None, 4096, 4096]), WARN, "3 of 4 layers"),
        (hf(attention_chunk_size=8192, no_rope_layers=[1, 1, 1, 0]), WARN, "3 of 4 layers"),
        (hf(attention_chunk_size=8192), WARN, "some layers attend within a chunk of 8,192"),
        ({"model_type": "mistral", "num_hidden_layers": 4, "sliding_window": 4096}, UNKNOWN, "is not said"),
        ({"model_type": "x", "text_config": hf(sliding_window=4096)}, FAIL, "all layers"),
    ],
    ids=str,
)
def test_windows_of_models(config: dict[str, Any], verdict: Verdict, said: str, tmp_path: Path) -> None:
    found = [item for item in serving(tmp_path, config) if item.kind is Kind.WINDOW]
    assert [item.verdict for item in found] == [verdict]
    assert said in found[0].said
    assert "0.json: $." in found[0].place


def test_a_model_without_a_window_has_none(tmp_path: Path) -> None:
    assert serving(tmp_path, hf(sliding_window=None)) == ()


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ("vllm serve m --max-model-len 4096", PASS),
        ("vllm serve m --max-model-len 4K", PASS),
        ("vllm serve m --max-model-len=32768", FAIL),
        ("vllm serve m \\\n  --max-model-len 32k # long", FAIL),
        ("vllm serve m --disable-sliding-window", PASS),
        ("python -m sglang.launch_server --model-path m --context-length 4096", PASS),
        ("vllm serve m --max-model-len 32768 --hf-overrides '{\"sliding_window\": 8192}'", FAIL),
    ],
)
def test_a_server_beside_its_model(arguments: str, verdict: Verdict, tmp_path: Path) -> None:
    found = about(serving(tmp_path, arguments, hf(sliding_window=4096)), Kind.WINDOW)
    assert found[-1][0] is verdict


def test_arguments_alone_do_not_say_whether_there_is_a_window(tmp_path: Path) -> None:
    found = serving(tmp_path, "vllm serve m --max-model-len 32768 --kv-cache-dtype fp8")
    assert about(found, Kind.WINDOW) == [(UNKNOWN, "0.txt")]
    assert about(found, Kind.OTHER) == [(PASS, "0.txt: --kv-cache-dtype")]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("serve --kv-compression-method snapkv", FAIL),
        ("serve --attention-backend x --enable-streaming-llm", FAIL),
        ("serve --h2o-heavy-ratio 0.1", FAIL),
        ("serve --num-sink-tokens 4", FAIL),
        ("serve --enable-streaming-llm False", None),
        ("serve --model h2o-danube --radix-eviction-policy lru", None),
        ("serve --max-running-requests 8", None),
        ("python -m sglang.launch_server --enable-double-sparsity", WARN),
    ],
)
def test_eviction_and_selection(text: str, verdict: Verdict | None, tmp_path: Path) -> None:
    found = about(serving(tmp_path, text, DENSE), Kind.EVICTION)
    assert [item[0] for item in found] == ([] if verdict is None else [verdict])


def test_a_cache_of_the_last_tokens_in_a_generation_config(tmp_path: Path) -> None:
    found = serving(tmp_path, {"cache_implementation": "sliding_window"}, DENSE)
    assert about(found, Kind.EVICTION) == [(FAIL, "0.json: $.cache_implementation")]
    assert about(serving(tmp_path, {"cache_implementation": "static"}, DENSE), Kind.EVICTION) == []


@pytest.mark.parametrize(
    ("longest", "verdict"), [(40_000, FAIL), (32_768, PASS), (16_384, PASS), (16_000, WARN), (None, None)]
)
def test_the_canary_against_what_is_served(longest: int | None, verdict: Verdict | None, tmp_path: Path) -> None:
    found = about(serving(tmp_path, "vllm serve m --max-model-len 32768", DENSE, longest=longest), Kind.LENGTH)
    assert [item[0] for item in found] == ([] if verdict is None else [verdict])


def test_a_window_that_no_canary_exceeds_was_not_tried(tmp_path: Path) -> None:
    mixed = hf(sliding_window=4096, layer_types=MIXED)
    assert about(serving(tmp_path, mixed, longest=4000), Kind.WINDOW)[0][0] is UNKNOWN
    assert about(serving(tmp_path, mixed, longest=100_000), Kind.WINDOW)[0][0] is WARN
    assert about(serving(tmp_path, hf(sliding_window=4096), longest=4000), Kind.WINDOW)[0][0] is FAIL


def test_silent_truncation(tmp_path: Path) -> None:
    found = serving(tmp_path, "python -m sglang.launch_server --allow-auto-truncate", DENSE)
    assert about(found, Kind.LENGTH) == [(FAIL, "0.txt: --allow-auto-truncate")]


def test_what_is_about_attention_and_not_known_is_said(tmp_path: Path) -> None:
    text = "vllm serve m --attn-novelty 3 --enable-chunked-prefill --block-size 16 --no-disable-hybrid-kv-cache-manager"
    found = serving(tmp_path, text, hf(layer_types=["full_attention", "lightning_attention"], num_attention_heads=8))
    assert about(found, Kind.OTHER) == [
        (PASS, "0.txt: --no-disable-hybrid-kv-cache-manager"),
        (UNKNOWN, "0.txt: --attn-novelty"),
        (UNKNOWN, "1.json: $.layer_types"),
    ]


def test_a_container_file_with_arguments(tmp_path: Path) -> None:
    pod = {"spec": {"containers": [{"args": ["serve", "m", "--max-model-len", "8192"], "env": [{"name": "A"}]}]}}
    found = serving(tmp_path, pod, hf(sliding_window=4096))
    assert about(found, Kind.WINDOW)[0][0] is FAIL
    assert "--max-model-len" in found[0].said


def test_toml_and_environment(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('max-model-len = 4096\nkv_cache_dtype = "fp8"\n', encoding="utf-8")
    names = {item.name: item.value for item in read_serving(tmp_path / "s.toml").settings}
    assert names == {"max_model_len": 4096, "kv_cache_dtype": "fp8"}
    (tmp_path / "s.sh").write_text("VLLM_ATTENTION_BACKEND=X vllm serve m --enforce-eager\n", encoding="utf-8")
    found = read_serving(tmp_path / "s.sh").settings
    assert [(item.name, item.value) for item in found] == [("vllm_attention_backend", "X"), ("enforce_eager", True)]


def test_yaml_needs_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("max-model-len: 4096\nsliding_window: 512\n", encoding="utf-8")
    if importlib.util.find_spec("yaml"):
        assert windows_of([read_serving(path)]) == [512]

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match="PyYAML"):
        read_serving(path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "JSON"), ("a.toml", "a =", "TOML"), ("a.txt", "nothing here", "settings of a server"),
        ("a.txt", "--x 'open", "a command line"), ("a.txt", "--hf-overrides '{x'", "JSON"),
        ("a.json", "{}", "settings"),
    ],
)  # fmt: skip
def test_files_that_are_no_configuration(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_serving(tmp_path / name)
    with pytest.raises(InputError, match="a serving configuration"):
        read_serving(tmp_path / "missing.json")


def test_a_key_on_the_command_line_is_in_no_remark(tmp_path: Path) -> None:
    found = serving(tmp_path, "vllm serve m --api-key sk-cache-attention --sliding-window 4096", DENSE)
    assert "sk-cache" not in str(found)
