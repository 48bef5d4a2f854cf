"""openai/evals: JSON lines of a ``spec``, events (``match``, ``metrics``, ``sampling`` ...) and a ``final_report``."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import Records, digest, first, records
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.evidence.values import score

_SETTINGS = ("completion_fns", "eval_name", "base_eval", "split")


def sniff(path: Path) -> bool:
    """A spec of a run first, or an event."""
    row = first(path)
    return isinstance(row.get("spec"), dict) or {"run_id", "event_id", "type", "data"} <= row.keys()


def read(path: Path, wanted: Wanted) -> Samples:
    """One row a scoring event; several of one sample are told apart by their occurrence and share a cluster.

    Raises `InputError` for a log without a scored sample.
    """
    held = records(path)
    lost, spec = list(held.lost), _settings(held, path)
    if not any("final_report" in row for row in held.rows):
        lost.append(Loss("final report that is not there: the run did not finish", 1, path.name))
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in held.rows:
        if row.get("sample_id") is not None and isinstance(row.get("data"), dict):
            events[str(row["sample_id"])].append(row)
    rows = [row for sample, found in events.items() for row in _rows(sample, found, path)]
    if not rows:
        raise InputError.expected("scored samples", "no event match or metrics", where=str(path))
    return gathered(rows, Source(path.name, (held.file,), tuple(lost), spec), wanted)


def _settings(held: Records, path: Path) -> dict[str, str]:
    specs = [row["spec"] for row in held.rows if isinstance(row.get("spec"), dict)]
    if len(specs) > 1:
        raise InputError.expected("one run", f"{len(specs)} specs", where=str(path), hint="split the file by run_id")
    spec = specs[0] if specs else {}
    config = spec.get("run_config") or {}
    found = {name: spec.get(name) for name in _SETTINGS} | {name: config.get(name) for name in ("seed", "max_samples")}
    kept = {name: str(value) for name, value in found.items() if value is not None}
    if "completion_fns" in kept:
        kept["model"] = kept.pop("completion_fns")
    return kept


def _rows(sample: str, events: list[dict[str, Any]], path: Path) -> list[Row]:
    sent = [event["data"] for event in events if event.get("type") == "sampling"]
    prompt = digest("prompt", [item.get("prompt") for item in sent]) if sent else None
    said = digest("out", [item.get("sampled") for item in sent]) if sent else None
    failed = any(event.get("type") == "error" for event in events)
    place, found = f"{path.name}, sample {sample}", []
    for event in events:
        data = event["data"]
        if event.get("type") == "match":
            scores: dict[str, float | None] = {"correct": score(data.get("correct"), where=place)}
        elif event.get("type") == "metrics":
            numbers = {name: value for name, value in data.items() if isinstance(value, bool | int | float)}
            scores = {name: score(value, where=f"{place}, {name}") for name, value in numbers.items()}
        else:
            continue
        key = (sample, digest("expected", data.get("expected"))) if "expected" in data else (sample, event["type"])
        found.append(Row(key, scores, failed, {"cluster": sample}, prompt, said))
    if failed and not found:
        found.append(Row((sample, "match"), {"correct": None}, True, {"cluster": sample}, prompt, said))
    return found


READER = Reader("openai_evals", "openai/evals event logs", sniff, read)
