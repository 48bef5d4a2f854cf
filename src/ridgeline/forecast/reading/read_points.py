"""A ladder from a file or from columns: names matched, units and conventions settled, every row accounted for.

What is wrong with a file (a word for a number, a negative count, two conventions of N) is an `InputError` with its
row. What happens to runs (a diverged loss, a missing cell, the same run twice) drops the row: `Points.lost` says so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError, did_you_mean, located
from ridgeline.forecast.points import PARAMS, Array, Points
from ridgeline.forecast.reading import cells, headers, row_checks
from ridgeline.forecast.reading.headers import Match
from ridgeline.forecast.reading.raw_tables import RawTable, read_table
from ridgeline.forecast.reading.shapes import exact_flops

Wanted = str | float | Sequence[str | float]
_CONVENTIONS = {"total": "total", "all": "total", "with_embedding": "total", "with_embeddings": "total",
                "non_embedding": "non-embedding", "nonembedding": "non-embedding", "kaplan": "non-embedding",
                "no_embedding": "non-embedding", "active": "active", "activated": "active"}  # fmt: skip


@dataclass(frozen=True)
class ReadOptions:
    """How to read a ladder where its header does not say it.

    ``columns``: our name to the file's header, for `N`, `D`, `C`, `loss`, a label, or whatever a form reads.
    ``params``: which parameters N counts, one of `PARAMS`. ``where``: header to the value (or values) of the rows to
    keep. ``loss_unit``: nats or bits per token. ``scale``: a factor per column (``{"N": 1e6}`` for millions,
    ``{"batch": 2048}`` for a batch in sequences of that length). ``decimal``: ``.`` or ``,``. ``keep_excluded``: keep
    rows that an ``excluded`` or ``outlier`` column marks. ``need``: the columns without which the ladder is refused.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    params: str = ""
    where: Mapping[str, Wanted] = field(default_factory=dict)
    loss_unit: Literal["nats", "bits"] = "nats"
    scale: Mapping[str, float] = field(default_factory=dict)
    decimal: str = ""
    keep_excluded: bool = False
    need: tuple[str, ...] = ("N", "D", "C", "loss")


def read_points(path: str | Path, options: ReadOptions | None = None) -> Points:
    """The ladder of a CSV, JSON or Parquet file.

    Raises `InputError` with the place for what cannot be read, `MissingExtraError` for Parquet without Polars.
    """
    table = read_table(path)
    with located(str(path)):
        return _points(table, options or ReadOptions())


def from_columns(columns: Mapping[str, Any], options: ReadOptions | None = None) -> Points:
    """The ladder of columns in memory: lists, tuples or arrays of any type, which are copied.

    Raises `InputError` as `read_points` does.
    """
    lists = {name: _listed(name, values) for name, values in columns.items()}
    lengths = {len(values) for values in lists.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise InputError.expected("columns of one length above zero", sorted(lengths), where="the columns")
    return _points(RawTable(lists, np.arange(1, lengths.pop() + 1), "row"), options or ReadOptions())


def _listed(name: str, values: Any) -> list[Any]:
    try:
        found = values.tolist() if hasattr(values, "tolist") else list(values)
    except TypeError as error:
        raise InputError.expected("a column of values", values, where=name) from error
    if not isinstance(found, list):
        raise InputError.expected("a column of values", values, where=name)
    return found


def _points(table: RawTable, options: ReadOptions) -> Points:
    _check(options)
    mark, noted = _mark(table, options)
    table, lost = _where(table, options), list[str]()
    columns, bad = _numeric(table, mark)
    match = headers.match(list(table.columns), options.columns, options.params, _readable(columns, bad, table))
    params = _convention(table, match, columns)
    found = _scaled(columns, match, options)
    _check_cells(table, match, bad)
    assumed = [noted] if noted else []
    assumed += _units(found, match, options)
    keep = row_checks.flagged(table, lost) if not options.keep_excluded else np.ones(len(table.lines), bool)
    keep &= row_checks.usable(table, found, lost)
    row_checks.signs(table, found, keep)
    assumed += _complete(found, options)
    _required(found, options, table)
    keep &= row_checks.finite(table, found, keep, (*options.need, "N", "D", "C"), lost)
    found |= _extra(columns, bad, match, found)
    labels = {label: _label(table, names) for label, names in match.labels.items()}
    points = Points(found, labels, params, table.lines, (), tuple(assumed), table.file)
    keep &= row_checks.first(table, points, keep, lost)
    if not keep.any():
        raise InputError.expected("at least one usable run", lost[-1] if lost else "none", where="the file")
    return exact_flops(replace(points.take(keep), lost=(*table.lost, *lost)))


def _check(options: ReadOptions) -> None:
    if options.params and options.params not in PARAMS:
        hint = did_you_mean(options.params, PARAMS)
        raise InputError.expected("one of " + ", ".join(PARAMS), options.params, where="params", hint=hint)
    if options.loss_unit not in ("nats", "bits"):
        raise InputError.expected("nats or bits", options.loss_unit, where="loss_unit")
    if options.decimal not in ("", ".", ","):
        raise InputError.expected("a point or a comma", options.decimal, where="decimal")
    for name, factor in options.scale.items():
        if not (math.isfinite(factor) and factor > 0):
            raise InputError.expected("a factor above zero", factor, where=f"scale of {name}")


def _mark(table: RawTable, options: ReadOptions) -> tuple[str, str]:
    if options.decimal:
        return options.decimal, ""
    numeric = [c for c in table.columns.values() if any(isinstance(x, str) and x.strip()[:1].isdigit() for x in c)]
    return cells.decimal_mark(numeric, table.separator)


def _where(table: RawTable, options: ReadOptions) -> RawTable:
    """The rows that the options ask for."""
    keep = np.ones(len(table.lines), bool)
    for header, wanted in options.where.items():
        if header not in table.columns:
            raise InputError.expected("a column of the file", header, where="where",
                                      hint=did_you_mean(header, table.columns))  # fmt: skip
        before, values = keep.copy(), cells.texts(table.columns[header])
        several = [wanted] if isinstance(wanted, str | int | float) else list(wanted)
        keep &= np.isin(values, cells.texts(several))
        numbers, unread = cells.floats(several)
        if not unread:  # 1e8 is 100000000
            keep |= before & np.isin(cells.floats(table.columns[header])[0], numbers[~np.isnan(numbers)])
        if not keep.any():
            hint = did_you_mean(str(several[0]), np.unique(values).tolist(), f"it has {np.unique(values)[:8].tolist()}")
            raise InputError.expected(f"rows where {header} is {several[0]}", "none", where="where", hint=hint)
    rows = np.flatnonzero(keep)
    columns = {name: [values[i] for i in rows.tolist()] for name, values in table.columns.items()}
    return replace(table, columns=columns, lines=table.lines[rows])


def _numeric(table: RawTable, mark: str) -> tuple[dict[str, Array], dict[str, list[int]]]:
    read = {name: cells.floats(values, mark) for name, values in table.columns.items()}
    return {name: values for name, (values, _) in read.items()}, {name: unread for name, (_, unread) in read.items()}


def _readable(columns: Mapping[str, Array], bad: Mapping[str, list[int]], table: RawTable) -> list[str]:
    """The headers of columns that hold numbers, whatever single cells say."""
    return [name for name, values in columns.items() if 2 * len(bad[name]) < len(values) or len(table.lines) == 0]


def _convention(table: RawTable, match: Match, columns: Mapping[str, Array]) -> str:
    """What N counts. Raises `InputError` with the row where that changes within the file."""
    if match.convention:
        said = cells.texts(table.columns[match.convention])
        other = np.flatnonzero(said != said[0])
        if len(other):
            hint = f'one convention at a time: where={{"{match.convention}": "{said[0]}"}}'
            raise InputError.expected(f"one convention of N ({said[0]} in {table.place(0)})", str(said[other[0]]),
                                      where=table.place(int(other[0])), hint=hint)  # fmt: skip
        if match.params == "unstated":
            return _CONVENTIONS.get(headers.key(str(said[0])), "unstated")
    if "N" in match.found:
        absent = np.isnan(columns[match.found["N"]])
        for header in match.others.values():
            mixed = np.flatnonzero(absent & ~np.isnan(columns[header]))
            if len(mixed):
                raise InputError.expected(f"one convention of N ({match.found['N']})", f"only {header}",
                                          where=table.place(int(mixed[0])))  # fmt: skip
    return match.params


def _scaled(columns: Mapping[str, Array], match: Match, options: ReadOptions) -> dict[str, Array]:
    found = {}
    with np.errstate(over="ignore"):  # what overflows is infinite, and its row says so
        for target, header in match.found.items():
            found[target] = columns[header] * match.scale[target] * options.scale.get(target, 1.0)
        for stated, header in match.others.items():
            found[f"N_{stated.replace('-', '_')}"] = columns[header] * headers.unit_of(header)
    return found


def _check_cells(table: RawTable, match: Match, bad: Mapping[str, list[int]]) -> None:
    for target, header in match.found.items():
        if bad[header]:
            first = bad[header][0]
            got = table.columns[header][first]
            raise InputError.expected(f"a number for {target}", got, where=f"{table.place(first)}, column {header}")


def _units(found: dict[str, Array], match: Match, options: ReadOptions) -> list[str]:
    """Bring the loss to nats; say what the header left open."""
    said = []
    if options.loss_unit == "bits" and "loss" in found:
        found["loss"] = found["loss"] * math.log(2)
        said.append("losses in bits per token, times ln 2")
    for target in ("loss",):
        header = headers.key(match.found.get(target, ""))
        if header in ("train_loss", "training_loss", "final_train_loss"):
            said.append(f"the loss is the training loss ({match.found[target]})")
    if "batch" in found and "batch" not in options.scale and "tokens" not in headers.key(match.found["batch"]):
        said.append(f"{match.found['batch']} is taken as a batch in tokens")
    if "horizon" not in found and {"horizon_steps", "step", "D"} <= set(found):
        with np.errstate(all="ignore"):
            found["horizon"] = found["D"] * found["horizon_steps"] / found["step"]
        said.append(f"the schedule ends at D*{match.found['horizon_steps']}/{match.found['step']} tokens")
    return said


def _complete(found: dict[str, Array], options: ReadOptions) -> list[str]:
    """The third of N, D and C from C = 6ND, for whole columns and for single cells."""
    said = []
    for name, text in {"C": "6*N*D", "D": "C/(6*N)", "N": "C/(6*D)"}.items():
        first, second = (found.get(other) for other in "NDC" if other != name)
        if first is None or second is None:
            continue
        with np.errstate(all="ignore"):
            value = 6 * first * second if name == "C" else second / 6 / first
        absent = np.isnan(found[name]) if name in found else np.ones(len(value), bool)
        if name not in found and (name in options.need or name == "C"):
            found[name] = value
            said.append(f"{name} = {text}")
        elif name in found and absent.any():
            found[name] = np.where(absent, value, found[name])
            said.append(f"{name} = {text} in {int(absent.sum())} rows without it")
    return said


def _required(found: Mapping[str, Array], options: ReadOptions, table: RawTable) -> None:
    names = list(table.columns)
    for name in options.need:
        if name in found:
            continue
        two = " (or two of N, D and C)" if name in ("N", "D", "C") else ""
        what = f"a column of {row_checks.MEANING.get(name, name)}{two}"
        raise InputError.expected(what, ", ".join(names), where="the header",
                                  hint=headers.suggestion(name, names))  # fmt: skip


def _label(table: RawTable, names: Sequence[str]) -> NDArray[np.str_]:
    """The columns of one label joined; those that never change say nothing and are left out."""
    several = [cells.texts(table.columns[name]) for name in names]
    changing = [values for values in several if len(np.unique(values)) > 1] or several[:1]
    joined = changing[0].astype(object)
    for values in changing[1:]:
        joined = joined + " / " + values.astype(object)
    return joined.astype(np.str_)


def _extra(
    columns: Mapping[str, Array], bad: Mapping[str, list[int]], match: Match, found: Mapping[str, Array]
) -> dict[str, Array]:
    """Every other column of numbers under its own header: forms may read it."""
    used = {*match.found.values(), *match.others.values()}
    return {
        name: values
        for name, values in columns.items()
        if name not in used and name not in found and not bad[name] and not np.isnan(values).all()
    }
