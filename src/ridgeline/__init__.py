"""Ridgeline: the workbench of people who lead large-model pre-training.

The front door: every public name, one by one, loaded when it is first used. Inside the package, modules
import each other by their full path and never from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgeline.core.case import Case, Chart, Column, InputFile, Section, Table
    from ridgeline.core.errors import (
        InfeasibleError,
        InputError,
        MissingExtraError,
        NotEnoughDataError,
        RidgelineError,
        UnknownDeviceError,
    )
    from ridgeline.core.executor import pmap
    from ridgeline.core.finding import Cost, Finding, Rule, RuleConfig, Verdict, rule, run_rules
    from ridgeline.core.quantity import Quantity, Source, derive, draws, given, leaf

__all__ = [
    "Case",
    "Chart",
    "Column",
    "Cost",
    "Finding",
    "InfeasibleError",
    "InputError",
    "InputFile",
    "MissingExtraError",
    "NotEnoughDataError",
    "Quantity",
    "RidgelineError",
    "Rule",
    "RuleConfig",
    "Section",
    "Source",
    "Table",
    "UnknownDeviceError",
    "Verdict",
    "derive",
    "draws",
    "given",
    "leaf",
    "pmap",
    "rule",
    "run_rules",
]

_HOMES = {
    "case": ("Case", "Chart", "Column", "InputFile", "Section", "Table"),
    "errors": (
        "InfeasibleError",
        "InputError",
        "MissingExtraError",
        "NotEnoughDataError",
        "RidgelineError",
        "UnknownDeviceError",
    ),
    "executor": ("pmap",),
    "finding": ("Cost", "Finding", "Rule", "RuleConfig", "Verdict", "rule", "run_rules"),
    "quantity": ("Quantity", "Source", "derive", "draws", "given", "leaf"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"ridgeline.core.{home}"), name)
    raise AttributeError(f"module 'ridgeline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
