"""What an agent did: tool, canonical arguments, egress destinations; never what it said.

Keys are in order, whole floats are integers, and lists that are sets (recipients) are sorted without duplicates, so
that two spellings of one action have one hash. A list is a set only where the policy says so or its argument is an
egress role: the order of the items to exchange means something, the order of recipients does not.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ridgeline.core import figures
from ridgeline.core.catalog import DATA
from ridgeline.gate.evidence.actions import Call, calls
from ridgeline.gate.evidence.files import digest
from ridgeline.gate.traces.egress import Egress, destinations
from ridgeline.gate.traces.names import inside, own, plain, role_of

UNREADABLE = ""  # the name under which arguments that are no object stay as text


@dataclass(frozen=True)
class Action:
    """One call: ``arguments`` are canonical, ``egress`` is a set in order."""

    tool: str
    arguments: Mapping[str, Any]
    egress: tuple[Egress, ...] = ()

    @property
    def text(self) -> str:
        """Tool and arguments as text; equal for equal actions."""
        return json.dumps([self.tool, self.arguments], sort_keys=True, default=str, ensure_ascii=False)

    @property
    def readable(self) -> bool:
        """Whether the arguments were an object."""
        return UNREADABLE not in self.arguments


@dataclass(frozen=True)
class Actions:
    """The actions of a trace, in order. All that a policy sees."""

    items: tuple[Action, ...]

    @property
    def hash(self) -> str:
        """Equal for traces that did the same."""
        return digest("actions", [item.text for item in self.items])

    def __len__(self) -> int:
        return len(self.items)


@lru_cache(maxsize=1)
def _file() -> Mapping[str, Any]:
    return figures.read(DATA / "gate_traces.toml")


def egress_roles() -> tuple[str, ...]:
    """Arguments by which known tools send something out: ``tool.argument``."""
    found = _file()["egress"]
    return (*found["roles"], *found["also"])


def wrapper_names() -> tuple[str, ...]:
    """Names under which loggers record every call, so that the tool cannot be seen."""
    return tuple(_file()["wrappers"]["names"])


def rationale_words() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Words of alarm and of calm, for the monitor that reads what an agent says."""
    found = _file()["rationale"]
    return tuple(found["alarm"]), tuple(found["calm"])


def actions(messages: Sequence[Mapping[str, Any]], roles: Collection[str] = (), sets: Collection[str] = ()) -> Actions:
    """The actions of a trace. ``roles`` and ``sets`` name ``tool.argument`` in any spelling; roles are sets."""
    known = frozenset(map(role_of, roles)), frozenset(map(role_of, sets))
    return Actions(tuple(_action(call, *known) for call in calls(messages)))


def action(call: Call, roles: Collection[str] = (), sets: Collection[str] = ()) -> Action:
    """One call in canonical form."""
    return _action(call, frozenset(map(role_of, roles)), frozenset(map(role_of, sets)))


def _action(call: Call, roles: frozenset[str], sets: frozenset[str]) -> Action:
    """``egress`` is found wherever the argument stands: nested, in JSON text, or under another case."""
    tool, found = own(call.name), {}
    for name, value in call.arguments.items():
        role = f"{tool}.{plain(str(name))}"
        found[str(name)] = canonical(value, unordered=role in roles or role in sets)
    sending = {role.rpartition(".")[2] for role in roles if role.rpartition(".")[0] == tool}
    egress = {
        Egress(f"{tool}.{name}", place)
        for name, value in (inside(call.arguments, sending) if sending else ())
        if value is not None
        for place in destinations(canonical(value), name)
    }
    ordered = sorted(egress, key=lambda item: (item.role, item.destination))
    return Action(call.name, dict(sorted(found.items())), tuple(ordered))


def canonical(value: Any, *, unordered: bool = False) -> Any:
    """A JSON value with one spelling: keys in order, whole floats as integers, a set's items in order and once."""
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, set | frozenset):
        value, unordered = list(value), True
    if isinstance(value, list | tuple):
        items = [canonical(item) for item in value]
        return _once(items) if unordered else items
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _once(items: list[Any]) -> list[Any]:
    found = {json.dumps(item, sort_keys=True, default=str): item for item in items}
    return [found[text] for text in sorted(found)]
