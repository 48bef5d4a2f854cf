"""Inspect logs: ``.eval`` archives (deflate or zstd, versions 2 and 3) and ``.json`` documents.

Rows are told by task, input and target. Epochs stay rows: the cluster is the sample's id, and nothing is reduced.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import Content, content, digest, head, members, parsed, salvage
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.evidence.values import score

_ZIP = b"PK\x03\x04"
_DOCUMENT = re.compile(rb'^\s*\{\s*"version"\s*:\s*\d+.*?"eval"\s*:\s*\{', re.DOTALL)
_ATTACHED = "attachment://"
_GENERATE = ("temperature", "top_p", "max_tokens", "seed", "system_message", "reasoning_effort")


@dataclass(frozen=True)
class _Log:
    header: Mapping[str, Any]
    samples: list[Mapping[str, Any]]
    lost: tuple[Loss, ...]


def sniff(path: Path) -> bool:
    """A zip archive with a header or a start journal, or a document of a version and an eval."""
    start = head(path)
    if start.startswith(_ZIP):
        return path.suffix == ".eval" or b"_journal/start.json" in start or b"header.json" in start
    return _DOCUMENT.match(start) is not None


def read(path: Path, wanted: Wanted) -> Samples:
    """One row a sample and epoch. Samples that ended in an error stay, marked; an unfinished run is read and said.

    A score that is a dict or a list needs its field: the metric ``scorer.field``. Raises `InputError` for a log without
    a sample, and for a score that is no number; `MissingExtraError` for a zstd archive without its package.
    """
    held = content(path)
    log = _archive(held, path) if held.data.startswith(_ZIP) else _document(held, path)
    lost = [*held.lost, *log.lost, *_unfinished(log, path)]
    task = str((log.header.get("eval") or {}).get("task", ""))
    fields = {name for name in (*wanted.metrics, *wanted.columns.values()) if "." in name}
    plural: dict[str, set[str]] = {}
    rows = [_row(task, sample, fields, plural, path) for sample in sorted(log.samples, key=_order)]
    _refuse_fields_only(rows, plural, path)
    for name, known in plural.items():
        chosen = sorted(field for field in fields if field.rpartition(".")[0] == name)
        if not chosen:
            what = f"scorer with fields that were not asked for: {name} ({', '.join(sorted(known))})"
            lost.append(Loss(what, 1, path.name))
    if not rows:
        raise InputError.expected("at least one sample", "none", where=str(path), hint="; ".join(x.what for x in lost))
    return gathered(rows, Source(path.name, (held.file,), tuple(lost), _settings(log.header)), wanted)


def _order(sample: Mapping[str, Any]) -> tuple[str, int]:
    return str(sample.get("id")), int(sample.get("epoch") or 1)


def _archive(held: Content, path: Path) -> _Log:
    files, lost = members(held.data, path.name)
    header, broken = _object(files.get("header.json") or files.get("_journal/start.json") or b"{}")
    if "header.json" not in files:
        header = {"status": "started", **header}
    samples: list[Mapping[str, Any]] = []
    bad = [path.name] if broken else []
    for name in sorted(files):
        if name.startswith("samples/") and name.endswith(".json"):
            sample, damaged = _object(files[name])
            if damaged or "id" not in sample:
                bad.append(name)
            else:
                samples.append(sample)
    if bad:
        lost = (*lost, Loss("files of the archive that are no JSON", len(bad), f"{path.name}, first {bad[0]}"))
    return _Log(header, samples, lost)


def _object(text: bytes) -> tuple[dict[str, Any], bool]:
    try:
        value = parsed(text)
    except ValueError:
        return {}, True
    return (value, False) if isinstance(value, dict) else ({}, True)


def _document(held: Content, path: Path) -> _Log:
    lost: tuple[Loss, ...] = ()
    try:
        value = parsed(held.data)
    except ValueError:
        value, _, _ = salvage(held.data.decode("utf-8", "replace"))
        lost = (Loss("document that is cut off: its last samples are missing", 1, path.name),)
    if not isinstance(value, dict):
        raise InputError.expected("an inspect log", type(value).__name__, where=str(path))
    samples: list[Mapping[str, Any]] = [item for item in value.get("samples") or [] if isinstance(item, dict)]
    return _Log(value, samples, lost)


def _unfinished(log: _Log, path: Path) -> list[Loss]:
    """What the run did not do: its status, and samples that were planned and are not in the log."""
    eval_, found = log.header.get("eval") or {}, []
    status = str(log.header.get("status", "unknown"))
    if status != "success":
        found.append(Loss(f"run that is not finished: status {status}", 1, path.name))
    ids = (eval_.get("dataset") or {}).get("sample_ids")
    epochs = (eval_.get("config") or {}).get("epochs") or 1
    missing = (len(ids) * epochs if isinstance(ids, list) else 0) - len(log.samples)
    if missing > 0:
        found.append(Loss("samples that were planned and are not in the log", missing, path.name))
    return found


def _row(task: str, sample: Mapping[str, Any], fields: set[str], plural: dict[str, set[str]], path: Path) -> Row:
    place = f"{path.name}, sample {sample.get('id')}, epoch {sample.get('epoch', 1)}"
    failed = bool(sample.get("error")) or bool(sample.get("invalidation"))
    scores: dict[str, float | None] = {}
    for name, held in (sample.get("scores") or {}).items():
        value = held.get("value") if isinstance(held, Mapping) else held
        if isinstance(value, Mapping | list) and not (isinstance(value, list) and len(value) == 1):
            by_name = value if isinstance(value, Mapping) else {str(n): item for n, item in enumerate(value)}
            plural.setdefault(name, set()).update(map(str, by_name))
            scores |= {f: _score(by_name.get(f.rpartition(".")[2]), f"{place}, {f}")
                       for f in fields if f.rpartition(".")[0] == name}  # fmt: skip
        else:
            scores[name] = _score(value, f"{place}, {name}")
    if failed:
        scores = dict.fromkeys(scores)
    asked, target = _text(sample, "input"), _text(sample, "target")
    labels = {"cluster": str(sample.get("id")), "epoch": str(sample.get("epoch", 1)), "task": task}
    labels |= {k: str(v) for k, v in (sample.get("metadata") or {}).items() if isinstance(v, str | int | bool)}
    key = (digest("input", asked, sample.get("choices")), digest("target", target), sample.get("epoch", 1), task)
    output = (sample.get("output") or {}).get("choices") or []
    said = [(choice.get("message") or {}).get("content") for choice in output]
    return Row(key, scores, failed, labels, _prompt(sample), digest("out", _plain(said)) if said else None)


def _score(value: Any, place: str) -> float:
    return score(value, where=place)


def _text(sample: Mapping[str, Any], name: str) -> Any:
    """Input or target without the identifiers of messages, attachments put back."""
    return _plain(sample.get(name), sample.get("attachments") or {})


def _plain(value: Any, attached: Mapping[str, Any] | None = None) -> Any:
    if isinstance(value, str):
        name = value.removeprefix(_ATTACHED)
        return (attached or {}).get(name, value) if value.startswith(_ATTACHED) else value
    if isinstance(value, list):
        return [_plain(item, attached) for item in value]
    if isinstance(value, Mapping):
        return {k: _plain(v, attached) for k, v in value.items() if k in ("role", "content", "type", "text", "image")}
    return value


def _prompt(sample: Mapping[str, Any]) -> str | None:
    """A hash of what was sent before the first answer: the messages up to it."""
    sent: list[Any] = []
    for message in sample.get("messages") or []:
        if not isinstance(message, Mapping) or message.get("role") == "assistant":
            break
        sent.append(_plain(message, sample.get("attachments") or {}))
    return digest("prompt", sent) if sent else None


def _refuse_fields_only(rows: list[Row], plural: Mapping[str, set[str]], path: Path) -> None:
    if plural and rows and not any(row.scores for row in rows):
        known = [f"{name}.{field}" for name, fields in plural.items() for field in sorted(fields)]
        hint = f"name one: --metric {known[0]}; fields: {', '.join(known[:8])}"
        raise InputError.expected("one score a sample", "several fields", where=str(path), hint=hint)


def _settings(header: Mapping[str, Any]) -> dict[str, str]:
    eval_ = header.get("eval") or {}
    config, data = eval_.get("config") or {}, eval_.get("dataset") or {}
    generate = {**(eval_.get("model_generate_config") or {}), **((header.get("plan") or {}).get("config") or {})}
    found = {
        "model": eval_.get("model"),
        "model_args": eval_.get("model_args") or None,
        "task": eval_.get("task"),
        "task_version": eval_.get("task_version"),
        "task_args": eval_.get("task_args") or None,
        "dataset": data.get("location") or data.get("name"),
        "shuffled": data.get("shuffled"),
        "samples_original": data.get("samples"),
        "limit": config.get("limit"),
        "epochs": config.get("epochs"),
        "git_hash": (eval_.get("revision") or {}).get("commit"),
        "inspect_version": (eval_.get("packages") or {}).get("inspect_ai"),
        **{name: generate.get(name) for name in _GENERATE},
    }
    return {name: "none" if value is None else str(value) for name, value in found.items()}


READER = Reader("inspect", "Inspect logs, .eval and .json", sniff, read)
