"""Tool calls of agents in one form, whoever wrote them.

One format writes ``arguments`` as JSON text inside ``function``, another ``args`` as an object beside it. Both become
the same call; what cannot be parsed stays as text and is never taken for an empty set of arguments.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgeline.gate.evidence.files import digest

_ARGUMENTS = ("arguments", "args", "kwargs", "input")
BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use", "function_call", "tool_call")  # of a message's content


@dataclass(frozen=True)
class Call:
    """One tool call: ``arguments`` by name; under the empty name what was no object."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def canonical(self) -> str:
        """Name and arguments as text that does not depend on the order of keys."""
        return json.dumps([self.name, self.arguments], sort_keys=True, default=str, ensure_ascii=False)


def call(raw: Mapping[str, Any]) -> Call:
    """A tool call of any known form. One that gives its arguments twice, and otherwise, has none that can be read."""
    inner = raw.get("function")
    holders: list[Mapping[str, Any]] = [inner, raw] if isinstance(inner, Mapping) else [raw]
    name = holders[0].get("name") or inner or raw.get("name") or ""
    given = [arguments(holder[key]) for holder in holders for key in _ARGUMENTS if holder.get(key) is not None]
    said = [item for item in given if item]
    same = all(item == said[0] for item in said)
    return Call(str(name), (said[0] if said else {}) if same else {"": said})


def arguments(given: Any) -> Mapping[str, Any]:
    """Arguments as an object, from an object or JSON text."""
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except ValueError:
            return {"": given}
    return given if isinstance(given, Mapping) else {"": given}


def calls(messages: Sequence[Mapping[str, Any]]) -> tuple[Call, ...]:
    """Every call of a trace, in order; content and rationale are not looked at."""
    return tuple(
        call(raw) if isinstance(raw, Mapping) else Call("", {"": raw}) for message in messages for raw in _raw(message)
    )


def _raw(message: Mapping[str, Any]) -> list[Any]:
    """The calls of one message: a list beside the content, blocks of the content, or the one of an older form."""
    listed, older, content = (message.get(key) for key in ("tool_calls", "function_call", "content"))
    found = listed if isinstance(listed, list | tuple) else [listed] if listed else []
    blocks = [block for block in content if is_call(block)] if isinstance(content, list) else []
    return [*found, *([older] if older else []), *blocks]


def is_call(block: Any) -> bool:
    """Whether a block of a message's content is a tool call."""
    return isinstance(block, Mapping) and block.get("type") in BLOCKS


def action_hash(messages: Sequence[Mapping[str, Any]]) -> str:
    """A hash of the calls alone: equal for traces that do the same and say something else."""
    return digest(*("calls", *(item.canonical for item in calls(messages))))
