"""OpenAI responses: ``instructions``, ``input``, ``tools``, ``usage.input_tokens_details.cached_tokens``."""

from collections.abc import Mapping

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene import envelope
from ridgeline.serve.hygiene.request import Part, Record, Request, RequestReader

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_OUTPUTS = ("function_call_output", "mcp_call_output", "computer_call_output")


def _claims(record: Record) -> bool:
    body = envelope.body(record)
    return isinstance(body.get("input"), str | list) and "messages" not in body and "prompt" not in body


def _read(record: Record) -> Request:
    body = envelope.body(record)
    parts = [*envelope.tools(body, "tools"), *envelope.blocks("system", body.get("instructions"), "$.instructions")]
    if isinstance(body["input"], str):
        parts += envelope.blocks("user", body["input"], "$.input")
    else:
        for index, item in enumerate(body["input"]):
            parts += _item(item, f"$.input[{index}]")
    used = envelope.usage_of(record)
    details = used.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return Request(
        parts=tuple(parts),
        model=envelope.model(record, body),
        time_s=envelope.time_s(record),
        usage=envelope.usage(used.get("input_tokens"), cached),
    )


def _item(item: object, where: str) -> list[Part]:
    if not isinstance(item, Mapping):
        raise InputError.expected("an input item", item, where=where)
    if "role" in item:
        kind = _ROLES.get(str(item["role"]))
        if kind is None:
            raise InputError.expected(f"one of the roles {', '.join(_ROLES)}", item["role"], where=f"{where}.role")
        return list(envelope.blocks(kind, item.get("content"), f"{where}.content"))
    if item.get("type") in _OUTPUTS:
        named = Part("tool", envelope.compact({"call_id": item.get("call_id")}))
        return [named, *envelope.blocks("tool", item.get("output"), f"{where}.output")]
    return [Part("assistant", envelope.compact(item))]


READER = RequestReader("OpenAI responses", _claims, _read)
