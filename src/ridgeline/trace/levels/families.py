"""What operations are for, which host operators repeat forward work, and which device a trace names: rules as data."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ridgeline.core import catalog
from ridgeline.core.device import Device
from ridgeline.trace.events import Events, Mask

OTHER = "other"
LONGEST = 500  # characters of a name that are looked at: names from traces are hostile


@dataclass(frozen=True)
class Family:
    """A family by its key: patterns of operators and of kernels."""

    key: str
    label: str
    ops: re.Pattern[str]
    kernels: re.Pattern[str]


@dataclass(frozen=True)
class RecomputeRules:
    """How recomputation shows: operators, residual additions, Python frames, nodes of reentrant checkpoints.

    ``opaque`` nodes run compiled graphs, whose own recomputation does not show.
    """

    forward_only: re.Pattern[str]
    residual: re.Pattern[str]
    frames: re.Pattern[str]
    reentrant: re.Pattern[str]
    opaque: re.Pattern[str]


def family_of(op: str, kernel: str) -> str:
    """The family's key by the operator's name, else by the kernel's; ``other`` where no rule matches."""
    op, kernel = op[:LONGEST], kernel[:LONGEST]
    for family in families():
        if op and family.ops.search(op):
            return family.key
    return next((family.key for family in families() if family.kernels.search(kernel)), OTHER)


def labels() -> dict[str, str]:
    """What people call each family."""
    return {family.key: family.label for family in families()} | {OTHER: "other"}


@cache
def families() -> tuple[Family, ...]:
    """The families in the order in which they claim operations."""
    return tuple(Family(t["key"], t["label"], _any(t["ops"]), _any(t["kernels"])) for t in _read()["family"])


@cache
def recompute_rules() -> RecomputeRules:
    """The rules of recomputation."""
    table = _read()["recompute"]
    return RecomputeRules(*(_any(table[key]) for key in ("forward_only", "residual", "frames", "reentrant", "opaque")))


def named(events: Events, pattern: re.Pattern[str]) -> Mask:
    """The events whose name the pattern is found in: each distinct name is looked at once."""
    wanted = np.array([bool(pattern.search(name[:LONGEST])) for name in events.names], dtype=np.bool_)
    return wanted[events.name] if len(wanted) else np.zeros(len(events), np.bool_)


def device_named(name: str) -> Device | None:
    """The device of the catalog that a driver calls so; None where no rule of ``names/device_names.toml`` fits."""
    text = (catalog.DATA / "names" / "device_names.toml").read_text(encoding="utf-8")
    for pattern, slug in tomllib.loads(text)["names"]:
        if re.search(pattern, name[:LONGEST], re.IGNORECASE):
            return catalog.device(slug)
    return None


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads((catalog.DATA / "names" / "op_families.toml").read_text(encoding="utf-8"))
