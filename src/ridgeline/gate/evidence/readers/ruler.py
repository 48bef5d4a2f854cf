"""RULER predictions: JSON lines of ``{index, input, outputs, pred}``.

A row is one context: ``found`` is 1 where every expected output is in the prediction, ``found_share`` the share that
is. A mean over needles hides where they were: needles by position are another tool's rows.
"""

from pathlib import Path
from typing import Any

from ridgeline.gate.evidence.files import digest, first, records
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples


def sniff(path: Path) -> bool:
    """Lines with a prediction and a list of expected outputs."""
    row = first(path)
    return "pred" in row and isinstance(row.get("outputs"), list)


def read(path: Path, wanted: Wanted) -> Samples:
    """One row a context, told by its text; a missing prediction is a failed row. Raises `InputError` for no row."""
    held = records(path, frozenset(("outputs",)))
    task = path.name.partition(".")[0]
    return gathered([_row(task, row) for row in held.rows], Source(path.name, (held.file,), held.lost), wanted)


def _row(task: str, row: dict[str, Any]) -> Row:
    said, expected = row.get("pred"), [str(item) for item in row.get("outputs") or []]
    failed = not isinstance(said, str) or not expected
    hits = [item.lower() in str(said).lower() for item in expected]
    scores = {"found": None, "found_share": None} if failed else {
        "found": float(all(hits)), "found_share": sum(hits) / len(hits),
    }  # fmt: skip
    text = row.get("input")
    told = digest("input", text) if text else f"index {row.get('index')}"
    labels = {"task": task, "index": str(row.get("index", ""))}
    if row.get("length") is not None:
        labels["length"] = str(row["length"])
    prompt = digest("prompt", text) if text else None
    return Row((task, told, digest("out", expected)), scores, failed, labels, prompt, None if failed else str(said))


READER = Reader("ruler", "RULER predictions", sniff, read)
