"""``ridgeline serve capacity``: the card, what it writes, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load

USUAL = ("serve", "capacity", "llama-3-70b", "--device", "H100", "--count", "8")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports go to a folder of their own."""
    monkeypatch.chdir(tmp_path)


def test_the_card_and_the_report(ridgeline: Any, tmp_path: Path) -> None:
    done = ridgeline(*USUAL, "--context", "8k")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert "requests of 8,192 tokens fit at once" in done.out
    document = load(tmp_path / "serve-report" / "capacity.json")
    assert document["quantities"]["kv.bytes_per_token"]["value"] == 327_680
    assert (tmp_path / "serve-report" / "capacity.html").stat().st_size > 10_000


def test_the_numbers_open(ridgeline: Any, tmp_path: Path) -> None:
    ridgeline(*USUAL, "-o", "case.json")
    done = ridgeline("why", tmp_path / "case.json", "capacity.sequences")
    assert done.code == 0
    assert "floor" in done.out


def test_json_is_the_case(ridgeline: Any) -> None:
    done = ridgeline(*USUAL, "--kv", "fp8", "--parallel", "tp=4,pp=2", "--json")
    assert done.json["quantities"]["kv.bytes_per_token"]["value"] == 163_840
    assert done.json["command"].endswith("--parallel tp=4,pp=2 --kv fp8")


def test_tiers_settings_and_rules(ridgeline: Any, tmp_path: Path) -> None:
    (tmp_path / "tiers.toml").write_text('[[tiers]]\nname = "a"\ncontext = "2k"\noutput = 10\nshare = 1.0\n')
    (tmp_path / "engine.toml").write_text("utilisation = 0.5\nchunk = 2048\n")
    done = ridgeline(*USUAL, "--tiers", "tiers.toml", "--spec", "engine.toml", "--rules", "rules.yml", "--json")
    assert done.code == 0
    assert done.json["quantities"]["chip.utilisation"]["value"] == 0.5
    assert done.json["quantities"]["tiers.a.sequences"]["value"] > 0
    assert [Path(item["path"]).name for item in done.json["inputs"][1:]] == ["tiers.toml", "engine.toml"]
    assert (tmp_path / "rules.yml").read_text().startswith("groups:")


@pytest.mark.parametrize("place", ["examples/flagship", "examples/flagship/model.toml"])
def test_the_example(ridgeline: Any, repo: Path, place: str) -> None:
    done = ridgeline("serve", "capacity", repo / place, "--device", "H100", "--count", "2", "--json")
    assert done.code == 0
    assert done.json["quantities"]["capacity.sequences"]["value"] > 1
    refused = ridgeline("serve", "capacity", repo / place, "--device", "H100", "--count", "8")
    assert refused.code == 2
    assert "hint: tp may be 1, 2, 3, 6, 12, 24, 48" in refused.err


@pytest.mark.parametrize(
    ("extra", "code", "said"),
    [
        (("--count", "3"), 2, "Expected a divisor of 64 attention heads, got 3"),
        (("--count", "0"), 2, "at --count"),
        (("--context", "0"), 2, "a context length above zero"),
        (("--context", "1e30"), 2, "a context length up to 1,000,000,000, got '1e30', at --context"),
        (("--parallel", "tp=8,tp=4"), 2, "Expected tp once"),
        (("--parallel", "tp=8,ep=8"), 2, "Expected 1 for a model without experts, got 8, at ep"),
        (("--count", "128"), 2, "hint: tp may be 1, 2, 4, 8, 16, 32, 64; more chips"),
        (("--context", "16k"), 1, ""),
        (("--device", "H1000"), 2, "Expected a known accelerator"),
        (("--kv", "fp9"), 2, "got 'fp9', at kv"),
        (("--kv", "fp8_ds_mla"), 2, "a layer of latent attention"),
        (("--weights", "bf15"), 2, "got 'bf15'"),
        (("--parallel", "tp=3"), 2, "is the 8 chips of --count"),
        (("--parallel", "pt=8"), 2, "hint: did you mean tp"),
        (("--parallel", "tp=x"), 2, "a whole number of at least 1"),
        (("--tiers", "none.toml"), 2, "a readable tiers file"),
    ],
)
def test_refused(ridgeline: Any, extra: tuple[str, ...], code: int, said: str) -> None:
    done = ridgeline(*USUAL, *extra)
    assert done.code == code
    assert said in done.err


def test_weights_that_do_not_fit_still_say_what_a_request_keeps(ridgeline: Any) -> None:
    done = ridgeline(*USUAL, "--count", "1", "--json")
    document = json.loads(done.out)
    figures = {name: item["value"] for name, item in document["quantities"].items()}
    assert done.code == 1
    assert figures["capacity.sequences"] == 0
    assert figures["kv.bytes_per_token"] == 327_680
    assert figures["kv.bytes_per_request"] == 8192 * 327_680
    assert figures["chip.short"] == pytest.approx(-figures["chip.free"])
    assert document["findings"][0]["code"] == "S001"
    assert document["findings"][0]["verdict"] == "fail"
    assert "Nearest that fits: 4 chips (tp=4, pp=1)." in document["because"]
