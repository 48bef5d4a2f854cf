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
from typing import TypeVar

import ridgeline.core
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.finding import Rule

T = TypeVar("T")


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


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """Every rule of every room, by code. Raises `InputError` where two share a code."""
    root = ridgeline.core.__path__[0]
    rooms = [i.name for i in pkgutil.iter_modules([root.rpartition("core")[0]]) if i.ispkg]
    found: dict[str, Rule] = {}
    for room in rooms:
        if importlib.util.find_spec(f"ridgeline.{room}.rules") is None:
            continue
        for item in load(f"ridgeline.{room}.rules", Rule, kind="rule"):
            if found.setdefault(item.code, item) is not item:
                raise InputError.expected("one rule per code", item.code, where=f"ridgeline.{room}.rules")
    return dict(sorted(found.items()))


def find_rule(code: str) -> Rule:
    """The rule of that code, or an `InputError` with the close matches."""
    known = rules()
    if code.upper() not in known:
        hint = did_you_mean(code, known, "run `ridgeline rule` for the list")
        raise InputError.expected("a rule code", code, where="CODE", hint=hint)
    return known[code.upper()]
