"""Parquet with arrival_s, input_tokens, output_tokens, and hash_ids where prompts share blocks. Needs Polars."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.serve.simulate.traffic.requests import Floats, Reader, Rows
from ridgeline.serve.simulate.traffic.tabular import hashes

_MAGIC = b"PAR1"
_NEEDED = ("input_tokens", "output_tokens")


def _read(path: Path) -> Rows:
    if find_spec("polars") is None:
        raise MissingExtraError("polars", "tables")
    import polars as pl

    try:
        columns = pl.read_parquet_schema(path)
        kept = [name for name in ("arrival_s", *_NEEDED, "hash_ids") if name in columns]
        table = pl.read_parquet(path, columns=kept)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError.expected("a whole Parquet file", str(error), where=str(path)) from None
    missing = [name for name in _NEEDED if name not in kept]
    if missing:
        said = ", ".join(columns) or "no columns"
        raise InputError.expected(f"the column {missing[0]}", said, where=str(path))
    blocks = [hashes(cell) for cell in table["hash_ids"].to_list()] if "hash_ids" in kept else None
    return Rows(
        "Parquet",
        _numbers(table["arrival_s"]) if "arrival_s" in kept else None,
        _numbers(table["input_tokens"]),
        _numbers(table["output_tokens"]),
        np.arange(1, len(table) + 1),
        word="row",
        blocks=blocks,
    )


def _numbers(column: Any) -> Floats:
    """A column as floats; NaN where a cell is no number."""
    import polars as pl

    return np.asarray(column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy(), dtype=np.float64)


READER = Reader(
    "Parquet", "arrival_s, input_tokens, output_tokens, hash_ids", lambda head, _: head.startswith(_MAGIC), _read
)
