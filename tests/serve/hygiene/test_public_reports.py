"""Faults that people reported, generated at a smaller size: the audit finds the byte, the cause and the ceiling.

Sizes in tokens are those of the report over ``SCALE``, at four bytes a token; rates do not depend on it.
"""

import json
import random
import string
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ridgeline.serve.hygiene.audit import Audit, Cache, Effect, audit
from ridgeline.serve.hygiene.facts import Hygiene
from ridgeline.serve.hygiene.money import price

SCALE = 8
START = datetime(2026, 9, 2, 14, 58, tzinfo=UTC).timestamp()
Message = dict[str, Any]


def words(rng: random.Random, tokens: int) -> str:
    """Random letters and blanks, four a token, so that nothing repeats by chance."""
    return "".join(rng.choices(string.ascii_lowercase + " ", k=4 * tokens))


def run(path: Path, documents: Iterable[dict[str, Any]], block: int = 16) -> Audit:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
    return audit(path, Cache(block))


def only(found: Audit) -> Effect:
    """The one cause of a log that has one."""
    assert [effect.fix.cause for effect in found.effects] == [found.effects[0].fix.cause]
    return found.effects[0]


def stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def session(lengths: Sequence[int], head: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """One conversation whose prompt is so many tokens long; after ``head`` tokens the system prompt holds the time."""
    before, after = words(rng, head), words(rng, 200)
    history, size = [], head + 200
    for turn, length in enumerate(lengths):
        history.append({"role": ("user", "assistant")[turn % 2], "content": words(rng, max(1, length - size))})
        size = max(size, length)
        now = START + 104 * turn + rng.random()
        system = f"{before}<memory_metadata>\n- The current system date is: {stamp(now)}\n</memory_metadata>\n{after}"
        yield {"timestamp": now, "messages": [{"role": "system", "content": system}, *history]}


def test_milliseconds_in_the_system_prompt(tmp_path: Path) -> None:
    """opencode-agent-memory 29: 87 calls, 27K to 377K tokens, 24,576 cached, about 8% hit, $26.59 for about $2 to 3."""
    growth = [27_000 + 350_000 * (turn / 86) ** 0.386 for turn in range(87)]  # 24.3M tokens in all, as reported
    lengths = [round(tokens / SCALE) for tokens in growth]
    found = run(tmp_path / "log", session(lengths, 24_576 // SCALE, random.Random(1)))
    effect = only(found)
    assert found.sent.rate == pytest.approx(0.087, abs=0.004)
    assert found.sent.hit_tokens / 86 * SCALE == pytest.approx(24_576, rel=0.01)
    assert (effect.fix.cause, effect.fix.kinds, effect.requests) == ("timestamp", frozenset({"system"}), 86)
    at = len("<|system|>\n") + 24_576 // SCALE * 4 + len("<memory_metadata>\n- The current system date is: 2026-09-02T")
    assert at <= effect.found.at_bytes <= at + len("14:58:00.123")
    assert found.fixed.rate == pytest.approx(1 - 377 / 24_330, abs=0.003)

    dollars = 26.59 / (22.19 + 0.1 * 2.14)  # per million tokens, of which a cached one costs a tenth
    facts = Hygiene(found, price(f"{dollars}/{dollars / 10}"))
    saved = facts.cause(effect)["dollars"]
    assert 26.59 - SCALE * float(saved.value) == pytest.approx(3.0, abs=0.5)


def test_seconds_of_prefill_a_turn(tmp_path: Path) -> None:
    """opencrabs 657: a time in seconds near the top, about 55K tokens prefilled a turn, 4 to 5 s to first token."""
    lengths = [(52_000 + 500 * turn) // SCALE for turn in range(12)]
    found = run(tmp_path / "log", session(lengths, 400 // SCALE, random.Random(2)))
    effect = only(found)
    again = effect.tokens / effect.requests * SCALE
    assert again == pytest.approx(54_000, rel=0.03)
    assert 4 < again / 12_000 < 5


def test_the_current_minute(tmp_path: Path) -> None:
    """nanobot 226: ``Current Time`` to the minute: requests of the same minute share it, those of the next do not."""
    rng = random.Random(3)
    system, history, rows = words(rng, 900), [], []
    for turn in range(30):
        now = START + 20 * turn
        history += [{"role": "user", "content": words(rng, 40)}, {"role": "assistant", "content": words(rng, 40)}]
        clock = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M (%A)")
        text = f"## Current Time\n{clock}\n\n{system}"
        rows.append({"timestamp": now, "messages": [{"role": "system", "content": text}, *history[:-1]]})
    found = run(tmp_path / "log", rows)
    effect = only(found)
    assert effect.fix.cause == "timestamp"
    assert effect.found.at_bytes < 60
    assert effect.requests == 9  # the first of each minute but the first
    assert 0.5 < found.sent.rate < 0.7
    assert found.fixed.rate > 0.94


def test_tools_out_of_a_hash_map(tmp_path: Path) -> None:
    """codex 2611: the order of the tools changes, hit rates below 1%."""
    rng = random.Random(4)
    tools = [{"type": "function", "function": {"name": f"tool_{i}", "description": words(rng, 60)}} for i in range(60)]
    history: list[Message] = [{"role": "system", "content": words(rng, 2000)}]
    rows = []
    for _ in range(25):
        history += [{"role": "user", "content": words(rng, 300)}]
        rows.append({"tools": rng.sample(tools, len(tools)), "messages": list(history)})
    found = run(tmp_path / "log", rows)
    effect = only(found)
    assert found.sent.rate < 0.01
    assert (effect.fix.cause, effect.fix.kinds) == ("tool_order", frozenset({"tools"}))
    assert effect.found.at_bytes < 80
    assert found.fixed.rate == pytest.approx(1 - (rows_tokens(rows[-1]) / sum(map(rows_tokens, rows))), abs=0.01)


def rows_tokens(row: dict[str, Any]) -> float:
    return sum(len(json.dumps(item)) for item in [*row["tools"], *row["messages"]]) / 4


def test_keys_of_tool_results(tmp_path: Path) -> None:
    """swift-ai-sdk 39: 26 to 31% of about 150k tokens cached, because past tool results were serialised anew."""
    rng = random.Random(5)
    whole, first = 150_000 // SCALE, 43_500 // SCALE  # the first tool result stands at 29% of the prompt
    result = {word: words(rng, 20) for word in (words(rng, 2) for _ in range(40))}
    rest = words(rng, whole - first - 1000)
    rows = []
    for turn in range(16):
        shuffled = {key: result[key] for key in rng.sample(list(result), len(result))}
        rows.append({"messages": [
            {"role": "system", "content": words(random.Random(6), first)},
            {"role": "tool", "content": json.dumps(shuffled)},
            {"role": "assistant", "content": rest},
            *({"role": "user", "content": words(random.Random(10 + k), 50)} for k in range(turn)),
        ]})  # fmt: skip
    found = run(tmp_path / "log", rows)
    effect = only(found)
    assert (effect.fix.cause, effect.fix.kinds) == ("json_keys", frozenset({"tool"}))
    assert found.sent.hit_tokens / found.sent.tokens * 16 / 15 == pytest.approx(
        0.285, abs=0.025
    )  # of the warm requests
    assert 4 * first < effect.found.at_bytes < 4 * first + 60
    assert found.fixed.rate > 0.92


def test_nothing_to_ninety_eight_percent(tmp_path: Path) -> None:
    """MeshWeaver 2108: 0% before, 98.2% after what changed on every request no longer stood first."""
    rng = random.Random(7)
    shared = words(rng, 5000)
    rows = []
    for turn in range(60):
        ident = "".join(rng.choices("0123456789abcdef", k=24))
        rows.append({"messages": [{"role": "system", "content": f"Thread {ident}\n{shared}"},
                                  {"role": "user", "content": f"{turn} {words(rng, 5)}"}]})  # fmt: skip
    found = run(tmp_path / "log", rows)
    effect = only(found)
    assert found.sent.rate == 0
    assert effect.fix.cause == "identifier"
    assert effect.found.at_bytes < 24
    assert found.fixed.rate == pytest.approx(0.982, abs=0.005)


def test_a_benchmark_on_a_warm_cache(tmp_path: Path) -> None:
    """vllm 52884: the second run over the same random prompts hits; usage shows more than the log explains."""
    rng = random.Random(8)
    used = {"prompt_tokens": 400, "prompt_tokens_details": {"cached_tokens": 384}}
    rows = [{"prompt": words(rng, 400), "usage": used} for _ in range(30)]
    found = run(tmp_path / "log", rows)
    assert found.sent.rate == 0
    assert found.achieved.cached / found.achieved.tokens == pytest.approx(0.96)
