"""What loggers wrap around a request, and the fields that the schemas share: body, usage, time, content blocks."""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene.request import Part, Record, Usage

PROMPT_KEYS = ("messages", "input", "prompt", "prompt_token_ids", "input_tok_ids", "token_ids", "hash_ids")
_BODIES = ("request", "body", "request_body", "kwargs", "payload", "params", "input")
_ANSWERS = ("response", "response_body", "result", "output", "completion")
_TIMES = ("timestamp", "time", "ts", "created_at", "@timestamp", "start_time", "startTime", "request_time",
          "arrival_s", "arrival_time", "created")  # fmt: skip
_STEPS = {13: 1e-3, 16: 1e-6, 19: 1e-9}  # digits of an epoch in ms, us, ns
_NUMBER = re.compile(r"[+-]?\d{1,19}(?:\.\d*)?")
_MOST_TOKENS = 10**9  # of one prompt: a larger count is a fault of the log
_INLINE_BYTES = 256  # a longer value in an image or file block is data, not text


def body(record: Record) -> Record:
    """The request inside its wrapping: the record itself, or what lies under ``request``, ``body`` and the like."""
    for _ in range(3):
        if any(_is_prompt(record.get(key), key) for key in PROMPT_KEYS):
            return record
        inner = next((found for key in _BODIES if (found := _mapping(record.get(key)))), None)
        if inner is None:
            return record
        record = inner
    return record


def _is_prompt(value: object, key: str) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and not (key == "input" and _mapping(value)))


def _mapping(value: object) -> Record | None:
    if isinstance(value, str) and value[:1] == "{":
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, ValueError):
            return None
    return value if isinstance(value, Mapping) and value else None


def answers(record: Record) -> Iterator[Record]:
    """Every place where the server's own fields may stand, the record first."""
    yield record
    for key in (*_ANSWERS, *_BODIES):
        if (found := _mapping(record.get(key))) is not None:
            yield found
            if (inner := _mapping(found.get("body"))) is not None:
                yield inner


def usage_of(record: Record) -> Record:
    """The usage block, empty where there is none."""
    return next((found for place in answers(record) if (found := _mapping(place.get("usage"))) is not None), {})


def usage(total: object, cached: object) -> Usage:
    """Counts of a usage block; what is no number is not logged, and what no prompt has is NaN, to be counted as
    impossible."""
    return Usage(_count(total), _count(cached))


def _count(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if value <= _MOST_TOKENS else math.nan


def model(record: Record, request: Record) -> str:
    """The model's name: caches of two models share nothing."""
    for place in (request, *answers(record)):
        if isinstance(name := place.get("model"), str):
            return name
    return ""


def time_s(record: Record) -> float:
    """When the request was sent, in seconds (UTC where the log has a date); NaN where it does not say."""
    for place in answers(record):
        for key in _TIMES:
            if key in place and math.isfinite(found := _seconds(place[key])):
                return found
    return math.nan


def _seconds(value: object) -> float:
    if isinstance(value, str):
        return _seconds(float(value)) if _NUMBER.fullmatch(value) else _date_s(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return math.nan
    digits = len(str(abs(int(value))))
    return float(value) * next((step for most, step in sorted(_STEPS.items(), reverse=True) if digits >= most), 1.0)


def _date_s(text: str) -> float:
    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def compact(value: object) -> bytes:
    """JSON without white space, keys in the order of the log."""
    return msgspec.json.encode(value)


def blocks(kind: str, content: object, where: str) -> Iterator[Part]:
    """The parts of a message's content: a text, or a list of typed blocks. Raises `InputError` for anything else."""
    if content is None:
        return
    if isinstance(content, str):
        yield Part(kind, content.encode("utf-8", "surrogatepass"))
    elif isinstance(content, list):
        for item in content:
            yield from _block(kind, item, where)
    elif isinstance(content, Mapping):
        yield from _block(kind, content, where)
    else:
        raise InputError.expected("a text or a list of content blocks", content, where=where)


def _block(kind: str, item: object, where: str) -> Iterator[Part]:
    if isinstance(item, str):
        yield Part(kind, item.encode("utf-8", "surrogatepass"))
        return
    if not isinstance(item, Mapping):
        raise InputError.expected("a content block", item, where=where)
    text = item.get("text")
    if isinstance(text, str):
        yield Part(kind, text.encode("utf-8", "surrogatepass"))
    elif item.get("type") == "tool_result":
        yield Part("tool", compact({"tool_use_id": item.get("tool_use_id")}))
        yield from blocks("tool", item.get("content"), where)
    else:
        yield Part(kind, compact(_without_data({key: value for key, value in item.items() if key != "cache_control"})))


def _without_data(value: Any) -> Any:
    """Images and files by their digest: their bytes are no text."""
    if isinstance(value, Mapping):
        return {key: _without_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_data(item) for item in value]
    if isinstance(value, str) and len(value) > _INLINE_BYTES and " " not in value[:_INLINE_BYTES]:
        return hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return value


def tools(request: Record, *keys: str) -> list[Part]:
    """Each tool as a part of its own, in the order sent."""
    found: list[Part] = []
    for key in keys:
        value = request.get(key)
        if value is None:
            continue
        if not isinstance(value, list):
            raise InputError.expected("a list of tools", value, where=f"$.{key}")
        stripped = [_bare(item) for item in value]
        found += [Part("tools", compact(item)) for item in stripped]
    return found


def _bare(tool: Any) -> Any:
    if isinstance(tool, Mapping) and "cache_control" in tool:
        return {key: value for key, value in tool.items() if key != "cache_control"}
    return tool


def token_ids(value: object, where: str) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """A list of token ids. Raises `InputError` for anything that is not one."""
    if not isinstance(value, list) or not value:
        raise InputError.expected("a list of token ids", value, where=where)
    try:
        found = np.array(value)
    except ValueError as error:
        raise InputError.expected("a flat list of token ids", "a ragged one", where=where) from error
    if found.ndim != 1 or found.dtype.kind not in "iu" or (found < 0).any() or (found > np.iinfo(np.int32).max).any():
        raise InputError.expected("whole token ids of at least 0", str(value[:3]), where=where)
    return found.astype(np.int32)
