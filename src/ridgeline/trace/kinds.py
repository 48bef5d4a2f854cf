"""What device work is for: ordered rules over kernel names, from ``core/data/names/kernels.toml`` and the user's table.

Each distinct name is classified once. A name that no rule knows is `Kind.UNCLASSIFIED`: its time is shown, not guessed.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ridgeline.core.catalog import DATA
from ridgeline.core.errors import InputError
from ridgeline.trace.events import NONE, Category, Events, Ints, Kind

_COPY = {"htod": Kind.H2D, "dtoh": Kind.D2H, "ptop": Kind.P2P, "dtod": Kind.D2D}
_COPY_TEXT = re.compile(r"htod|dtoh|ptop|dtod|host ?to ?device|device ?to ?host|peer|device ?to ?device|htoh", re.I)
_NOISE = re.compile(r"^void |\(anonymous namespace\)::|<unnamed>::")
_OWN = re.compile(r"[^<(]*")
_MAX_LENGTH = 4096  # characters of a name that are looked at
_MAX_NAMES = 100_000


@dataclass(frozen=True)
class KernelRule:
    """Names that ``pattern`` finds (anywhere, case-insensitive) are of ``kind`` and, in tables, of ``family``.

    ``own``: look at the kernel's own function name only, not at its template arguments and parameters.
    """

    pattern: str
    kind: Kind
    family: str = ""
    own: bool = False

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise InputError.expected("a regular expression", self.pattern, where="[trace.kernels]") from error


@lru_cache(maxsize=1)
def house_rules() -> tuple[KernelRule, ...]:
    """The rules that come with Ridgeline, in order."""
    table = tomllib.loads((DATA / "names" / "kernels.toml").read_text("utf-8"))
    return tuple(
        KernelRule(pattern, Kind[rule["kind"].upper()], rule["family"], own)
        for rule in table["rule"]
        for own, key in ((False, "names"), (True, "own"))
        for pattern in rule.get(key, ())
    )


def user_rules(table: Mapping[str, str]) -> tuple[KernelRule, ...]:
    """Rules from ``[trace.kernels]`` of ridgeline.toml: a regular expression -> a kind, or ``kind:family``."""
    found = []
    for pattern, text in table.items():
        kind, _, family = text.partition(":")
        if kind.strip().upper() not in Kind.__members__:
            known = ", ".join(k.name.lower() for k in Kind)
            raise InputError.expected("a kind of kernel", text, where=f"[trace.kernels] {pattern!r}", hint=known)
        found.append(KernelRule(pattern, Kind[kind.strip().upper()], family.strip()))
    return tuple(found)


def own_name(name: str) -> str:
    """The function's name: ``void at::native::reduce_kernel<512, 1>(int)`` -> ``at::native::reduce_kernel``."""
    return _OWN.match(_NOISE.sub("", name))[0].rstrip()  # type: ignore[index]  # matches the empty string at least


class _Matcher:
    """Rules in order: the first that matches a name decides; each name is looked at once."""

    def __init__(self, rules: Sequence[KernelRule]) -> None:
        self._rules = [(re.compile(rule.pattern, re.IGNORECASE), rule) for rule in rules]
        self._known: dict[str, tuple[Kind, str]] = {}

    def __call__(self, name: str) -> tuple[Kind, str]:
        if name not in self._known:
            if len(self._known) > _MAX_NAMES:
                self._known.clear()
            whole, own = name[:_MAX_LENGTH], own_name(name[:_MAX_LENGTH])
            hit = next((rule for pattern, rule in self._rules if pattern.search(own if rule.own else whole)), None)
            self._known[name] = (hit.kind, hit.family) if hit else (Kind.UNCLASSIFIED, "unclassified")
        return self._known[name]


@lru_cache(maxsize=8)
def _matcher(rules: tuple[KernelRule, ...]) -> _Matcher:
    return _Matcher((*rules, *house_rules()))


def kind_of(name: str, rules: Sequence[KernelRule] = ()) -> tuple[Kind, str]:
    """Kind and family of one kernel name; the user's rules come before ours."""
    return _matcher(tuple(rules))(name)


def classify(events: Events, rules: Sequence[KernelRule] = ()) -> Events:
    """The table with ``kind`` set on all device work (what a reader has already decided stays)."""
    kind = events.kind.copy()
    todo = kind == Kind.NONE
    kernels = np.flatnonzero(todo & (events.category == Category.KERNEL))
    used, inverse = np.unique(events.name[kernels], return_inverse=True)
    decided = np.array([kind_of(events.names[i], rules)[0] for i in used.tolist()], np.int64)
    if len(kernels):
        kind[kernels] = decided[inverse]
    kind[todo & (events.category == Category.MEMSET)] = Kind.MEMSET
    kind[todo & (events.category == Category.DEVICE_SYNC)] = Kind.SYNC
    copies = np.flatnonzero(todo & (events.category == Category.MEMCPY))
    kind[copies] = _copy_kinds(events, copies)
    return events.with_columns(kind=kind)


def _copy_kinds(events: Events, rows: Ints) -> Ints:
    """Direction of copies, from their details or their name."""
    pairs = np.stack([events.name[rows], events.meta[rows]], axis=1)
    used, inverse = np.unique(pairs, axis=0, return_inverse=True)
    found = [_direction(events.names[n], events.metas[m] if m != NONE else {}) for n, m in used.tolist()]
    return np.array(found, np.int64)[inverse.reshape(-1)] if len(rows) else np.empty(0, np.int64)


def _direction(name: str, meta: Mapping[str, Any]) -> int:
    for text in (name, str(meta.get("copy", ""))):
        if match := _COPY_TEXT.search(text):
            short = match.group(0).lower().replace(" ", "").replace("host", "h").replace("device", "d")
            return int(_COPY.get({"peer": "ptop"}.get(short, short), Kind.UNCLASSIFIED))
    return int(Kind.UNCLASSIFIED)
