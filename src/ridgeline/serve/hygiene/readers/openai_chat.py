"""OpenAI chat completions, and what speaks its dialect: ``messages``, ``tools``, ``usage.prompt_tokens_details``."""

from collections.abc import Mapping

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene import envelope
from ridgeline.serve.hygiene.readers.anthropic import is_anthropic
from ridgeline.serve.hygiene.request import Part, Record, Request, RequestReader

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
          "function": "tool"}  # fmt: skip


def _claims(record: Record) -> bool:
    body = envelope.body(record)
    return isinstance(body.get("messages"), list) and not is_anthropic(record, body)


def _read(record: Record) -> Request:
    body = envelope.body(record)
    parts = envelope.tools(body, "tools", "functions")
    if isinstance(schema := body.get("response_format"), Mapping) and "json_schema" in schema:
        parts.append(Part("system", envelope.compact(schema)))
    for index, message in enumerate(body["messages"]):
        parts += _message(message, f"$.messages[{index}]")
    used = envelope.usage_of(record)
    details = used.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else used.get("prompt_cache_hit_tokens")
    return Request(
        parts=tuple(parts),
        model=envelope.model(record, body),
        time_s=envelope.time_s(record),
        usage=envelope.usage(used.get("prompt_tokens"), cached),
    )


def _message(message: object, where: str) -> list[Part]:
    if not isinstance(message, Mapping):
        raise InputError.expected("a message with a role", message, where=where)
    kind = _ROLES.get(str(message.get("role")))
    if kind is None:
        raise InputError.expected(f"one of the roles {', '.join(_ROLES)}", message.get("role"), where=f"{where}.role")
    parts = list(envelope.blocks(kind, message.get("content"), f"{where}.content"))
    calls = message.get("tool_calls")
    parts += [Part(kind, envelope.compact(call)) for call in calls] if isinstance(calls, list) else []
    return parts


READER = RequestReader("OpenAI chat", _claims, _read)
