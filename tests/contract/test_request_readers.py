"""Every reader of request logs: it knows its own schema, no other, and survives what is damaged."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.hygiene.samples import SAMPLES

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene.ledger import Ledger
from ridgeline.serve.hygiene.log import requests
from ridgeline.serve.hygiene.request import KINDS, Request, RequestReader, readers

READERS = readers()
CASES = [(name, record) for name, records in SAMPLES.items() for record in records]


def test_every_reader_has_a_sample() -> None:
    assert {reader.name for reader in READERS} == set(SAMPLES)


@pytest.mark.parametrize(("name", "record"), CASES)
def test_one_reader_claims_a_record(name: str, record: Mapping[str, Any]) -> None:
    assert [reader.name for reader in READERS if reader.claims(record)] == [name]


@pytest.mark.parametrize(("name", "record"), CASES)
def test_a_request_is_whole(name: str, record: Mapping[str, Any]) -> None:
    request = next(reader for reader in READERS if reader.name == name).read(record)
    forms = [bool(request.parts), request.ids is not None, request.hashes is not None]
    assert forms.count(True) == 1
    assert all(part.kind in KINDS and isinstance(part.text, bytes) for part in request.parts)
    assert (request.hashes is None) == (request.block_tokens == 0)


def attempt(reader: RequestReader, record: Mapping[str, Any]) -> Request | None:
    try:
        return reader.read(record) if reader.claims(record) else None
    except InputError:
        return None


def spoilt(value: Any, rng: np.random.Generator) -> Any:
    """A document with one of its values replaced by something else."""
    strange: tuple[Any, ...] = (None, -1, 1e400, True, "", "x", [], {}, [[1], 2], {"a": None})
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = list(value)[int(rng.integers(len(value)))]
        return {**value, key: spoilt(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = int(rng.integers(len(value)))
        return [*value[:at], spoilt(value[at], rng), *value[at + 1 :]]
    return strange[int(rng.integers(len(strange)))]


@pytest.mark.parametrize(("name", "record"), CASES)
def test_damage_never_raises_anything_else(name: str, record: Mapping[str, Any]) -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        changed = spoilt(record, rng)
        if isinstance(changed, dict):
            for reader in READERS:
                attempt(reader, changed)


def test_a_mixed_log_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text("\n".join(json.dumps(record) for _, record in CASES), encoding="utf-8")
    ledger = Ledger()
    found = list(requests(path, ledger))
    assert len(found) == len(CASES)
    assert ledger.schemas == {name: len(records) for name, records in SAMPLES.items()}
    assert ledger.unread == 0
