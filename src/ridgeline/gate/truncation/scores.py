"""Scores of the same examples at several history lengths: a long table, one wide one, or one system alone.

Long: ``id, user, label, length, score`` (or ``loss``), a row for each example and length. Wide: ``id, user, label,
score_64, score_256 ...``. Examples are matched by id, never by row order; one without a score at every length is left
out of all and counted.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.format import count
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import content
from ridgeline.gate.evidence.readers.tabular import frame_of
from ridgeline.gate.evidence.samples import Floats, Texts

if TYPE_CHECKING:
    import polars as pl

Metric = Literal["auc", "loss"]
ROLES = ("id", "user", "label", "length", "score", "loss", "history", "slice")
MOST = 2**40  # events of a history
ALONE = 0  # the length of a system that has one
_USUAL = {
    "id": ("id", "example_id", "impression_id", "sample_id", "key"),
    "user": ("user", "user_id", "cluster"),
    "label": ("label", "click", "target", "y"),
    "length": ("length", "history_length", "seq_len", "max_len"),
    "score": ("score", "prediction", "pred"),
    "loss": ("loss", "log_loss", "nll"),
    "history": ("history", "events", "n_events"),
}


@dataclass(frozen=True, eq=False)
class Scores:
    """Rows of examples in the order of ``keys``. ``at`` maps a history length to the scores (or losses) under it.

    ``users``, ``labels`` (0 or 1), ``history`` (events that the user had) and ``slices`` are None where the file has no
    such column.
    """

    metric: Metric
    keys: Texts
    at: Mapping[int, Floats]
    users: Texts | None = None
    labels: Floats | None = None
    history: NDArray[np.int64] | None = None
    slices: Texts | None = None
    inputs: tuple[InputFile, ...] = ()
    lost: tuple[Loss, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def lengths(self) -> list[int]:
        """The lengths, ascending."""
        return sorted(self.at)


def read_scores(path: Path, metric: str = "", columns: Mapping[str, str] | None = None) -> Scores:
    """The scores of a file; ``metric`` is ``auc`` or ``loss``, by the columns that there are where it is empty.

    Raises `InputError` for roles, columns, ids, labels or numbers that are not there or not one each.
    """
    if not path.exists():
        raise InputError.expected("a table of scores", "no such file", where=str(path))
    held = content(path)
    frame, lost = frame_of(path, held)
    if frame.height == 0:
        raise InputError.expected("at least one row", "none", where=str(path))
    file = _File(path, frame, _places(frame.columns, columns or {}, path))
    chosen = file.metric(metric)
    wide = file.wide("score" if chosen == "auc" else "loss")
    found = _wide(file, chosen, wide) if wide else _long(file, chosen)
    return replace(found, inputs=(held.file,), lost=(*held.lost, *lost, *found.lost))


@dataclass(frozen=True, eq=False)
class _File:
    path: Path
    frame: "pl.DataFrame"
    places: Mapping[str, str]

    def metric(self, asked: str) -> Metric:
        """The metric asked for, or that of the columns."""
        if asked not in ("", "auc", "loss"):
            raise InputError.expected("auc or loss", asked, where="--metric")
        has_label = "label" in self.places
        if asked == "loss" or (not asked and not has_label and (self.wide("loss") or "loss" in self.places)):
            return "loss"
        if not has_label:
            hint = "--column label=NAME; losses need none: --metric loss"
            raise InputError.expected("a column of labels for AUC", self.names, where=str(self.path), hint=hint)
        return "auc"

    @property
    def names(self) -> str:
        return ", ".join(self.frame.columns)

    def wide(self, prefix: str) -> dict[int, str]:
        """Length -> column of ``score_64`` and its like; the stem is the one declared for the role."""
        stem = re.escape(self.places.get(prefix, prefix))
        found = [(re.fullmatch(rf"{stem}_(\d+)", name), name) for name in self.frame.columns]
        lengths = {int(match[1]): name for match, name in found if match}
        if 0 in lengths:
            raise InputError.expected("history lengths above zero", lengths[0], where=str(self.path))
        return lengths

    def texts(self, role: str) -> Texts | None:
        """A column as text, None where the file has none."""
        if role not in self.places:
            return None
        found: Texts = self.frame[self.places[role]].cast(str, strict=False).to_numpy().astype(object)
        return found

    def numbers(self, name: str) -> Floats:
        """A column of finite numbers."""
        series, where = self.frame[name], f"{self.path}, column {name}"
        if series.dtype.is_nested():
            raise InputError.expected("a column of numbers", str(series.dtype), where=where)
        cast = series.cast(float, strict=False)
        words = np.flatnonzero((series.is_not_null() & cast.is_null()).to_numpy())
        if len(words):
            raise InputError.expected("a number", series[int(words[0])], where=f"{where}, row {words[0] + 1}")
        found: Floats = cast.to_numpy().astype(np.float64)
        astray = np.flatnonzero(~np.isfinite(found))
        if len(astray):
            got = f"{'none' if series[int(astray[0])] is None else found[astray[0]]} in {count(len(astray), 'row')}"
            raise InputError.expected("finite numbers", got, where=f"{where}, row {astray[0] + 1}")
        return found


def _places(names: Sequence[str], declared: Mapping[str, str], path: Path) -> dict[str, str]:
    """The column of every role: as declared, else by its usual names."""
    found = {}
    for role, name in declared.items():
        if role not in ROLES:
            hint = did_you_mean(role, ROLES, "roles: " + ", ".join(ROLES))
            raise InputError.expected("a role of a column of scores", role, where="--column", hint=hint)
        if name not in names and role not in ("score", "loss"):  # those may be the stem of wide columns
            hint = did_you_mean(name, names, "columns: " + ", ".join(names))
            raise InputError.expected(f"a column for {role}", name, where=str(path), hint=hint)
        found[role] = name
    lower = {name.lower(): name for name in names}
    for role, usual in _USUAL.items():
        known = next((lower[name] for name in usual if name in lower), None)
        if role not in found and known is not None:
            found[role] = known
    if "id" not in found:
        hint = "declare it: --column id=NAME. Rows are never matched by their order"
        raise InputError.expected(
            "a column that says which example a row is", ", ".join(names), where=str(path), hint=hint
        )
    return found


def _wide(file: _File, metric: Metric, wide: Mapping[int, str]) -> Scores:
    keys, whole = _keys(file), np.ones(file.frame.height, dtype=np.bool_)
    _no_repeats(keys.tolist(), "", file.path)
    for name in wide.values():
        whole &= file.frame[name].is_not_null().to_numpy()
    kept = replace(file, frame=file.frame.filter(whole))
    at = {length: kept.numbers(name) for length, name in wide.items()}
    return _made(kept, metric, keys[whole], at, int((~whole).sum()))


def _long(file: _File, metric: Metric) -> Scores:
    name = file.places.get("score" if metric == "auc" else "loss")
    if name is None or name not in file.frame.columns:
        hint = "a column score (or loss) with a column length, or columns such as score_64 and score_256"
        raise InputError.expected(f"scores for {metric}", file.names, where=str(file.path), hint=hint)
    every = set(_keys(file).tolist())
    file = replace(file, frame=file.frame.filter(file.frame[name].is_not_null()))
    keys, values, lengths = _keys(file), file.numbers(name), _lengths(file)
    places = {
        int(length): _place(keys, np.flatnonzero(lengths == length), int(length), file.path)
        for length in np.unique(lengths)
    }
    whole = set.intersection(*(set(place) for place in places.values())) if places else set()
    names = [key for key in dict.fromkeys(keys.tolist()) if key in whole]
    if not names:
        raise InputError.expected("examples with a score at every length", "none", where=str(file.path))
    rows = {length: np.array([place[key] for key in names], dtype=np.intp) for length, place in places.items()}
    _same_about(file, list(rows.values()))
    first = replace(file, frame=file.frame[rows[max(rows)].tolist()])
    at = {length: values[found] for length, found in rows.items()}
    return _made(first, metric, _keys(first), at, len(every) - len(names))


def _keys(file: _File) -> Texts:
    found = file.texts("id")
    assert found is not None
    return found


def _made(file: _File, metric: Metric, keys: Texts, at: Mapping[int, Floats], incomplete: int) -> Scores:
    """The scores with what is known of their examples beside them."""
    if not len(keys):
        raise InputError.expected("examples with a score at every length", "none", where=str(file.path))
    labels = file.numbers(file.places["label"]) if metric == "auc" else None
    if labels is not None and not np.isin(labels, (0, 1)).all():
        wrong = float(labels[~np.isin(labels, (0, 1))][0])
        raise InputError.expected("labels of 0 or 1", wrong, where=f"{file.path}, column {file.places['label']}")
    history = None
    if "history" in file.places:
        events, where = file.numbers(file.places["history"]), f"{file.path}, column {file.places['history']}"
        wrong = (events < 0) | (events > MOST) | (events != np.floor(events))
        if wrong.any():
            raise InputError.expected("whole histories of zero events or more", float(events[wrong][0]), where=where)
        history = events.astype(np.int64)
    what = "examples without a score at every length, left out"
    lost = (Loss(what, incomplete, file.path.name),) if incomplete else ()
    return Scores(metric, keys, at, file.texts("user"), labels, history, file.texts("slice"), lost=lost)


def _lengths(file: _File) -> NDArray[np.int64]:
    """The column of lengths; one that is absent is one system alone."""
    if "length" not in file.places:
        return np.full(file.frame.height, ALONE, dtype=np.int64)
    name = file.places["length"]
    found = file.numbers(name)
    wrong = np.flatnonzero((found <= 0) | (found > MOST) | (found != np.floor(found)))
    if len(wrong):
        where = f"{file.path}, column {name}, row {wrong[0] + 1}"
        raise InputError.expected("whole history lengths above zero", float(found[wrong[0]]), where=where)
    return found.astype(np.int64)


def _place(keys: Texts, rows: NDArray[np.intp], length: int, path: Path) -> dict[str, int]:
    names = keys[rows].tolist()
    _no_repeats(names, f" at length {length}" if length != ALONE else "", path)
    return dict(zip(names, rows.tolist(), strict=True))


def _no_repeats(keys: Sequence[str | None], where: str, path: Path) -> None:
    if None in keys:
        raise InputError.expected("an id in every row", "none", where=f"{path}, row {keys.index(None) + 1}")
    twice = next((key for key, number in Counter(keys).items() if number > 1), None)
    if twice is not None:
        hint = "rows that share an id need another length, or more columns that make the id"
        raise InputError.expected(f"each id once{where}", f"{twice!r} twice", where=str(path), hint=hint)


def _same_about(file: _File, rows: Sequence[NDArray[np.intp]]) -> None:
    """Raise where an example's label, user or history differs between lengths: it is not the same example."""
    for role in ("label", "user", "history", "slice"):
        column = file.texts(role)
        for at in rows[1:] if column is not None else ():
            assert column is not None
            differ = np.flatnonzero(column[at] != column[rows[0]])
            if len(differ):
                got = f"{column[rows[0][differ[0]]]} and {column[at[differ[0]]]} of one id"
                raise InputError.expected(f"one {role} of an example at every length", got, where=str(file.path))
