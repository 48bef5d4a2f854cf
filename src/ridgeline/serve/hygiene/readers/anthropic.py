"""Anthropic messages: ``tools``, ``system``, ``messages``, ``usage.cache_read_input_tokens``."""

from collections.abc import Mapping

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene import envelope
from ridgeline.serve.hygiene.request import Record, Request, RequestReader

_ROLES = {"user": "user", "assistant": "assistant", "system": "system"}
_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens")


def is_anthropic(record: Record, body: Record) -> bool:
    """Whether a record with messages has this schema and not OpenAI's."""
    if "system" in body or "anthropic_version" in body or any(key in envelope.usage_of(record) for key in _CACHE):
        return True
    tools = body.get("tools")
    return isinstance(tools, list) and any(isinstance(tool, Mapping) and "input_schema" in tool for tool in tools)


def _claims(record: Record) -> bool:
    body = envelope.body(record)
    return isinstance(body.get("messages"), list) and is_anthropic(record, body)


def _read(record: Record) -> Request:
    body = envelope.body(record)
    parts = [*envelope.tools(body, "tools"), *envelope.blocks("system", body.get("system"), "$.system")]
    for index, message in enumerate(body["messages"]):
        where = f"$.messages[{index}]"
        if not isinstance(message, Mapping) or str(message.get("role")) not in _ROLES:
            raise InputError.expected("a message with the role user or assistant", message, where=where)
        parts += envelope.blocks(_ROLES[message["role"]], message.get("content"), f"{where}.content")
    used = envelope.usage_of(record)
    counts = [used.get(key) for key in ("input_tokens", *_CACHE)]
    known = [count for count in counts if isinstance(count, int | float)]
    total = sum(known) if "input_tokens" in used and known else None  # input_tokens are those after the cached ones
    return Request(
        parts=tuple(parts),
        model=envelope.model(record, body),
        time_s=envelope.time_s(record),
        usage=envelope.usage(total, used.get(_CACHE[0])),
    )


READER = RequestReader("Anthropic messages", _claims, _read)
