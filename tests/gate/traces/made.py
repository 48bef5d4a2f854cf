"""Traces for tests: calls in either form, with a rationale of their own."""

from collections.abc import Mapping
from typing import Any

from ridgeline.gate.traces.trace import Trace

Made = tuple[str, Mapping[str, Any]]


def messages(*calls: Made, said: str = "Next.", as_text: bool = False) -> tuple[dict[str, Any], ...]:
    """One assistant message a call, as AgentDojo or, with ``as_text``, as OpenAI writes it."""
    import json

    def raw(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if as_text:
            return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        return {"function": name, "args": dict(arguments)}

    return tuple({"role": "assistant", "content": said, "tool_calls": [raw(*call)]} for call in calls)


def trace(key: str, *calls: Made, said: str = "Next.", **more: Any) -> Trace:
    """A trace whose pair is its key."""
    return Trace(key, messages(*calls, said=said), key, **more)
