"""One name for a collective and its element type, whoever wrote it, by ``core/data/names/collective_names.toml``."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ridgeline.core import catalog


@cache
def _tables() -> tuple[dict[str, re.Pattern[str]], dict[str, str], dict[str, int]]:
    text = files("ridgeline.core.data").joinpath("names").joinpath("collective_names.toml").read_text("utf-8")
    data = tomllib.loads(text)
    aliases = {alias: name for name, others in data["dtype"].items() for alias in others}
    return {kind: re.compile(pattern) for kind, pattern in data["kind"].items()}, aliases, data["width"]


def _plain(text: object) -> str:
    return re.sub(r"[\s_.:-]+", "", str(text)).lower()


def kind_of(meta: Mapping[str, Any], kernel: str) -> str:
    """``all_gather``, ``all_reduce``, ...: from the event's details, else from the kernel's name, else "other"."""
    for text in (meta.get("collective"), kernel.partition("(")[0], kernel):
        if not text:
            continue
        plain = _plain(text)
        for kind, pattern in _tables()[0].items():
            if pattern.search(plain):
                return kind
    return "other"


def dtype_of(meta: Mapping[str, Any], kernel: str) -> str:
    """The element type by the catalog's name where it has one; "" if nothing says."""
    _, aliases, widths = _tables()
    if meta.get("dtype"):
        plain = _plain(meta["dtype"])
        return str(aliases.get(plain, plain))
    for word in re.findall(r"[a-z]+\d*(?:e\d+m\d+)?", kernel.partition("(")[0].lower().replace("ncclkernel", "")):
        if word in aliases or word in widths:
            return str(aliases.get(word, word))
    return ""


def element_bytes(dtype: str) -> float | None:
    """Bytes of an element; None for a type that is not known."""
    _, _, widths = _tables()
    if dtype in widths:
        return float(widths[dtype])
    found = catalog.constant(f"dtypes.{dtype}", missing_ok=True) if dtype else None
    return None if found is None else float(found.base)


def size_of(kind: str, meta: Mapping[str, Any], dtype: str) -> int | None:
    """Bytes of the whole array as `ridgeline.arithmetic.collectives` counts them; None where shapes are missing."""
    element = element_bytes(dtype)
    inside, outside = meta.get("in_numel"), meta.get("out_numel")
    if element is None or not isinstance(inside, int) or not isinstance(outside, int):
        return None
    numel = {"all_gather": outside, "gather": outside, "reduce_scatter": inside, "scatter": inside}
    return int(numel.get(kind, max(inside, outside)) * element)
