"""RouterArena cached results: JSON lines whose ``evaluation_result`` is a Python value as text.

Scores are kept as they are, negative ones included; what is outside 0 to 1 is a finding, not a repair.
"""

import ast
from pathlib import Path
from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import digest, first, records
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.evidence.values import score


def sniff(path: Path) -> bool:
    """Lines with a global index and an evaluation result."""
    row = first(path)
    return "evaluation_result" in row and bool({"global_index", "global index"} & row.keys())


def read(path: Path, wanted: Wanted) -> Samples:
    """One row a question; one that was not answered is a failed row. The label ``dataset`` is its index's prefix.

    Raises `InputError` for a result that is no Python value or has no number.
    """
    held = records(path, frozenset(("evaluation_result",)))
    rows = [_row(row, f"{path.name}, line {line}") for row, line in zip(held.rows, held.lines, strict=True)]
    below = [row for row in rows if (row.scores["score"] or 0.0) < 0]
    lost = held.lost
    if below:
        where = f"{path.name}, first {below[0].key[0]}"
        lost = (*lost, Loss("negative scores, kept as they are", len(below), where))
    models = sorted({str(row["llm_selected"]) for row in held.rows if row.get("llm_selected")})
    settings = {"model": ", ".join(models)} if models else {}
    return gathered(rows, Source(path.name, (held.file,), lost, settings), wanted)


def _row(row: dict[str, Any], place: str) -> Row:
    index = row.get("global_index", row.get("global index"))
    result = _result(row.get("evaluation_result"), place)
    value = result.get("score") if isinstance(result, dict) else result
    failed = row.get("success") is False or value is None
    labels = {"dataset": str(index).partition("_")[0]}
    if row.get("llm_selected"):
        labels["model"] = str(row["llm_selected"])
    asked = row.get("question") or row.get("prompt")
    said = row.get("generated_answer")
    return Row(
        (index,), {"score": None if failed else score(value, where=place)}, failed, labels,
        digest("prompt", asked) if asked else None, None if said is None else digest("out", said),
    )  # fmt: skip


def _result(value: Any, place: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value) if value.strip() else None
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InputError.expected("a Python value as text", value, where=place) from error


READER = Reader("routerarena", "RouterArena cached results", sniff, read)
