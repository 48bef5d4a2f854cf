"""The requests of a log, each line by the reader of its own schema, in order of time where the log has one."""

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene.ledger import Ledger
from ridgeline.serve.hygiene.lines import lines
from ridgeline.serve.hygiene.request import Record, Request, readers

SORT_BYTES = 32 << 20  # lines held back to put them in order of time
_NO_SCHEMA = "no prompt, messages, input or hash_ids"


def requests(path: Path, ledger: Ledger, sort_bytes: int = SORT_BYTES) -> Iterator[Request]:
    """Every readable request. Lines that cannot be read are counted in the ledger with their numbers.

    Raises `InputError` for a file that cannot be opened, or that is one JSON array.
    """
    return in_order(_read(path, ledger), ledger, sort_bytes)


def _read(path: Path, ledger: Ledger) -> Iterator[tuple[int, Request]]:
    decode, first = msgspec.json.Decoder().decode, True
    for number, line in lines(path, ledger):
        if first and line[:1] == b"[":
            raise InputError.expected("one JSON document a line", "a JSON array", where=str(path),
                                      hint="jq -c '.[]' FILE > FILE.jsonl")  # fmt: skip
        first = False
        record: Any = None
        if line[:1] == b"{":
            try:
                record = decode(line)
            except (msgspec.DecodeError, ValueError, RecursionError):
                ledger.unreadable(number, "JSON that is cut off or malformed")
                continue
        else:
            record = _from_text(line)
        request = _request(record, number, ledger)
        if request is not None:
            yield len(line), request


def _from_text(line: bytes) -> Record | None:
    text = line.decode("utf-8", "replace")
    found = (reader.from_text(text) for reader in readers() if reader.from_text is not None)
    try:
        return next((record for record in found if record is not None), None)
    except (ValueError, SyntaxError, RecursionError):
        return None


def _request(record: object, number: int, ledger: Ledger) -> Request | None:
    if not isinstance(record, Mapping):
        ledger.unreadable(number, "neither JSON nor a line of a known server")
        return None
    try:
        reader = next((item for item in readers() if item.claims(record)), None)
        if reader is None:
            ledger.unreadable(number, _NO_SCHEMA)
            return None
        request = reader.read(record)
    except InputError as error:
        ledger.unreadable(number, error.message.removeprefix("Expected "))
        return None
    if not request.parts and request.ids is None and (request.hashes is None or not len(request.hashes)):
        ledger.unreadable(number, "an empty prompt")
        return None
    ledger.schemas[reader.name] += 1
    return replace(request, line=number, schema=reader.name)


def in_order(found: Iterable[tuple[int, Request]], ledger: Ledger, sort_bytes: int = SORT_BYTES) -> Iterator[Request]:
    """Requests by time, as far as ``sort_bytes`` of lines held back allow; the ledger counts what was out of order.

    A request without a time keeps its place behind the one above it.
    """
    heap: list[tuple[float, int, int, Request]] = []
    held, latest, sent = 0, -math.inf, -math.inf
    for size, request in found:
        time = request.time_s
        if math.isnan(time):
            time = latest
        elif time < latest:
            ledger.note("request logged out of order of time")
        latest = max(latest, time)
        heapq.heappush(heap, (time, request.line, size, request))
        held += size
        while held > sort_bytes and len(heap) > 1:
            time, _, size, request = heapq.heappop(heap)
            held -= size
            if time < sent:
                ledger.note("request too far out of order to be moved to its time")
            sent = max(sent, time)
            yield request
    while heap:
        yield heapq.heappop(heap)[3]
