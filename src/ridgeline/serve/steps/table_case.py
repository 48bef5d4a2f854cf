"""A table of rows answered or refused, and how far the answers are from what the table says was measured."""

import csv
import io
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ridgeline.core.case import Case, Column, InputFile, Section, Table
from ridgeline.core.errors import InputError
from ridgeline.serve.steps.expected import Calibration, Prediction, predict
from ridgeline.serve.steps.load import Loaded, load_of
from ridgeline.serve.steps.published import Refused, Row

ERRORS, REFUSED, NOTES = "rows.errors", "rows.refused", "rows.notes"
HEADER = (
    "row_id", "tpot_ms", "tpot_low80", "tpot_high80", "ttft_ms", "ttft_low80", "ttft_high80", "status", "reason",
)  # fmt: skip
_KEYS = {"tpot": "tpot_ms", "ttft": "ttft_ms"}


def answer(rows: Sequence[Row | Refused], calibration: Calibration | None = None) -> tuple[Prediction, list[Refused]]:
    """The prediction of every row that has one, and the refusals: together as many as there are rows."""
    loads: list[Loaded] = []
    refused: list[Refused] = []
    for row in rows:
        if isinstance(row, Refused):
            refused.append(row)
            continue
        try:
            loads.append(load_of(row))
        except InputError as error:
            reason = str(error).partition("\n")[0]
            refused.append(Refused(row.row_id, reason, row.group, row.source, row.truth))
    return predict(loads, calibration), refused


def as_csv(found: Prediction, refused: Sequence[Refused]) -> str:
    """One line a row: times in milliseconds with the ends of their 80% intervals, or the reason of a refusal."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    sides = [1e3 * side for name in _KEYS for side in (found.value(name), *found.interval(name))]
    for index, load in enumerate(found.loads):
        figures = [f"{side[index]:.6g}" for side in sides]
        writer.writerow([load.row.row_id, *figures, "answered", "; ".join(load.row.notes)])
    for row in refused:
        writer.writerow([row.row_id, *[""] * len(sides), "refused", row.reason])
    return text.getvalue()


def table_case(
    found: Prediction, refused: Sequence[Refused], inputs: Sequence[InputFile] = (), command: str = ""
) -> Case:
    """How many rows were answered, the errors where a truth is given, and why the others were refused."""
    count = len(found.loads) + len(refused)
    case = Case("serve latency", f"{count:,} rows", command=command, inputs=list(inputs))
    errors = tuple(line for name, key in _KEYS.items() for line in _errors(found, name, key))
    columns = (
        Column("what", "What"), Column("rows", "Rows"), Column("median", "Median error", "%"),
        Column("mean", "Mean", "%"), Column("within", "Inside 80%", "%", "rows within their 80% interval"),
    )  # fmt: skip
    case.add_table(ERRORS, Table("Errors where the table says what was measured", columns, errors))
    reasons = tuple(Counter(row.reason for row in refused).most_common())
    case.add_table(REFUSED, Table("Refused, and why", (Column("why", "Why"), Column("rows", "Rows")), reasons))
    notes = tuple(Counter(note for load in found.loads for note in load.row.notes).most_common(12))
    case.add_table(NOTES, Table("Read with a note", (Column("what", "What"), Column("rows", "Rows")), notes))
    case.decision = f"{len(found.loads):,} of {count:,} rows are answered, {len(refused):,} refused with a reason."
    case.sections = [Section("Rows", (), (ERRORS, REFUSED, NOTES))]
    return case


def _errors(found: Prediction, name: str, key: str) -> list[tuple[object, ...]]:
    truth = np.array([load.row.truth.get(key, np.nan) for load in found.loads]) * 1e-3
    has = np.isfinite(truth)
    if not has.any():
        return []
    miss = 100 * np.abs(found.value(name)[has] / truth[has] - 1)
    low, high = found.interval(name)
    inside = (low[has] <= truth[has]) & (truth[has] <= high[has])
    return [(name.upper(), int(has.sum()), float(np.median(miss)), float(miss.mean()), 100 * float(inside.mean()))]
