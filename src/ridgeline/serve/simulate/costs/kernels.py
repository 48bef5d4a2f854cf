"""The tables of a measured kernel profile: read, checked, and filled to whole grids.

A profile is a folder with CSV or Parquet files named after their table, with or without a common prefix such as
``mine_dense.csv``; times are in microseconds and of one layer (of the whole model where the table is outside of them):

=============  ==========================================================  ============================================
table          columns                                                     one row
=============  ==========================================================  ============================================
dense          layer, tokens                                               one operation of a layer at that many tokens
per_sequence   layer, sequences                                            lm_head and sampler
attention      prefill_chunk, kv_prefill, n_decode, kv_decode              a prompt chunk with its past, beside decodes
moe            tokens, activated_experts                                   the experts of one layer (optional)
skew           n, pc, kv_big, kv_mean, t_mean_us, t_max_us, t_skew_us      decodes of unequal context (optional)
=============  ==========================================================  ============================================

All but ``skew`` hold ``time_us``. Columns ``hw``, ``model`` and ``tp``, where there are any, choose among profiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError, MissingExtraError, did_you_mean
from ridgeline.serve.simulate.costs.table import Curve, Floats, Grid

KEYS = {
    "dense": ("tokens",),
    "per_sequence": ("sequences",),
    "attention": ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode"),
    "moe": ("tokens", "activated_experts"),
    "skew": ("n", "pc", "kv_big", "kv_mean"),
}
TIMES = {"skew": ("t_mean_us", "t_max_us", "t_skew_us")}
OPTIONAL = ("moe", "skew")
_NAMED = ("dense", "per_sequence")
_SUFFIXES = (".csv", ".parquet")
_MICRO = 1e-6


@dataclass(frozen=True)
class Choice:
    """Which of the profiles in a folder: the values of ``hw`` and ``model`` ("" where there is one), and of ``tp``."""

    hardware: str = ""
    model: str = ""
    tp: int = 1


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one table: where they are from, their keys and their seconds (n,), and the layer of each."""

    where: str
    keys: Mapping[str, Floats]
    seconds: Mapping[str, Floats]
    layer: Sequence[str]

    def curves(self) -> dict[str, Curve]:
        """Seconds by the one key of the table, for each layer. Raises `InputError` for a node that is there twice."""
        (name, values), seconds = next(iter(self.keys.items())), self.seconds["time_us"]
        found = {}
        for layer in sorted(set(self.layer)):
            mine = np.array([item == layer for item in self.layer])
            order = np.argsort(values[mine], kind="stable")
            at = values[mine][order]
            twice = np.flatnonzero(np.diff(at) == 0)
            if len(twice):
                place = f"{self.where}: {layer}, {name} {at[twice[0]]:g}"
                raise InputError.expected("one row for each node", "two", where=place)
            found[layer] = Curve(at, seconds[mine][order])
        return found

    def grid(self) -> tuple[tuple[Floats, ...], Floats]:
        """The rising values of each key, and the seconds at their crossings; NaN where there is no row."""
        axes, places = zip(*(np.unique(v, return_inverse=True) for v in self.keys.values()), strict=True)
        values = np.full([len(axis) for axis in axes], np.nan)
        flat = np.ravel_multi_index(places, values.shape)
        if len(np.unique(flat)) < len(flat):
            first = int(np.flatnonzero(np.bincount(flat) > 1)[0])
            node = at_node(self.keys, axes, np.unravel_index(first, values.shape))
            raise InputError.expected("one row for each node", "two", where=f"{self.where}: {node}")
        values.flat[flat] = self.seconds["time_us"]
        return axes, values


def at_node(names: Sequence[str] | Mapping[str, Any], axes: Sequence[Floats], index: Sequence[Any]) -> str:
    """A crossing of axes in words."""
    return ", ".join(f"{name} {axis[int(i)]:g}" for name, axis, i in zip(names, axes, index, strict=True))


def read(folder: Path, choice: Choice) -> dict[str, Rows]:
    """Every table of a profile by name.

    Raises `InputError` for a folder without a needed table, a table without a needed column, counts that are not whole
    numbers of at least 0, times that are not above 0, and a choice that the rows do not hold; it names the place.
    """
    if not folder.is_dir():
        raise InputError.expected("a folder with a kernel profile", str(folder), where="the profile")
    prefix = _prefix(folder)
    found = {}
    for name in KEYS:
        file = next((p for s in _SUFFIXES if (p := folder / f"{prefix}{name}{s}").is_file()), None)
        if file is not None:
            rows = _table(name, file, choice)
            if len(rows.layer):
                found[name] = rows
            elif name not in OPTIONAL:
                raise InputError.expected("rows", "none", where=str(file))
        elif name not in OPTIONAL:
            hint = f"needed: {', '.join(n for n in KEYS if n not in OPTIONAL)}, each as .csv or .parquet"
            raise InputError.expected(f"a table {prefix}{name}", "none", where=str(folder), hint=hint)
    return found


def _prefix(folder: Path) -> str:
    """What stands before the tables' names: of the file that ends in ``dense``."""
    found = sorted({p.stem.removesuffix("dense") for p in folder.iterdir()
                    if p.suffix in _SUFFIXES and p.stem.endswith("dense")})  # fmt: skip
    if len(found) > 1:
        raise InputError.expected("one profile in a folder", ", ".join(f"{p}dense" for p in found), where=str(folder))
    return found[0] if found else ""


def _frame(file: Path) -> Any:
    if find_spec("polars") is None:
        raise MissingExtraError("polars", "tables")
    import polars as pl

    try:
        return pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_csv(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError.expected("a whole table", str(error), where=str(file)) from None


def _table(name: str, file: Path, choice: Choice) -> Rows:
    frame = _frame(file)
    times = TIMES.get(name, ("time_us",))
    for column in (*(("layer",) if name in _NAMED else ()), *KEYS[name], *times):
        if column not in frame.columns:
            hint = did_you_mean(column, frame.columns, f"columns: {', '.join(frame.columns)}")
            raise InputError.expected(f"the column {column}", "none", where=str(file), hint=hint)
    frame = frame.with_row_index("row", 1)
    wanted: dict[str, str | int] = {"hw": choice.hardware, "model": choice.model, "tp": choice.tp}
    for column, value in wanted.items():
        if column in frame.columns:
            frame = _chosen(frame, column, value, str(file), optional=name in OPTIONAL)
    keys = {column: _numbers(frame, column, str(file), times=False) for column in KEYS[name]}
    seconds = {column: _MICRO * _numbers(frame, column, str(file), times=True) for column in times}
    layer = [str(item) for item in frame["layer"]] if name in _NAMED else [name] * len(frame)
    return Rows(str(file), keys, seconds, layer)


def _chosen(frame: Any, column: str, value: str | int, where: str, *, optional: bool) -> Any:
    """The rows whose ``column`` holds ``value``; with no value all must hold the same."""
    held = sorted(set(frame[column].drop_nulls().to_list()))
    if value == "":
        if len(held) > 1:
            raise InputError.expected(
                f"the {column} to choose", "none", where=where, hint=f"known: {', '.join(map(str, held))}"
            )
        return frame
    if value not in held and not optional:
        hint = did_you_mean(str(value), [str(item) for item in held], f"known: {', '.join(map(str, held))}")
        raise InputError.expected(f"rows with that {column}", value, where=where, hint=hint)
    return frame.filter(frame[column] == value)


def _numbers(frame: Any, column: str, where: str, *, times: bool) -> Floats:
    import polars as pl

    cells = frame[column].cast(pl.Float64, strict=False).fill_null(float("nan"))
    values = np.asarray(cells.to_numpy(), dtype=np.float64)
    good = values > 0 if times else (values >= 0) & (values == np.floor(values))
    bad = np.flatnonzero(~(good & np.isfinite(values)))
    if len(bad):
        what = "a time above 0" if times else "a whole number of at least 0"
        place = f"{where}, row {frame['row'][int(bad[0])]}: {column}"
        raise InputError.expected(
            what, frame[column][int(bad[0])], where=place, hint=f"rows that are wrong: {len(bad)}"
        )
    return values


def attention_grid(rows: Rows) -> Grid:
    """The attention table as a whole grid.

    A profile may join several grids (doublings of each axis, and finer ones in a part): crossings that no row holds are
    filled in a straight line between their measured neighbours, axis by axis from the contexts of the decodes to the
    chunk. No row can hold a past without a chunk or a context without decodes: there the axis has no effect. Decodes
    above the most that were measured beside a chunk cost what they cost alone. Raises `InputError` for what is left
    open, and for a row that is missing from an otherwise whole grid of decodes and contexts.
    """
    axes, values = rows.grid()
    _whole_lines(rows, axes, values)
    for axis, name in enumerate(KEYS["attention"]):
        if axis != 3 and axes[axis][0] != 0:
            raise InputError.expected(f"rows with {name} 0", f"at least {axes[axis][0]:g}", where=rows.where)
    if len(axes[3]) < 2:
        raise InputError.expected("decodes at some kv_decode above 0", "none", where=rows.where)
    values[0, :, :, :] = values[0, :1, :, :]
    values[:, :, 0, :] = values[:, :, 0, :1]
    values[0, :, 0, :] = 0.0
    for axis in (3, 2, 1, 0, 3, 2, 1):
        values = _between(values, axes[axis], axis)
    values[:, :, 1:, 0] = np.where(np.isnan(values[:, :, 1:, 0]), values[:, :, 1:, 1], values[:, :, 1:, 0])
    for j in range(1, values.shape[2]):
        alone = values[0, 0, j] - values[0, 0, j - 1]
        values[:, :, j] = np.where(np.isnan(values[:, :, j]), values[:, :, j - 1] + alone, values[:, :, j])
    open_ = np.argwhere(np.isnan(values))
    if len(open_):
        where = f"{rows.where}: {at_node(KEYS['attention'], axes, open_[0])}"
        raise InputError.expected("a row at or around every crossing", f"{len(open_)} without", where=where)
    return Grid(axes, values)  # type: ignore[arg-type]


def _whole_lines(rows: Rows, axes: Sequence[Floats], values: Floats) -> None:
    """Refuse a (chunk, past) whose decodes were not all measured at the same contexts."""
    held = ~np.isnan(values[:, :, 1:, :])
    for i, j in np.argwhere(held.any(axis=(2, 3))):
        plane = held[i, j]
        missing = np.argwhere(np.outer(plane.any(axis=1), plane.any(axis=0)) & ~plane)
        if len(missing):
            index = (i, j, missing[0][0] + 1, missing[0][1])
            where = f"{rows.where}: {at_node(KEYS['attention'], axes, index)}"
            raise InputError.expected(
                "every context at every number of decodes", f"{len(missing)} missing", where=where
            )


def _between(values: Floats, nodes: Floats, axis: int) -> Floats:
    """Fill NaN in straight lines along one axis, between measured nodes only."""
    lines = np.moveaxis(values, axis, -1).copy()
    flat = lines.reshape(-1, lines.shape[-1])
    known = ~np.isnan(flat)
    for line in np.flatnonzero((known.sum(axis=1) > 1) & ~known.all(axis=1)):
        ok = np.flatnonzero(known[line])
        inside = slice(ok[0], ok[-1] + 1)
        flat[line, inside] = np.interp(nodes[inside], nodes[ok], flat[line, ok])
    return np.moveaxis(flat.reshape(lines.shape), -1, axis)


def expert_seconds(rows: Rows, tokens: Floats, activated: Floats) -> Floats:
    """Seconds of a layer's experts: linear in the activated experts, then in the tokens, held below the first node."""
    (at, experts), values = rows.grid()
    known = [~np.isnan(line) for line in values]
    low = np.clip(np.searchsorted(at, tokens, side="right") - 1, 0, max(0, len(at) - 2))
    high = np.minimum(low + 1, len(at) - 1)
    part = np.where(high > low, np.maximum(tokens - at[low], 0.0) / np.maximum(at[high] - at[low], 1e-9), 0.0)

    def level(node: int, count: float) -> float:
        return float(np.interp(count, experts[known[node]], values[node, known[node]]))

    below = np.array([level(int(i), c) for i, c in zip(low, activated, strict=True)])
    above = np.array([level(int(i), c) for i, c in zip(high, activated, strict=True)])
    return np.asarray(below + part * (above - below))
