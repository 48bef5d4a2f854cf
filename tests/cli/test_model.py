"""``ridgeline model``: the card, the case, the refusals."""

import json
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from ridgeline.cli import _hub
from ridgeline.core.case import load
from ridgeline.core.errors import InputError

SHAPE = "layers = 32\nd_model = 4096\nd_ff = 11008\nheads = 32\nvocab = 32000\n"
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 32000,
}
TOTAL = 6_738_415_616  # worked by hand: 2*32000*4096 + 32*(4*4096^2 + 3*4096*11008 + 2*4096) + 4096


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    file = tmp_path / "seven.toml"
    file.write_text(SHAPE)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "llama-7b"
    inner.mkdir()
    (inner / "config.json").write_text(json.dumps(CONFIG))
    return inner


def test_card_shows_the_exact_total(ridgeline: Any, toml: Path) -> None:
    done = ridgeline("model", toml)
    assert (done.code, done.err) == (0, "")
    assert f"{TOTAL:,}" in done.out
    assert "causal mask counted as half" in " ".join(done.out.split())
    assert "q_proj" not in done.out


def test_matmuls_are_listed_when_asked_for(ridgeline: Any, toml: Path) -> None:
    done = ridgeline("model", toml, "--matmuls")
    assert "q_proj" in done.out
    assert "11,008" in done.out


def test_folder_file_and_toml_agree(ridgeline: Any, folder: Path, toml: Path) -> None:
    totals = {
        ridgeline("model", path, "--json").json["quantities"]["params.total"]["value"]
        for path in (folder, folder / "config.json", toml)
    }
    assert totals == {TOTAL}


def test_case_has_the_promised_names(ridgeline: Any, folder: Path) -> None:
    document = ridgeline("model", folder, "--json").json
    names = document["quantities"]
    assert {"params.total", "params.active", "params.embedding", "params.non_embedding", "flops.per_token"} <= set(
        names
    )
    assert names["params.non_embedding"]["value"] == TOTAL - 2 * 32000 * 4096
    assert document["inputs"][0]["path"] == str(folder / "config.json")
    assert document["command"] == f"ridgeline model {folder} --context 8k"


def test_output_writes_a_case_that_why_reads(ridgeline: Any, toml: Path, tmp_path: Path) -> None:
    target = tmp_path / "case.json"
    done = ridgeline("model", toml, "-o", target)
    assert done.code == 0
    assert str(target) in done.err
    assert load(target)["quantities"]["params.total"]["value"] == TOTAL


def test_context_changes_attention_only(ridgeline: Any, toml: Path) -> None:
    short, long = (ridgeline("model", toml, "--context", c, "--json").json["quantities"] for c in ("4k", "8k"))
    name = "flops.train_step.attention_scores"
    assert long[name]["value"] == 4 * short[name]["value"]
    assert long["params.total"] == short["params.total"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (SHAPE + "layer = 3\n", "$.layer"),
        (SHAPE + "kv_heads = 5\n", "$.kv_heads"),
        (SHAPE.replace("32000", "-1"), "$.vocab"),
        (SHAPE.replace("4096", "4097"), "$.heads"),
        (SHAPE + "experts = 8\ntop_k = 9\nexpert_ff = 64\n", "$.top_k"),
        (SHAPE.replace("layers = 32\n", ""), "$.layers"),
        ("layers = ", "seven.toml"),
    ],
)
def test_refusals_name_the_place(ridgeline: Any, toml: Path, text: str, place: str) -> None:
    toml.write_text(text)
    done = ridgeline("model", toml)
    assert (done.code, done.out) == (2, "")
    assert place in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("change", [{"num_hidden_layers": "many"}, {"an_unknown_field": 7}, {"hidden_size": -4096}])
def test_config_refusals_name_the_field(ridgeline: Any, folder: Path, change: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG | change))
    done = ridgeline("model", folder)
    assert done.code == 2
    assert next(iter(change)) in done.err


def test_an_unknown_field_may_be_allowed(ridgeline: Any, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG | {"an_unknown_field": 7}))
    done = ridgeline("model", folder, "--allow-field", "an_unknown_field", "--json")
    assert done.json["quantities"]["params.total"]["value"] == TOTAL
    assert "--allow-field an_unknown_field" in done.json["command"]


def test_truncated_json_and_missing_files(ridgeline: Any, folder: Path, tmp_path: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG)[:40])
    assert ridgeline("model", folder).code == 2
    assert ridgeline("model", tmp_path / "absent.json").code == 2
    (tmp_path / "empty").mkdir()
    assert "config.json" in ridgeline("model", tmp_path / "empty").err


def test_path_or_download_but_not_both(ridgeline: Any, toml: Path) -> None:
    assert ridgeline("model").code == 2
    assert ridgeline("model", toml, "--download", "a/b").code == 2


def test_download_reads_the_hub(ridgeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://hub.example/owner/name/config.json"
    monkeypatch.setattr(_hub, "fetch_config", lambda hub_id: (json.dumps(CONFIG).encode(), address))
    document = ridgeline("model", "--download", "owner/name", "--json").json
    assert document["quantities"]["params.total"]["value"] == TOTAL
    assert document["inputs"][0]["path"] == address
    assert document["title"] == "Model owner/name"


@pytest.mark.parametrize("hub_id", ["llama", "../../etc/passwd", "a/b/c", "a/b?x=1", ""])
def test_download_refuses_what_is_no_id(hub_id: str) -> None:
    with pytest.raises(InputError, match="hub id"):
        _hub.fetch_config(hub_id)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (urllib.error.URLError("no route"), "path of a config.json"),
        (TimeoutError("timed out"), "path of a config.json"),
        (urllib.error.HTTPError("u", 401, "no", None, None), "download its config.json yourself"),  # type: ignore[arg-type]
    ],
)
def test_download_offline_says_what_to_do(monkeypatch: pytest.MonkeyPatch, error: Exception, said: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(_hub, "urlopen", fail)
    with pytest.raises(InputError, match="owner/name") as caught:
        _hub.fetch_config("owner/name")
    assert said in caught.value.hint
