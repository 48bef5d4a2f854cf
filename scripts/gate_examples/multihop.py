"""``examples/gates/multihop``: a retriever that finds one hop at once and never the other. All names are made up."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.random import Generator
from scripts.gate_examples.example import Example, lines

QUESTIONS, THREE = 90, 18  # of which have three hops
_STARTS = ("Vel", "Mar", "Oru", "Tas", "Kel", "Bri", "Sano", "Dun", "Ester", "Lor", "Pell", "Quar")
_MIDDLES = ("ba", "di", "no", "ri", "sta", "tu", "lo", "mi")
_ENDS = ("vik", "mere", "ford", "lund", "gate", "holm", "stow", "by")
_KINDS = ("Works", "Foundry", "Lighthouse", "Museum", "Observatory", "Mill")


def _name(rng: Generator, used: set[str]) -> str:
    while True:
        found = "".join(str(rng.choice(part)) for part in (_STARTS, _MIDDLES, _ENDS))
        if found not in used:
            used.add(found)
            return found


def _question(rng: Generator, at: int, used: set[str]) -> dict[str, Any]:
    first, town = f"{_name(rng, used)} {rng.choice(_KINDS)}", _name(rng, used)
    year = str(int(rng.integers(1610, 1990)))
    row = {"id": f"q{at:03d}", "hops": 2, "answer": year}
    if at >= THREE:
        asked = f"In which year was the town founded where {first} stands?"
        return {**row, "question": asked, "evidence_titles": [first, town]}
    river = f"River {_name(rng, used)}"
    asked = f"In which year was the river bridged that runs through the town where {first} stands?"
    return {**row, "hops": 3, "question": asked, "evidence_titles": [first, town, river]}


def _mixed(rng: Generator, evidence: Sequence[str], noise: Sequence[str]) -> list[str]:
    """Every hop is found nine times in ten, second to fifth."""
    ranked = list(noise)
    for item in evidence:
        if rng.random() < 0.9:
            ranked.insert(int(rng.integers(1, 4)), item)
    return ranked


def _run(gold: Sequence[Mapping[str, Any]], ranked: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    return lines(
        {"id": row["id"], "retrieved": list(items[:10]), "answer": row["answer"] if ok else "unknown"}
        for row, items, ok in zip(gold, ranked, right, strict=True)
    )


def _files(rng: Generator) -> Mapping[str, str]:
    used: set[str] = set()
    gold = [_question(rng, at, used) for at in range(QUESTIONS)]
    titles = [title for row in gold for title in row["evidence_titles"]]
    mixed, one = [], []
    for row in gold:
        evidence = row["evidence_titles"]
        noise = [str(item) for item in rng.choice([t for t in titles if t not in evidence], 9, replace=False)]
        mixed.append(_mixed(rng, evidence, noise))
        one.append([evidence[0], *noise])
    whole = [set(row["evidence_titles"]) <= set(items[:5]) for row, items in zip(gold, mixed, strict=True)]
    return {
        "gold.jsonl": lines(gold),
        "mixed.jsonl": _run(gold, mixed, [bool(ok and rng.random() < 0.85) for ok in whole]),
        "one-hop.jsonl": _run(gold, one, [bool(rng.random() < 0.1) for _ in gold]),
    }


EXAMPLE = Example(
    "multihop",
    "Ninety questions over towns and rivers that do not exist. The candidate puts one hop first every time and never\n"
    "finds the other: its MRR is perfect, every question has a hit, and no answer follows from what it found. The\n"
    "baseline finds most hops, none of them first. The second command has no baseline, and so nothing to decide by.",
    ("multihop", "--gold", "{here}/gold.jsonl", "--baseline", "{here}/mixed.jsonl", "--candidate",
     "{here}/one-hop.jsonl"),
    _files,
    {"alone": ("multihop", "--gold", "{here}/gold.jsonl", "--candidate", "{here}/mixed.jsonl")},
)  # fmt: skip
