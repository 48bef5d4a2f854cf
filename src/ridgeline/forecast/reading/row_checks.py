"""Which rows of a ladder can be used: each check drops rows and says so, or refuses the file at the first of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.points import Array, Points
from ridgeline.forecast.reading import cells, headers
from ridgeline.forecast.reading.raw_tables import RawTable

MEANING = {"N": "N (parameters)", "D": "D (tokens)", "C": "C (FLOP)", "loss": "the loss (nats per token)"}
_POSITIVE = ("N", "D", "C", "U", "lr", "batch")
LARGEST = 10.0**40  # beyond any run; products of a few such numbers are still numbers
_COUNTERS = ("", "index", "unnamed_0", "row")  # what a data frame adds when it is written
_FLAGS = ("outlier", "is_outlier", "excluded", "exclude")


def flagged(table: RawTable, lost: list[str]) -> NDArray[np.bool_]:
    """Not the rows that a column ``excluded...`` or ``outlier`` marks."""
    keep = np.ones(len(table.lines), bool)
    for name, values in table.columns.items():
        key = headers.key(name)
        if not (key in _FLAGS or key.startswith("excluded")):
            continue
        marked = cells.truths(values)
        if marked is not None:
            lost += [f"{table.place(i)}: {name}" for i in np.flatnonzero(marked & keep)]
            keep &= ~marked
    return keep


def usable(table: RawTable, found: Mapping[str, Array], lost: list[str]) -> NDArray[np.bool_]:
    """Not the rows without a loss, nor those before the first token."""
    keep = np.ones(len(table.lines), bool)
    if "loss" in found:
        loss = found["loss"]
        lost += [f"{table.place(i)}: the loss is {loss[i]:g}" for i in np.flatnonzero(~np.isfinite(loss))]
        keep &= np.isfinite(loss)
    if "D" in found:
        before = keep & (found["D"] == 0)
        lost += [f"{table.place(i)}: no tokens yet" for i in np.flatnonzero(before)]
        keep &= ~before
    return keep


def signs(table: RawTable, found: Mapping[str, Array], keep: NDArray[np.bool_]) -> None:
    """Raise `InputError` with the first row that holds a number at or below zero, an absurd one, or N in billions."""
    for name in (*_POSITIVE, "loss"):
        if name not in found:
            continue
        wrong = np.flatnonzero(keep & (found[name] <= 0))
        if len(wrong):
            first = int(wrong[0])
            overflow = name == "C" and found[name][first] < 0
            hint = "6*N*D in 64-bit integers wraps above 9.2e18; leave the column out" if overflow else ""
            raise InputError.expected(f"{MEANING.get(name, name)} above zero", float(found[name][first]),
                                      where=table.place(first), hint=hint)  # fmt: skip
        absurd = np.flatnonzero(keep & np.isfinite(found[name]) & (found[name] > LARGEST))
        if len(absurd):
            first = int(absurd[0])
            raise InputError.expected(f"{MEANING.get(name, name)} up to {LARGEST:g}", float(found[name][first]),
                                      where=table.place(first), hint="check the exponent and the unit")  # fmt: skip
    small = np.flatnonzero(keep & (found["N"] < 1)) if "N" in found else np.empty(0, int)
    if len(small):
        first = int(small[0])
        raise InputError.expected("N in parameters", float(found["N"][first]), where=table.place(first),
                                  hint='for a column in billions: scale={"N": 1e9}')  # fmt: skip


def finite(
    table: RawTable,
    found: Mapping[str, Array],
    keep: NDArray[np.bool_],
    names: Sequence[str],
    lost: list[str],
) -> NDArray[np.bool_]:
    """Not the rows where a needed column is absent or infinite."""
    good = np.ones(len(table.lines), bool)
    for name in dict.fromkeys(names):
        if name in found:
            bad = good & keep & ~np.isfinite(found[name])
            lost += [f"{table.place(i)}: {name} is absent or infinite" for i in np.flatnonzero(bad)]
            good &= ~bad
    return good


def first(table: RawTable, points: Points, keep: NDArray[np.bool_], lost: list[str]) -> NDArray[np.bool_]:
    """Not the second copy of a run: equal in every number and in every label."""
    numbers = [values for name, values in points.columns.items() if headers.key(name) not in _COUNTERS]
    seen: dict[tuple[Any, ...], int] = {}
    good = np.ones(len(table.lines), bool)
    for i in np.flatnonzero(keep):
        run = (*(repr(float(values[i])) for values in numbers), *(str(v[i]) for v in points.labels.values()))
        first = seen.setdefault(run, int(i))
        if first != i:
            good[i] = False
            lost.append(f"{table.place(i)}: the same run as {table.place(first)}")
    return good
