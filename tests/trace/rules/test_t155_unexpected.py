"""T155: collectives against the plan."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

from ridgeline.core.specs import build
from ridgeline.trace.context import RunContext, RunFile, context_of


def context(**tables: Any) -> RunContext:
    return context_of(build(RunFile, tables))


def of(plan: dict[str, int], **how: Any) -> str:
    scene = Scene(comm=[(9_000_000, 900_000, how)], launch=70)
    found = finding(job(scene, scene, context=context(parallel=plan)), "T155")
    assert (str(found.verdict) == "fail") == (number(found.cost.seconds or found.value) > 0)
    return str(found.verdict)


@pytest.mark.parametrize(
    ("plan", "how", "verdict"),
    [
        ({"dp": 2}, {"collective": "all_to_allv"}, "fail"),
        ({"dp": 2, "ep": 2}, {"collective": "all_to_allv"}, "pass"),
        ({"dp": 2}, {"collective": "send"}, "fail"),
        ({"pp": 2}, {"collective": "send"}, "pass"),
        ({"dp": 4, "tp": 8}, {"size": 2}, "fail"),
        ({"dp": 4, "tp": 8}, {"size": 8}, "pass"),
        ({"dp": 4, "tp": 8}, {"size": 32}, "pass"),
        ({"dp": 8, "ep": 4}, {"size": 2}, "pass"),  # the experts' data parallelism
    ],
)
def test_kinds_and_groups(plan: dict[str, int], how: dict[str, Any], verdict: str) -> None:
    assert of(plan, **how) == verdict


def llama(folder: Path) -> str:
    """A small model with a vocabulary that nothing else is a multiple of."""
    config = {
        "model_type": "llama", "vocab_size": 32003, "hidden_size": 64, "intermediate_size": 256,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder / "config.json")


@pytest.mark.parametrize(("rows", "verdict"), [(4096, "fail"), (64, "pass")])
def test_gathered_logits_are_no_embedding(tmp_path: Path, rows: int, verdict: str) -> None:
    """A multiple of the vocabulary, unless it is the token table itself (d_model 64)."""
    of_plan = context(parallel={"tp": 2}, model={"path": llama(tmp_path)})
    how = {"collective": "allgather", "numel": 32003 * rows}
    scene = Scene(comm=[(9_000_000, 900_000, how)], launch=70)
    found = finding(job(scene, scene, context=of_plan), "T155")
    assert str(found.verdict) == verdict
    assert ("logits" in found.sentence) == (verdict == "fail")


@pytest.mark.parametrize(("sequence", "verdict"), [(2048, "fail"), (3000, "pass")])
def test_logits_are_whole_sequences(tmp_path: Path, sequence: int, verdict: str) -> None:
    """Weights of powers of two may be a multiple of the vocabulary by chance: here 4,096 rows of it."""
    of_plan = context(parallel={"tp": 2}, model={"path": llama(tmp_path)}, batch={"sequences": 8, "sequence": sequence})
    scene = Scene(comm=[(9_000_000, 900_000, {"collective": "allgather", "numel": 32003 * 4096})], launch=70)
    assert str(finding(job(scene, scene, context=of_plan), "T155").verdict) == verdict


def test_unknown_without_a_plan() -> None:
    scene = Scene(comm=[(9_000_000, 900_000, {})], launch=70)
    assert str(finding(job(scene, scene), "T155").verdict) == "unknown"
