"""Made-up request logs of an agent with tools, for ``examples/hygiene`` and the tests: seeded, no real text.

``PYTHONPATH=src python scripts/request_log.py --out examples/hygiene`` writes ``requests.jsonl`` with several faults
and its twin ``clean.jsonl``, which has the same words without them.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

FAULTS = ("timestamp", "session", "tool_order", "json_keys", "name")
BYTES_PER_TOKEN = 4
_START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
_WORDS = re.findall(
    r"\w+",
    """
    agenda airport answer arrival baggage berth booking cabin calendar carrier change city claim coach code
    comfort confirm connection customer delay depart desk detour distance early express family fare ferry flight
    gate guest harbour hotel island journey lounge luggage meal morning night offer passport platform policy
    price quiet railway refund request reserve return route schedule seat service station tariff ticket time
    train transfer travel upgrade voucher weekend window
    """,
)
_NAMES = ("Adaeze", "Bjorn", "Chiara", "Dmitri", "Esperanza", "Farid", "Gwendolyn", "Hiroshi")


@dataclass(frozen=True)
class Plan:
    """A log: ``conversations`` that take turns, of ``turns`` requests each, sizes in tokens of four bytes.

    ``faults`` are of `FAULTS`; the same seed gives the same words with and without them.
    """

    conversations: int = 3
    turns: int = 8
    head: int = 1200
    after: int = 400
    tools: int = 8
    tool: int = 80
    turn: int = 220
    faults: frozenset[str] = frozenset()
    seed: int = 7
    gap_s: float = 21.5


def text(rng: random.Random, tokens: int) -> str:
    """Words to exactly four bytes a token."""
    size, pieces, length = tokens * BYTES_PER_TOKEN, [], 0
    while length < size:
        word = rng.choice(_WORDS)
        pieces.append(word)
        length += len(word) + 1
    return " ".join(pieces)[:size]


def records(plan: Plan) -> Iterator[dict[str, Any]]:
    """The log's documents, one a request, in the order of time."""
    words, noise = random.Random(plan.seed), random.Random(plan.seed + 1)
    head, after = text(words, plan.head), text(words, plan.after)
    tools = [_tool(words, i, plan.tool) for i in range(plan.tools)]
    history: list[list[dict[str, Any]]] = [[] for _ in range(plan.conversations)]
    for count in range(plan.conversations * plan.turns):
        who = count % plan.conversations
        now = _START.timestamp() + count * plan.gap_s + noise.random()
        asked = {"role": "user", "content": text(words, plan.turn // 4)}
        system = {"role": "system", "content": _system(plan, head, after, who, now, noise)}
        sent = [_again(message, plan, noise) for message in history[who]]
        order = noise.sample(tools, len(tools)) if "tool_order" in plan.faults else tools
        yield {"timestamp": round(now, 3), "model": "desk-70b", "tools": order, "messages": [system, *sent, asked]}
        found = {word: text(words, 6) for word in words.sample(_WORDS, min(len(_WORDS), max(2, plan.turn // 16)))}
        history[who] += [
            asked,
            {"role": "assistant", "content": text(words, plan.turn // 4)},
            {"role": "tool", "content": json.dumps(found, sort_keys=True)},
        ]


def _tool(words: random.Random, index: int, tokens: int) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    function = {"name": f"{_WORDS[7 * index % len(_WORDS)]}_{index}", "description": text(words, tokens)}
    return {"type": "function", "function": {**function, "parameters": schema}}


def _system(plan: Plan, head: str, after: str, who: int, now: float, noise: random.Random) -> str:
    when = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    lines = [f"Guest: {_NAMES[who % len(_NAMES)]}"] if "name" in plan.faults else []
    lines.append(head)
    if "session" in plan.faults:
        lines.append(f"Session: {UUID(int=noise.getrandbits(128), version=4)}")
    if "timestamp" in plan.faults:
        lines.append(f"Current time: {when}")
    return "\n".join([*lines, after])


def _again(message: dict[str, Any], plan: Plan, noise: random.Random) -> dict[str, Any]:
    """A message of the history as it is sent once more."""
    if message["role"] != "tool" or "json_keys" not in plan.faults:
        return message
    found = json.loads(message["content"])
    return {"role": "tool", "content": json.dumps({key: found[key] for key in noise.sample(list(found), len(found))})}


def with_usage(documents: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same documents with the usage that a cache in steps of 128 tokens would have counted."""
    from ridgeline.serve.hygiene.audit import Walk
    from ridgeline.serve.hygiene.policy import cache
    from ridgeline.serve.hygiene.request import readers

    reader = next(item for item in readers() if item.name == "OpenAI chat")
    walk = Walk(cache("openai"), 1 << 16)
    for document in documents:
        request = reader.read(document)
        found = int(walk.add([request], [request.content])[0])
        prompt = len(request.content) // BYTES_PER_TOKEN
        details = {"cached_tokens": min(found - found % 128, prompt)}
        yield {**document, "usage": {"prompt_tokens": prompt, "prompt_tokens_details": details}}


def write(path: Path, documents: Iterator[dict[str, Any]]) -> Path:
    """One JSON document a line."""
    lines = [json.dumps(document, separators=(",", ":")) for document in documents]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main() -> None:
    """Write the example and its clean twin under ``--out``."""
    parser = argparse.ArgumentParser(description="Write a made-up request log and its clean twin.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write, such as examples/hygiene")
    out: Path = parser.parse_args().out
    plan = Plan(faults=frozenset({"timestamp", "tool_order", "json_keys"}))
    write(out / "requests.jsonl", with_usage(records(plan)))
    write(out / "clean.jsonl", with_usage(records(replace(plan, faults=frozenset()))))


if __name__ == "__main__":
    main()
