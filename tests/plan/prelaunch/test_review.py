"""Reading a proposal."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.plan.reviews import FILE, MODEL, PLAN, facts

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.prelaunch.review import plan_of, propose, read_review

TEXT = """
seq = "4k"
batch = "1M"
tokens = "1T"
[cluster]
chips = "64xH100"
[plan]
tp = 2
[model]
layers = 32
d_model = 4096
d_ff = 14336
heads = 32
kv_heads = 8
vocab = 131072
"""


def data(**rest: Any) -> dict[str, Any]:
    return {**FILE, "plan": PLAN, "model": MODEL, **rest}


def test_a_folder_with_a_review_file(tmp_path: Path) -> None:
    (tmp_path / "review.toml").write_text(TEXT)
    found = read_review(tmp_path)
    assert found.batch == (256, 4096)
    assert (found.cluster.chips, int(found.layouts.dp[0])) == (64, 32)
    assert (found.tokens, found.own_file) == (1e12, True)
    assert [Path(item.path).name for item in found.inputs] == ["review.toml"]


def test_flags_replace_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "review.toml").write_text(TEXT)
    found = read_review(tmp_path, {"plan": {"tp": 4}, "cluster": {"chips": "32xH100"}, "tokens": "2T"})
    assert (int(found.layouts.tp[0]), int(found.layouts.dp[0]), found.tokens) == (4, 8, 2e12)


def test_a_model_file_with_flags(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-5,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    flags = {"plan": {"tp": 2}, "cluster": {"chips": "64xH100"}, "seq": "4k", "batch": "1M"}
    for place in (tmp_path, tmp_path / "config.json"):
        found = read_review(place, flags)
        assert (found.spec.d_model, found.own_file, found.sequences) == (4096, False, 256)


@pytest.mark.parametrize("missing", ["cluster", "plan", "seq"])
def test_a_model_file_alone_names_the_flag(tmp_path: Path, missing: str) -> None:
    (tmp_path / "model.toml").write_text("layers = 2\nd_model = 256\nd_ff = 512\nheads = 2\nvocab = 1024\n")
    flags: dict[str, Any] = {"plan": {"tp": 1}, "cluster": {"chips": "8xH100"}, "seq": "1k", "batch": "64k"}
    with pytest.raises(InputError) as caught:
        read_review(tmp_path / "model.toml", {key: value for key, value in flags.items() if key != missing})
    assert f"--{missing}" in caught.value.hint


def test_a_study_beside_the_file(tmp_path: Path) -> None:
    study = '[budget]\nchips = "64xH100"\ndays = 30\ndollars_per_chip_hour = 2.0\nunique_tokens = "3T"\n'
    (tmp_path / "study.toml").write_text(study)
    (tmp_path / "review.toml").write_text('study = "study.toml"\n' + TEXT)
    found = read_review(tmp_path)
    assert (found.price, found.unique_tokens) == (2.0, 3e12)
    assert len(found.inputs) == 2


def test_a_study_alone_asks_for_a_review_file(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[budget]\nchips = "64xH100"\ndays = 30\n')
    for place in (tmp_path, tmp_path / "study.toml"):
        with pytest.raises(InputError, match=r"review\.toml"):
            read_review(place)


def test_dp_is_what_remains() -> None:
    assert facts().axis("dp") == 32


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"plan": {"tp": 3}}, InfeasibleError, "divide"),
        ({"plan": {"tp": 2, "dp": 64}}, InputError, "ranks"),
        ({"plan": {"tp": 2, "dp": 24}}, InfeasibleError, "sequences"),
        ({"plan": {"tq": 2}}, InputError, "tq"),
        ({"cluster": {"chips": "64xH100", "network": "carrier_pigeon"}}, InputError, "interconnect"),
        ({"cluster": {"chips": "64xH1000"}}, InputError, "H1000"),
        ({"cluster": {"chips": "many"}}, InputError, "cluster"),
        ({"claim": {"mfu": "120%"}}, InputError, "MFU"),
        ({"claim": {"mfu": "50%", "provenance": "gossip"}}, InputError, "gossip"),
        ({"checkpoint": {"every": "0"}}, InputError, "above zero"),
        ({"checkpoint": {"every": "1h", "bandwidth": "-1GB/s"}}, InputError, "above zero"),
        ({"sequences": None}, InputError, "sequences or batch"),
        ({"batch": "1M"}, InputError, "sequences or batch"),
        ({"sequences": None, "batch": "1000000"}, InputError, "multiple of seq"),
        ({"model": {}}, InputError, "model"),
        ({"framework": "rumour"}, InputError, "framework"),
        ({"surprise": 1}, InputError, "surprise"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], said: str) -> None:
    changed = {key: value for key, value in {**data(), **change}.items() if value is not None}
    with pytest.raises(error, match=said):
        _ = facts_of(changed)


def facts_of(changed: dict[str, Any]) -> float:
    from ridgeline.plan.prelaunch.review_facts import ReviewFacts

    return float(ReviewFacts(propose(changed, Path())).mfu.value)


def test_plan_of() -> None:
    assert plan_of("tp=8, pp=4,recompute=selective") == {"tp": 8, "pp": 4, "recompute": "selective"}
    for text in ("tp", "tp=", "=8", "tp 8"):
        with pytest.raises(InputError, match="--plan"):
            plan_of(text)
