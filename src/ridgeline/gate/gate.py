"""A gate: its name, and what it protects against. One file of ``gates`` each exports one as ``GATE``."""

from dataclasses import dataclass

from ridgeline.core import plugins
from ridgeline.core.errors import InputError, did_you_mean

PACKAGE = "ridgeline.gate.gates"


@dataclass(frozen=True)
class Gate:
    """``name`` is the word after ``ridgeline gate``; ``protects`` one sentence that a report opens with."""

    name: str
    title: str
    protects: str


def gates() -> dict[str, Gate]:
    """Every gate by its name. Raises `InputError` where two share one."""
    return plugins.by_name(PACKAGE, Gate, kind="gate")


def find_gate(name: str) -> Gate:
    """The gate of that name. Raises `InputError` with the close matches."""
    known = gates()
    if name not in known:
        raise InputError.expected("a gate", name, where="the gate", hint=did_you_mean(name, known, ", ".join(known)))
    return known[name]
