"""The audit: hit rates of each version of the prompts, usage, mixed logs, memory, and the oracle on a public trace."""

import json
import math
import random
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripts.request_log import FAULTS, Plan, records, text, write

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene import discover
from ridgeline.serve.hygiene.audit import Cache, audit
from ridgeline.serve.hygiene.policy import cache, policies

CAUSE_OF = {"timestamp": "timestamp", "session": "identifier", "tool_order": "tool_order", "json_keys": "json_keys",
            "name": "content"}  # fmt: skip


def log(path: Path, plan: Plan) -> Path:
    return write(path, records(plan))


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_clean_log_has_no_cause(tmp_path: Path) -> None:
    found = audit(log(tmp_path / "log", Plan(turns=10)), Cache(16))
    assert found.effects == []
    assert found.fixed is found.sent
    assert found.sent.rate > 0.85


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_and_its_fix_restores_the_clean_rate(fault: str, tmp_path: Path) -> None:
    plan = Plan(turns=10)
    clean = audit(log(tmp_path / "clean", plan), Cache(16)).sent.rate
    found = audit(log(tmp_path / "log", replace(plan, faults=frozenset({fault}))), Cache(16))
    assert [effect.fix.cause for effect in found.effects] == [CAUSE_OF[fault]]
    assert found.sent.rate < found.fixed.rate
    assert found.fixed.rate == pytest.approx(clean, abs=0.01)


def test_faults_together_add_up(tmp_path: Path) -> None:
    plan = Plan(turns=10)
    clean = audit(log(tmp_path / "clean", plan), Cache(16)).sent.rate
    found = audit(log(tmp_path / "log", replace(plan, faults=frozenset(FAULTS))), Cache(16))
    assert {effect.fix.cause for effect in found.effects} == set(CAUSE_OF.values())
    assert found.fixed.rate == pytest.approx(clean, abs=0.015)
    gained = sum(effect.together.hit_tokens - effect.before.hit_tokens for effect in found.effects)
    assert gained == pytest.approx(found.fixed.hit_tokens - found.effects[0].before.hit_tokens)
    places = [effect.found.at_bytes for effect in found.effects]
    assert places == sorted(places)
    hidden = found.effects[-1]
    assert hidden.alone.rate - found.sent.rate < 0.01  # what stands before it hides it
    assert hidden.share > 0.05


def test_minimum_and_lifetime_of_a_policy(tmp_path: Path) -> None:
    path = log(tmp_path / "log", Plan(conversations=1, turns=12))
    rate = {name: audit(path, cache(name)).sent.rate for name in policies()}
    assert rate["vllm"] >= rate["openai"] > 0.7
    assert audit(path, cache("openai", block=16)).sent.rate > rate["openai"]
    assert audit(path, Cache(16, minimum_tokens=100_000)).sent.rate == 0
    gone = audit(path, cache("vllm", ttl_s=20))
    assert gone.sent.rate == 0  # one request every 21.5 seconds
    assert gone.unlimited.rate == pytest.approx(rate["vllm"])


def test_a_capacity_below_the_working_set(tmp_path: Path) -> None:
    path = log(tmp_path / "log", Plan(conversations=6, turns=8))
    whole = audit(path, Cache(16, capacity_tokens=1e6))
    assert whole.limited is not None
    assert whole.limited[0] == pytest.approx(whole.sent.rate)
    small = audit(path, Cache(16, capacity_tokens=whole.unique_tokens / 2))
    assert small.limited is not None
    assert 0 < small.limited[0] < whole.sent.rate


def test_impossible_usage_is_counted_and_left_out(tmp_path: Path) -> None:
    def row(prompt: object, cached: object) -> dict[str, Any]:
        used = {"prompt_tokens": prompt, "prompt_tokens_details": {"cached_tokens": cached}}
        return {"prompt": "x" * 200, "usage": used}

    path = lines(tmp_path / "log", row(50, 40), row(50, 60), row(50, -1), row("many", 10), row(50, None))
    found = audit(path, Cache(16)).achieved
    assert found.impossible == [2, 3, 4]
    assert (found.requests, found.tokens, found.cached) == (1, 50, 40)


def test_fields_of_anthropic_add_up(tmp_path: Path) -> None:
    used = {"input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
    row = {"system": "s" * 400, "messages": [{"role": "user", "content": "Hi"}], "usage": used}
    found = audit(lines(tmp_path / "log", row), Cache(16))
    assert found.achieved.tokens == found.sent.tokens == 100
    assert found.achieved.cached == 70


def test_token_ids_are_exact(tmp_path: Path) -> None:
    ids = list(range(1000, 1100))
    rows = [{"prompt_token_ids": ids + [k] * 20} for k in range(5)]
    found = audit(lines(tmp_path / "log", *rows), Cache(16))
    assert found.exact == 5
    assert found.sent.tokens == 5 * 120
    assert found.sent.hit_tokens == 4 * 96  # six whole blocks of sixteen


def test_models_share_nothing(tmp_path: Path) -> None:
    rows = [{"prompt": "x" * 640, "model": name} for name in ("a", "b", "a")]
    assert audit(lines(tmp_path / "log", *rows), Cache(16)).sent.rate == pytest.approx(1 / 3, abs=1e-3)


def test_static_instructions_behind_a_document(tmp_path: Path) -> None:
    rng = random.Random(3)
    rules = "\n\n".join(text(rng, 200) for _ in range(4))
    rows = [{"prompt": f"Document:\n{text(rng, 600)}\n\n{rules}"} for _ in range(30)]
    found = audit(lines(tmp_path / "log", *rows), Cache(16))
    assert [effect.fix.cause for effect in found.effects] == ["order"]
    assert found.sent.rate < 0.02
    assert found.fixed.rate == pytest.approx(29 / 30 * 800 / 1400, abs=0.03)


def test_versions_of_the_system_prompt(tmp_path: Path) -> None:
    rng = random.Random(4)
    common = text(rng, 500)
    versions = [f"{text(rng, 1200)}\n{common}" for _ in range(8)]
    rows = [{"instructions": rng.choice(versions), "input": text(rng, 9)} for _ in range(40)]
    found = audit(lines(tmp_path / "log", *rows), Cache(16))
    assert [effect.fix.cause for effect in found.effects] == ["version"]
    assert found.fixed.rate > found.sent.rate


def test_nothing_readable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no readable one") as caught:
        audit(lines(tmp_path / "log", {"other": 1}), Cache(16))
    assert "line 1" in caught.value.hint
    (tmp_path / "empty").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="no readable one") as caught:
        audit(tmp_path / "empty", Cache(16))
    assert caught.value.hint == "the file is empty"


def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of new text only, the worst case: what is held is a bounded buffer, a few prompts, and the hashes."""
    monkeypatch.setattr(discover, "REFERENCE_BYTES", 1 << 20)
    rng = random.Random(5)
    path = tmp_path / "log"
    with path.open("w", encoding="utf-8") as file:
        for _ in range(600):
            file.write(json.dumps({"prompt": rng.randbytes(20_000).hex()}) + "\n")
    size = path.stat().st_size
    tracemalloc.start()
    found = audit(path, Cache(16), sort_bytes=1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    hashes = found.unique_tokens / 16 * 8
    assert size > 23e6
    assert peak < 20e6 + 6 * hashes  # a batch with its temporaries; the table of hashes while it grows


@pytest.mark.parametrize("block", [0, 1, 3, -16])
def test_blocks_that_cannot_be_hashed(block: int) -> None:
    with pytest.raises(InputError, match="an even number of tokens"):
        Cache(block)


def test_policies_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="a known policy"):
        cache("openia")
    with pytest.raises(InputError, match="at least one block"):
        cache("vllm", capacity_tokens=8)
    with pytest.raises(InputError, match="2 to 65,536, got 1000000, at --block"):
        cache("vllm", block=1_000_000)
    assert math.isinf(cache("vllm").ttl_s)


def test_counts_that_no_prompt_has_are_impossible(tmp_path: Path) -> None:
    path = lines(tmp_path / "log", {"prompt": "x" * 400, "usage": {"prompt_tokens": 1e30}}, {"prompt": "y" * 400})
    found = audit(path, Cache(16))
    assert found.achieved.impossible == [1]
    assert found.sent.tokens < 1000


@pytest.mark.data
@pytest.mark.parametrize(
    ("trace", "unlimited", "limited"),
    [
        ("conversation", 0.3736, {1_000: 0.0454, 10_000: 0.2153, 30_000: 0.3321}),
        ("synthetic", 0.6512, {10_000: 0.4313}),
    ],
)
def test_oracle(trace: str, unlimited: float, limited: dict[int, float], data_dir: Path, tmp_path: Path) -> None:
    """The hit rates of the public Mooncake traces, tokens over tokens, blocks of 512."""
    import polars as pl

    table = pl.read_parquet(data_dir / "serve" / "traces" / f"mooncake_{trace}.parquet")
    rows = table.select("arrival_s", input_length="input_tokens", hash_ids="hash_ids").to_dicts()
    path = lines(tmp_path / "log", *rows)
    found = audit(path, Cache(16))
    assert found.sent.rate == pytest.approx(unlimited, abs=5e-5)
    assert found.ledger.schemas == {"Mooncake": len(rows)}
    for blocks, rate in limited.items():
        held = audit(path, Cache(16, capacity_tokens=blocks * 512)).limited
        assert held is not None
        assert held[0] == pytest.approx(rate, abs=5e-5)
