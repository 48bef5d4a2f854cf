"""Plug-ins: one file and one test, no list to edit.

A kind of plug-in lives in a folder of each room (``rules``, ``configs``, ...) and in the entry-point group
``ridgeline.<kind>``. Whatever is found there meets the contract suite under ``tests/contract``.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Protocol, TypeVar

import ridgeline.core
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.finding import Rule, RuleConfig

T = TypeVar("T")


class Named(Protocol):
    """A plug-in that people call by a name."""

    @property
    def name(self) -> str:
        """What people type."""


N = TypeVar("N", bound=Named)


def modules(package: str) -> Iterator[ModuleType]:
    """Every module of a plug-in folder, imported, in name order."""
    folder = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(folder.__path__), key=lambda i: i.name):
        yield importlib.import_module(f"{package}.{info.name}")


def load(package: str, wanted: type[T], *, kind: str) -> list[T]:
    """All objects of type ``wanted`` in the folder's modules and in the entry-point group ``ridgeline.<kind>``."""
    found = [value for module in modules(package) for value in vars(module).values() if isinstance(value, wanted)]
    for entry in entry_points(group=f"ridgeline.{kind}"):
        value = entry.load()
        if not isinstance(value, wanted):
            raise InputError.expected(f"a {wanted.__name__}", type(value).__name__, where=f"entry point {entry.name}")
        found.append(value)
    return list(dict.fromkeys(found))


def by_name(package: str, wanted: type[N], *, kind: str) -> dict[str, N]:
    """What `load` finds, by name. Raises `InputError` where two share one."""
    found: dict[str, N] = {}
    for item in load(package, wanted, kind=kind):
        if found.setdefault(item.name, item) is not item:
            raise InputError.expected(f"one {kind.replace('_', ' ')} per name", item.name, where=package)
    return dict(sorted(found.items()))


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """Every rule of every room, by code. Raises `InputError` where two share a code."""
    root = ridgeline.core.__path__[0]
    rooms = [i.name for i in pkgutil.iter_modules([root.rpartition("core")[0]]) if i.ispkg]
    found: dict[str, Rule] = {}
    for room in rooms:
        for item in _of_room(room):
            if found.setdefault(item.code, item) is not item:
                raise InputError.expected("one rule per code", item.code, where=f"ridgeline.{room}.rules")
    return dict(sorted(found.items()))


def rules_of(room: str, config: RuleConfig | None = None) -> list[Rule]:
    """The rules that a room's command runs: its own alone, since the modules of all rooms take half a second to import;
    every room's where ``config`` sets a threshold, whose code must be known somewhere.
    """
    return list(rules().values()) if config is not None and config.thresholds else list(_of_room(room))


@lru_cache(maxsize=16)
def _of_room(room: str) -> tuple[Rule, ...]:
    if importlib.util.find_spec(f"ridgeline.{room}.rules") is None:
        return ()
    return tuple(load(f"ridgeline.{room}.rules", Rule, kind="rule"))


def find_rule(code: str) -> Rule:
    """The rule of that code, or an `InputError` with the close matches."""
    known = rules()
    if code.upper() not in known:
        hint = did_you_mean(code, known, "run `ridgeline rule` for the list")
        raise InputError.expected("a rule code", code, where="CODE", hint=hint)
    return known[code.upper()]
