"""Files become models: by folder, by JSON, by TOML in either vocabulary."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.read_model import config_from_bytes, read_model
from ridgeline.core.errors import InputError

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 256,
}
TOTAL = 2 * 256 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64


def as_toml(values: dict[str, Any]) -> str:
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())


def test_folder_is_named_after_itself(tmp_path: Path) -> None:
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    spec, source = read_model(folder)
    assert spec.name == "tiny-llama"
    assert params(spec).total.value == TOTAL
    assert source.sha256 == hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()


def test_toml_may_use_the_names_of_a_config(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(as_toml(CONFIG))
    spec, _ = read_model(file)
    assert (spec.name, params(spec).total.value) == ("tiny", TOTAL)


def test_toml_may_use_the_short_names(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(as_toml({"layers": 2, "d_model": 64, "d_ff": 128, "heads": 4, "vocab": 256}))
    spec, _ = read_model(file)
    assert (spec.name, params(spec).total.value) == ("tiny", TOTAL)
    file.write_text(file.read_text() + '\nname = "chosen"\n')
    assert read_model(file)[0].name == "chosen"


def test_bytes_of_a_download() -> None:
    content = json.dumps(CONFIG).encode()
    spec, source = config_from_bytes(content, origin="https://hub.example/a/b", name="a/b")
    assert (spec.name, params(spec).total.value) == ("a/b", TOTAL)
    assert source.path == "https://hub.example/a/b"
    assert source.sha256 == hashlib.sha256(content).hexdigest()
    with pytest.raises(InputError, match=r"hub[.]example"):
        config_from_bytes(content[:20], origin="https://hub.example/a/b", name="a/b")
    with pytest.raises(InputError, match=r"hub[.]example"):
        config_from_bytes(b"[]", origin="https://hub.example/a/b", name="a/b")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", ""),
        ("config.json", "[1, 2]"),
        ("config.json", '{"hidden_size": 64'),
        ("config.json", '{"weights": "none"}'),
        ("model.toml", "layers = 2\nd_model"),
        ("model.toml", "layers = 2"),
        ("model.toml", 'model_type = "no_such_family"'),
    ],
)
def test_refusals_name_the_file(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_model(file)
    assert name in str(caught.value)


def test_absent_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent[.]json"):
        read_model(tmp_path / "absent.json")
    with pytest.raises(InputError, match=r"config[.]json"):
        read_model(tmp_path)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match="UTF-8"):
        read_model(file)


def test_infinity_as_python_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    sizes = {"vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 16}
    more = {"state_size": 16, "n_groups": 1, "time_step_limit": [0.0, float("inf")]}
    text = json.dumps({"model_type": "mamba2", **sizes, **more})
    assert "Infinity" in text
    file.write_text(text, encoding="utf-8")
    assert read_model(file)[0].layers == 2


def test_infinity_is_no_size(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "llama", "hidden_size": Infinity}', encoding="utf-8")
    with pytest.raises(InputError, match=r"\$\.hidden_size"):
        read_model(file)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(CONFIG).encode())
    assert read_model(file)[0].layers == 2
