"""The table for other tools: Polars and Arrow, with names in place of numbers."""

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ridgeline.core.errors import MissingExtraError
from ridgeline.trace.events import COLUMNS, NONE, Category, Events, Ints, Kind

if TYPE_CHECKING:
    import polars as pl


def to_polars(events: Events) -> "pl.DataFrame":
    """One row per event: times in integer ns (``ts`` relative to ``info.base_ns``), ``name``, ``category`` and ``kind``
    as categories, the other columns as integers, null where not known. Needs Polars.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtraError("polars", "tables") from error
    columns: dict[str, Any] = {}
    for column in COLUMNS:
        values: Ints = getattr(events, column)
        if column in _TEXTS:
            texts = _TEXTS[column] or events.names
            used, place = np.unique(values, return_inverse=True)  # only what occurs: names are many
            kinds = pl.Series([texts[i] if i >= 0 else None for i in used.tolist()], dtype=pl.String)
            columns[column] = kinds.gather(place).cast(pl.Categorical)
        else:
            numbers = pl.Series(values)
            columns[column] = numbers if column in ("ts", "dur") else numbers.set(numbers == NONE, None)
    return pl.DataFrame(columns)


def to_arrow(events: Events) -> Any:
    """The same as a ``pyarrow.Table``. Needs Polars and PyArrow."""
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "tables") from error
    return to_polars(events).to_arrow()


_TEXTS: dict[str, tuple[str, ...]] = {
    "name": (),
    "category": tuple(c.name.lower() for c in Category),
    "kind": tuple(k.name.lower() for k in Kind),
}
