"""A table of results: CSV, TSV, Parquet or JSON lines, one row an example.

Columns are taken by their names (``id``, ``slice``, ``error`` ...) or as declared. Every other numeric column is a
metric, every other text column a label.
"""

import csv
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.format import count
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import Content, content, records
from ridgeline.gate.evidence.reader import ROLES, Reader, Wanted
from ridgeline.gate.evidence.samples import Floats, Mask, Samples, Texts, higher_after_renaming
from ridgeline.gate.evidence.values import score

if TYPE_CHECKING:
    import polars as pl

_USUAL = {
    "id": ("id", "example_id", "sample_id", "doc_id", "question_id", "key", "uid"),
    "slice": ("slice", "subject", "category"),
    "cluster": ("cluster", "cluster_id", "group", "user", "user_id", "context_id"),
    "prompt": ("prompt_hash",),
    "output": ("output", "response", "prediction"),
    "error": ("error",),
    "confidence": ("confidence",),
}
_SCORES = ("score", "acc", "accuracy", "correct", "exact_match", "reward", "passed", "success", "evaluation_result")
_REPEATS = ("trial", "epoch", "attempt", "repeat", "repetition", "seed", "rollout", "try")
_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".csv.gz", ".tsv.gz", ".jsonl.gz")


def sniff(path: Path) -> bool:
    """By the file's name: every table has one of these endings."""
    return path.is_file() and path.name.lower().endswith(_SUFFIXES)


def read(path: Path, wanted: Wanted) -> Samples:
    """The table's rows. Raises `InputError` for no rows, no id, or a score that is no number."""
    held = content(path)
    frame, lost = frame_of(path, held, _id_names(wanted))
    if frame.height == 0:
        raise InputError.expected("at least one row", "none", where=str(path))
    places = _places(frame.columns, wanted, path)
    if "id" not in places:
        hint = "declare it: --column id=NAME; several columns as id=NAME+NAME. Rows are never paired by their order"
        raise InputError.expected(
            "a column that says which example a row is", frame.columns, where=str(path), hint=hint
        )
    taken = {name for names in places.values() for name in names}
    scores, labels = _columns(frame, taken, wanted, path)
    for role in ("slice", "cluster"):
        if role in places:
            labels[role] = labels[places[role][0]] = _joined(frame, places[role])
    once = tuple(name for name in places["id"] if name.lower() not in _REPEATS)
    if "cluster" not in labels and 0 < len(once) < len(places["id"]):
        labels["cluster"] = _joined(frame, once)  # trials of an example are not examples
    if "confidence" in places:
        scores["confidence"] = _numbers(frame[places["confidence"][0]], path)
    return Samples(
        path.name,
        _ids(_joined(frame, places["id"]), path),
        scores,
        _errors(frame, places),
        labels,
        _joined(frame, places["prompt"]) if "prompt" in places else None,
        _joined(frame, places["output"]) if "output" in places else None,
        lost=(*held.lost, *lost),
        inputs=(held.file,),
        directions={m: higher_after_renaming(m, c) for m, c in wanted.columns.items() if m not in ROLES},
        columns={m: c for m, c in wanted.columns.items() if m not in ROLES},
    )


def _id_names(wanted: Wanted) -> tuple[str, ...]:
    """Columns that stay text: as numbers, 1.10 and 1.1 are one example, and so are long ones that differ at the end."""
    return tuple(wanted.columns["id"].split("+")) if "id" in wanted.columns else _USUAL["id"]


def frame_of(path: Path, held: Content, texts: Sequence[str] = ()) -> tuple["pl.DataFrame", tuple[Loss, ...]]:
    """The rows of a CSV, TSV, Parquet or JSON lines file, and what was lost. Raises `InputError` for anything else.

    ``texts`` names columns of a CSV that stay as they are written, whatever they look like, in lower case or as they
    are.
    """
    import polars as pl

    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            return pl.read_parquet(BytesIO(held.data)), ()
        if name.endswith((".jsonl", ".ndjson")):
            return _lines(path, held.data)
        sign = "\t" if name.endswith(".tsv") else ","
        data, cut = _whole_lines(held.data, sign, path, known_cut=bool(held.lost))
        names = _fields(data.partition(b"\n")[0], sign)
        kept = {name: pl.String for name in names if name in texts or name.lower() in texts}
        return pl.read_csv(BytesIO(data), separator=sign, infer_schema_length=None, schema_overrides=kept), cut
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError.expected("a readable table", str(error).splitlines()[0], where=str(path)) from error


def _lines(path: Path, data: bytes) -> tuple["pl.DataFrame", tuple[Loss, ...]]:
    """JSON lines at speed; where a line is damaged, holds NaN or mixes types, one by one."""
    import polars as pl

    try:
        return pl.read_ndjson(BytesIO(data), infer_schema_length=None), ()
    except (pl.exceptions.PolarsError, OSError):
        held = records(path)
    columns: dict[str, list[Any]] = {name: [] for row in held.rows for name in row}
    for row in held.rows:
        for name, column in columns.items():
            column.append(row.get(name))
    frame = pl.DataFrame({name: _series(column) for name, column in columns.items()})
    return frame, tuple(item for item in held.lost if "gzip" not in item.what)


def _series(column: list[Any]) -> "pl.Series":
    import polars as pl

    if all(value is None or isinstance(value, bool | int | float) for value in column):
        return pl.Series([None if value is None else float(value) for value in column], dtype=pl.Float64)
    return pl.Series([None if value is None else str(value) for value in column], dtype=pl.String)


def _whole_lines(data: bytes, sign: str, path: Path, *, known_cut: bool) -> tuple[bytes, tuple[Loss, ...]]:
    """The table without a last line that is cut off. Raises `InputError` for two columns of one name."""
    names = _fields(data.partition(b"\n")[0], sign)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError.expected("columns of different names", f"two of {twice[0]}", where=str(path))
    at = data.rfind(b"\n") + 1
    last = data[at:]
    if not at or not last.strip() or last.count(b'"') % 2:  # a quoted field may hold the line's end
        return data, ()
    if known_cut or len(_fields(last, sign)) < len(names):
        return data[:at], (Loss("last line that is cut off", 1, path.name),)
    return data, ()


def _fields(line: bytes, sign: str) -> list[str]:
    try:
        return next(csv.reader([line.decode("utf-8-sig", "replace").rstrip("\r")], delimiter=sign), [])
    except csv.Error:
        return []


def _ids(found: Texts, path: Path) -> Texts:
    absent = np.flatnonzero([text is None for text in found.tolist()])
    if len(absent):
        got = f"none in {count(len(absent), 'row')}, first row {absent[0] + 1}"
        raise InputError.expected("an id in every row", got, where=str(path))
    return found


def _places(columns: list[str], wanted: Wanted, path: Path) -> dict[str, tuple[str, ...]]:
    """The columns of every role: as declared, else by their usual names."""
    found: dict[str, tuple[str, ...]] = {}
    for role, text in wanted.columns.items():
        names = tuple(text.split("+")) if role == "id" else (text,)
        for name in names:
            if name not in columns:
                hint = did_you_mean(name, columns, "columns: " + ", ".join(columns))
                raise InputError.expected(f"a column for {role}", name, where=str(path), hint=hint)
        if role in ROLES:
            found[role] = names
    lower = {name.lower(): name for name in columns}
    for role, names in _USUAL.items():
        usual = next((lower[name] for name in names if name in lower), None)
        if role not in found and usual is not None and usual not in wanted.metrics:
            found[role] = (usual,)
    return found


def _columns(
    frame: "pl.DataFrame", taken: set[str], wanted: Wanted, path: Path
) -> tuple[dict[str, Floats], dict[str, Texts]]:
    renamed = {column: metric for metric, column in wanted.columns.items() if metric not in ROLES}
    scores: dict[str, Floats] = {}
    labels: dict[str, Texts] = {}
    for name in frame.columns:
        metric, series = renamed.get(name, name), frame[name]
        asked = metric in wanted.metrics or name in renamed or (name.lower() in _SCORES and name not in taken)
        if asked or (name not in taken and (series.dtype.is_numeric() or series.dtype == bool)):
            if wanted.keeps(metric) or name in renamed:
                scores[metric] = _numbers(series, path)
        elif name not in taken:
            labels[name] = _label(series)
    return scores, labels


def _label(series: "pl.Series") -> Texts:
    if series.dtype.is_nested():
        found = np.empty(len(series), dtype=object)
        found[:] = [None if value is None else str(value) for value in series.to_list()]
        return found
    return series.cast(str, strict=False).to_numpy().astype(object)


def _numbers(series: "pl.Series", path: Path) -> Floats:
    """A column of scores; NaN where a row has none."""
    if series.dtype.is_numeric() or series.dtype == bool:
        found = series.cast(float).to_numpy().astype(np.float64)
        given = series.is_not_null().to_numpy()
        astray = np.flatnonzero(given & ~np.isfinite(found))
        if len(astray):
            got = f"{found[astray[0]]} in {len(astray):,} rows"
            raise InputError.expected("finite scores", got, where=f"{path}, column {series.name}, row {astray[0] + 1}")
        return found
    values: list[Any] = series.to_list()
    place = f"{path}, column {series.name}, row "
    return np.array([score(value, where=f"{place}{row}") for row, value in enumerate(values, 1)])


def _joined(frame: "pl.DataFrame", names: tuple[str, ...]) -> Texts:
    import polars as pl

    if len(names) == 1:
        return frame[names[0]].cast(pl.String, strict=False).to_numpy().astype(object)
    text = frame.select(pl.concat_str([pl.col(name).cast(pl.String) for name in names], separator="|"))
    return text.to_series().to_numpy().astype(object)


def _errors(frame: "pl.DataFrame", places: dict[str, tuple[str, ...]]) -> Mask:
    if "error" not in places:
        return np.zeros(frame.height, dtype=np.bool_)
    series = frame[places["error"][0]]
    if series.dtype == bool or series.dtype.is_numeric():
        failed: Mask = series.fill_null(0).to_numpy().astype(np.float64) != 0
        return failed
    said = series.cast(str, strict=False).fill_null("").str.to_lowercase()
    return ~said.is_in(["", "none", "null", "false", "0"]).to_numpy()


READER = Reader("table", "CSV, TSV, Parquet or JSON lines", sniff, read, last=True)
