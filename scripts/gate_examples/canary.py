"""``examples/gates/canary``: an 8-bit cache that forgets what is far, beside one in 16 bit that does not."""

import json
from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from scripts.gate_examples.example import Example

from ridgeline.core.case import InputFile
from ridgeline.gate.canary.generate import Recipe, corpus_of, make
from ridgeline.gate.canary.needles import Context, Needle
from ridgeline.gate.canary.probe import Answer, Endpoint, result_line
from ridgeline.gate.canary.sets import CanarySet, hash_of

WORDS = (
    "harbour", "river", "stone", "market", "letter", "garden", "winter", "engine", "paper", "music", "window", "bridge",
    "captain", "morning", "island", "lamp", "yellow", "quiet", "narrow", "early", "carried", "opened", "followed",
    "watched", "repaired", "remembered", "slowly", "towards", "behind", "before",
)  # fmt: skip
CHARACTERS, LENGTHS, CONTEXTS = 24_000, (768, 3072), 32
WINDOW = 2048  # tokens that the cheaper run keeps
RATE = 0.985  # of needles that either run finds


def prose(rng: Generator) -> str:
    """Sentences without meaning, in paragraphs."""
    paragraphs, size = [], 0
    while size < CHARACTERS:
        said = []
        for _ in range(int(rng.integers(4, 9))):
            words = [WORDS[i] for i in rng.integers(len(WORDS), size=int(rng.integers(5, 13)))]
            said.append(" ".join(words).capitalize() + ".")
        paragraphs.append(" ".join(said))
        size += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs) + "\n"


def _files(rng: Generator) -> Mapping[str, str]:
    text = prose(rng)
    contexts = make(corpus_of([text.strip()]), Recipe(LENGTHS, CONTEXTS)).contexts
    held = CanarySet({item.id: item for item in contexts}, hash_of(contexts), InputFile("set.jsonl", "", 0))
    found = rng.random((2, sum(len(item.needles) for item in contexts))) < RATE
    return {
        "corpus.txt": text,
        "bf16.jsonl": _run(held, "bf16", found[0], forgets=False),
        "fp8.jsonl": _run(held, "fp8-windowed", found[1], forgets=True),
        "serve.txt": "vllm serve example/model \\\n  --max-model-len 32768 \\\n  --kv-cache-dtype fp8\n",
        "config.json": json.dumps(
            {"model_type": "mistral", "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
             "max_position_embeddings": 32768, "sliding_window": WINDOW},
            indent=1,
        ) + "\n",
    }  # fmt: skip


def _run(held: CanarySet, model: str, found: np.ndarray, *, forgets: bool) -> str:
    luck, endpoint, lines = iter(found.tolist()), Endpoint("http://127.0.0.1:8000/v1", model), []
    for item in held.contexts.values():
        said = [n for n in item.needles if next(luck) and not (forgets and _far(item, n))]
        answer = Answer("\n".join(f"{n.key}: {n.value}" for n in said), "", item.length, "stop")
        lines.append(result_line(item, held, endpoint, answer))
    return "".join(lines)


def _far(item: Context, needle: Needle) -> bool:
    return item.length - needle.position > WINDOW


_RESULTS = ("--baseline", "{here}/bf16.jsonl", "--candidate", "{here}/fp8.jsonl")

EXAMPLE = Example(
    "canary",
    "64 contexts of two lengths, ten needles in each, from a corpus of sentences without meaning. The run in 8 bit\n"
    "keeps the last 2,048 tokens: it finds what the other finds in short contexts, and loses the first third of the\n"
    "long ones. Its model's configuration says why: every layer has a window. Ten points are tolerated at a depth, as\n"
    "32 contexts can show no less.",
    ("canary", *_RESULTS, "--slice-margin", "10%"),
    _files,
    {
        "serving": ("canary", "--serving", "{here}/serve.txt", "--serving", "{here}/config.json"),
        "both": ("canary", *_RESULTS, "--slice-margin", "10%", "--serving", "{here}/config.json"),
    },
)  # fmt: skip
