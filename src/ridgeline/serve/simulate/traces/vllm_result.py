"""A detailed result of ``vllm bench serve``: lists input_lens and output_lens, and start_times where it has them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.requests import Floats, Reader, Rows
from ridgeline.serve.simulate.traffic.tabular import number

_KEYS = (b'"input_lens"', b'"output_lens"')


def _read(path: Path) -> Rows:
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise InputError.expected("one whole JSON object", str(error), where=str(path)) from None
    columns = {name: data.get(name) for name in ("input_lens", "output_lens", "start_times")}
    given, made, starts = (_numbers(values) for values in columns.values())
    if len(given) != len(made) or (len(starts) and len(starts) != len(given)):
        sizes = f"{len(given)}, {len(made)} and {len(starts)}"
        raise InputError.expected("lists of equal length", sizes, where=f"{path}: $.input_lens")
    line = np.arange(1, len(given) + 1)
    if not len(starts):
        return Rows("vLLM benchmark", None, given, made, line, word="entry")
    order = np.argsort(starts, kind="stable")  # the file keeps the order of submission, its clock has no origin
    first = float(np.nanmin(starts)) if np.isfinite(starts).any() else 0.0
    return Rows("vLLM benchmark", starts[order] - first, given[order], made[order], line[order], word="entry")


def _numbers(values: Any) -> Floats:
    return np.array([number(value) for value in values] if isinstance(values, list) else [], dtype=np.float64)


READER = Reader(
    "vLLM benchmark",
    "JSON with the lists input_lens, output_lens, start_times",
    lambda head, _: head.lstrip()[:1] == b"{" and all(key in head for key in _KEYS),
    _read,
)
