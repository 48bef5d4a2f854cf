"""Readers of the attention-based families against the model classes.

``attention_counts.jsonl`` holds small configs: for each family a plain one and some that change several fields at
once. Their counts were taken from the published model classes (transformers 5.24) instantiated without memory: the
sizes of the distinct parameters, and for ``active`` the share ``top_k / experts`` of the routed ones.
``published_counts.jsonl`` holds well-known models with the field names of their published configs. The totals are
those of the model class, or, for families without one, of the checkpoint as people report it after loading.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.params import matmuls, params


def lines(name: str) -> list[dict[str, Any]]:
    """The cases of a file beside this one."""
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()]


CASES = lines("attention_counts.jsonl")
NAMES = [f"{number}-{case['config']['model_type']}" for number, case in enumerate(CASES)]
PUBLISHED = lines("published_counts.jsonl")


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_counts_are_those_of_the_model_class(case: dict[str, Any]) -> None:
    found = params(read_config(case["config"]))
    assert (found.total.value, found.active.value) == (case["total"], case["active"])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_matmul_has_a_size(case: dict[str, Any]) -> None:
    spec = read_config(case["config"])
    assert all(m.k > 0 and m.n > 0 and m.copies > 0 and m.uses > 0 for m in matmuls(spec))
    assert len(spec.pattern) == spec.layers > 0


@pytest.mark.parametrize("case", PUBLISHED, ids=[case["name"] for case in PUBLISHED])
def test_published_totals(case: dict[str, Any]) -> None:
    assert params(read_config(case["config"])).total.value == case["total"]
