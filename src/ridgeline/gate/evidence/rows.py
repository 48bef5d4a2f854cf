"""Rows of a self-describing log, gathered into `Samples`: keys with occurrences, scores with their gaps."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.reader import ROLES, Wanted
from ridgeline.gate.evidence.samples import Samples, Texts, higher_after_renaming


@dataclass
class Row:
    """One example: what it is told by, its scores, and what it is grouped by. A None score: there is none."""

    key: tuple[Any, ...]
    scores: Mapping[str, float | None]
    failed: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    prompt: str | None = None
    output: str | None = None


@dataclass(frozen=True)
class Source:
    """Where rows come from. ``measured_only`` names metrics for which a failed row is no wrong answer,
    ``directions`` whether higher is better where the log says it.
    """

    run: str
    inputs: tuple[InputFile, ...]
    lost: tuple[Loss, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    measured_only: tuple[str, ...] = ()
    directions: Mapping[str, bool] = field(default_factory=dict)


def gathered(rows: list[Row], source: Source, wanted: Wanted) -> Samples:
    """Columns of rows. Equal keys are told apart by their occurrence.

    Raises `InputError` where there is no row, or a declared column is not in the log.
    """
    if not rows:
        raise InputError.expected("at least one example", "none", where=source.run)
    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    labels = list(dict.fromkeys(name for row in rows for name in row.labels))
    scores = {n: np.array([_number(row.scores.get(n)) for row in rows]) for n in names}
    found = Samples(
        source.run,
        _keys(rows),
        {name: column for name, column in scores.items() if not np.isnan(column).all()},
        np.array([row.failed for row in rows], dtype=np.bool_),
        {name: texts([row.labels.get(name, "") for row in rows]) for name in labels},
        _all_or_none([row.prompt for row in rows]),
        _all_or_none([row.output for row in rows]),
        source.settings,
        source.lost,
        source.inputs,
        source.measured_only,
        source.directions,
    )
    if not found.scores:
        lost = (*found.lost, Loss("examples without a score: the log was never scored", len(rows), source.run))
        found = replace(found, lost=lost)
    return _declared(found, wanted)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _keys(rows: list[Row]) -> Texts:
    """One text a row; the occurrence is counted among equal keys, in the order of the log."""
    seen: Counter[str] = Counter()
    keys = []
    for row in rows:
        text = "|".join(map(str, row.key))
        keys.append(f"{text}|{seen[text]}")
        seen[text] += 1
    return texts(keys)


def texts(values: Sequence[Any]) -> Texts:
    """Values as an array of objects, one each."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _all_or_none(values: list[str | None]) -> Texts | None:
    return None if all(value is None for value in values) else texts([value or "" for value in values])


def _declared(found: Samples, wanted: Wanted) -> Samples:
    """Declared columns: a slice or cluster by a label's name, a metric by another's; only the metrics asked for."""
    labels, scores, directions = dict(found.labels), dict(found.scores), dict(found.directions)
    columns: dict[str, str] = {}
    for role, name in wanted.columns.items():
        if role == "filter":
            continue
        pool: Mapping[str, Any] = found.labels if role in ROLES else found.scores
        if name not in pool or (role in ROLES and role not in ("slice", "cluster")):
            known = did_you_mean(name, pool, "the log has: " + (", ".join(pool) or "none"))
            raise InputError.expected(f"a column for {role}", name, where=found.run, hint=known)
        if role in ROLES:
            labels[role] = found.labels[name]
        else:
            scores[role] = scores.pop(name)
            said = found.directions.get(name)
            directions[role] = higher_after_renaming(role, name) if said is None else said
            columns[role] = name
    kept = {name: column for name, column in scores.items() if wanted.keeps(name) or name in wanted.columns}
    measured = (*found.measured_only, *(role for role, n in wanted.columns.items() if n in found.measured_only))
    found = replace(found, labels=labels, scores=kept or scores, directions=directions)
    return replace(found, columns=columns, measured_only=measured)
