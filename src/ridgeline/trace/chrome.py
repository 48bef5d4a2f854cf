"""Chrome trace JSON as a stream: events come out in lists of a few thousand, memory stays at a few blocks.

A block is cut at the last ``}, {`` and handed to the decoder, which is the judge: text up to the cut, closed with a
bracket, is a valid list if and only if the cut lies between two events of the list. So strings and escapes are honoured
without a second scan. Only where the decoder refuses does `Taker` look for the fault, event by event.
"""

import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from ridgeline.trace import salvage
from ridgeline.trace.salvage import Ledger

T = TypeVar("T")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_JOINT = re.compile(rb'\}\s*(?:,\s*)?\{(?=\s*")')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_INK = re.compile(rb"[^ \t\r\n,\0]")
_DEEP = re.compile(rb'(?:[\[{]\s*(?:"[^"]*"\s*:\s*)?){64}')
_BYTE = re.compile(r"\(byte (\d+)\)")
_TOO_DEEP = "nested too deeply"
_NOT_UTF8 = "parts of the file with bytes that are not UTF-8: replaced by a mark"
_HOPELESS = "parts of the file that no repair makes JSON: skipped"
_HEAD_LIMIT_BYTES = 256 << 20
_CARRY_BLOCKS = 4  # an event longer than this is broken, not long
_CUTS = 12  # boundaries to try before a fault
_REPAIRS = 3  # boundaries to try after it: a name may hold what looks like one
_GIVE_UP = 200  # events in a row that cannot be repaired: from there on they are skipped without trying
_COMMA, _OPEN, _CLOSE, _BRACE = b",[]}"
_BLANK = b" \t\r\n,\0"


class Stream(Generic[T]):
    """Iterate for lists of events; afterwards ``head`` and ``tail`` hold the other keys of the document(s).

    ``decode`` turns the text of a JSON list into events; it must raise `msgspec.DecodeError` where the text is not
    JSON and `msgspec.ValidationError` where it is JSON of another type. ``lenient`` does one event and returns None
    where it can do nothing with it.
    """

    def __init__(
        self,
        blocks: Iterator[bytes],
        decode: Callable[[Any], list[T]],
        lenient: Callable[[bytes], T | None],
        ledger: Ledger,
    ) -> None:
        self._blocks, self._ledger = blocks, ledger
        self._taker = Taker(decode, lenient, ledger)
        self.head: dict[str, Any] = {}
        self.tail: dict[str, Any] = {}
        self.documents = 0

    def __iter__(self) -> Iterator[list[T]]:
        text = b""
        while True:
            found, text = self._seek(text)
            if not found:
                return
            self.documents += 1
            rest = yield from self._list(text)
            text = self._after(rest)
            if not text.strip():
                return

    def _seek(self, text: bytes) -> tuple[bool, bytes]:
        """Move to just after the bracket of the next list of events."""
        searched = 0
        while True:
            if text.lstrip(b"\xef\xbb\xbf \t\r\n\0")[:1] == b"[":
                return True, text[text.index(b"[") + 1 :]
            if match := _EVENTS.search(text, searched):
                self._keep(self.head, text[: match.start()].rstrip(b", \t\r\n") + b"}")
                return True, text[match.end() :]
            block = next(self._blocks, b"")
            if not block or len(text) > _HEAD_LIMIT_BYTES:
                if text.strip() and self.documents:
                    self._ledger.add("bytes after the end of the trace", len(text))
                return False, text
            searched = max(0, len(text) - 100)
            text += block

    def _list(self, text: bytes) -> Generator[list[T], None, bytes]:
        """Events of one list; returns the text after its closing bracket."""
        work, limit = bytearray(b"[") + text, _CARRY_BLOCKS * salvage.BLOCK_BYTES
        for block in self._blocks:
            work += block
            while (cut := _last_joint(work, 1, len(work))) is not None:
                rest = bytes(work[cut + 1 :])
                del work[cut + 1 :]
                work[cut] = _CLOSE
                events, at, ended = self._taker.take(work, insist=len(work) > limit)
                yield events
                left = bytes(work[at:-1]) + b"," if at < len(work) else b""
                if ended:
                    return left + rest
                work = bytearray(b"[") + left[1:] + rest
                if len(work) <= limit:
                    break
        events, at, ended = self._taker.take(work, open_end=True)
        yield events
        if not ended:
            what = "the file was cut off or the job was stopped while it was written"
            self._ledger.add(f"list of events not closed: {what}")
        return bytes(work[at:])

    def _after(self, rest: bytes) -> bytes:
        """Keys that follow the list; returns the start of a second document, if there is one."""
        parts = [rest]
        total = len(rest)
        for block in self._blocks:
            parts.append(block)
            total += len(block)
            if total > _HEAD_LIMIT_BYTES:
                self._ledger.add("text after the list of events too long: not read")
                break
        text = b"".join(parts).strip(b" \t\r\n\0")
        if text[:1] not in (b",", b"}"):
            return text
        text = b"{" + text.lstrip(b", \t\r\n")
        end = _closed(text, 0, 0) or len(text)
        self._keep(self.tail, text[:end])
        return text[end:].lstrip(b", \t\r\n\0")

    def _keep(self, into: dict[str, Any], text: bytes) -> None:
        for attempt in (text, salvage.repair(text)):
            try:
                found = json.loads(attempt)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                for key, value in found.items():
                    into.setdefault(str(key), value)
            return
        self._ledger.add("header of the file is not JSON: device and rank may be unknown")


class _Step(NamedTuple):
    """One move over the text: where it got to, and why it stops there if it does."""

    at: int
    stop: bool = False
    ended: bool = False


class Taker(Generic[T]):
    """Turns the text of a list, whole or damaged, into events."""

    def __init__(self, decode: Callable[[Any], list[T]], lenient: Callable[[bytes], T | None], ledger: Ledger) -> None:
        self._decode, self._lenient, self._ledger = decode, lenient, ledger
        self._failed = 0
        self._cleaned = -1

    def take(self, work: bytearray, *, open_end: bool = False, insist: bool = False) -> tuple[list[T], int, bool]:
        """Decode ``[...]``, or (``open_end``) what may lack its end: events, how far, and whether the list ended.

        What is not decoded because it seems to go on in the next block is left, unless ``insist``. Repairs change
        ``work`` in place.
        """
        done: list[T] = []
        step, self._cleaned = _Step(0), -1
        while not step.stop and step.at < len(work) and _INK.search(work, step.at + 1):
            try:
                more = self._whole(memoryview(work)[step.at :])
                return (done + more if done else more), len(work), open_end
            except msgspec.DecodeError as error:
                message = str(error)
            step = self._step(done, work, step.at, message, open_end=open_end, insist=insist)
        return done, step.at if step.stop else len(work), step.ended

    def _step(self, done: list[T], work: bytearray, start: int, message: str, *, open_end: bool, insist: bool) -> _Step:
        """Past the fault that the decoder complains of."""
        where = _BYTE.search(message)
        fault = start + int(where.group(1)) if where else None
        if fault is not None and "trailing characters" in message:
            done += self._whole(bytes(work[start : fault - 1]))  # the position counts the character that was too many
            return _Step(fault - 1, stop=True, ended=True)
        if message == _TOO_DEEP:
            fault = deep.start() + 1 if (deep := _DEEP.search(work, start)) else start + 1
        elif fault is None and "truncated" in message:
            if not (open_end or insist):
                joint = _joint_before(work, start, len(work) - 1)
                if joint is None or self._up_to(done, work, start, joint):
                    return _Step(start if joint is None else joint, stop=True)
            # the text ends too early, unless half a surrogate pair only reads like that
            fault = (len(work) if open_end else start + 1) if self._cleaned == start else None
        if fault is not None:
            return self._mend(done, work, start, min(fault, len(work)), open_end=open_end)
        if self._cleaned == start:
            self._ledger.add(_HOPELESS)
            return _Step(len(work), stop=True)
        clean = salvage.encoding(bytes(work[start:]))
        self._ledger.add(_NOT_UTF8, clean != work[start:])
        work[start:], self._cleaned = clean, start
        return _Step(start)

    def _up_to(self, done: list[T], work: bytearray, start: int, joint: int) -> bool:
        """The events before a joint; False where they do not decode."""
        try:
            done += self._whole(bytes(work[start:joint]) + b"]")
        except msgspec.DecodeError:
            return False
        self._failed = 0
        return True

    def _whole(self, text: Any) -> list[T]:
        try:
            return self._decode(text)
        except msgspec.ValidationError:
            return self._one_by_one(bytes(text))
        except RecursionError as error:
            raise msgspec.DecodeError(_TOO_DEEP) from error

    def _one_by_one(self, text: bytes) -> list[T]:
        """JSON that is not what the schema says: convert each event by hand."""
        kept = []
        try:
            raws = msgspec.json.decode(text, type=list[msgspec.Raw])
        except RecursionError as error:
            raise msgspec.DecodeError(_TOO_DEEP) from error
        for raw in raws:
            event = self._lenient(bytes(raw))
            if event is None:
                self._ledger.add("entries of the list that are no events")
            else:
                kept.append(event)
        return kept

    def _mend(self, done: list[T], work: bytearray, start: int, fault: int, *, open_end: bool) -> _Step:
        """Decode up to the event with the fault; repair that event or drop it."""
        joint = _joint_before(work, start, fault)
        bad = start if joint is None else joint
        if joint is not None and not self._up_to(done, work, start, joint):
            clean = bytearray(salvage.encoding(bytes(work[start:joint])) + b"]")
            self._ledger.add(_NOT_UTF8 if self._up_to(done, clean, 0, len(clean) - 1) else _HOPELESS)
        first = after = max(
            _before(work, fault - 1, bad), bad + 1
        )  # where a comma is missing, the next event is at fault
        for _ in range(_REPAIRS):
            match = _JOINT.search(work, after)
            stop, end = (match.start() + 1, 0) if match else _tail_of(work, bad, open_end=open_end)
            text = bytes(work[bad + 1 : stop]).strip(_BLANK)
            if self._repaired(done, text):
                return _Step(_resume(work, stop)) if match else _Step(end or len(work), stop=True, ended=bool(end))
            if match is None:
                how = "cut off in the middle" if open_end and not end else "with broken JSON"
                self._ledger.add(f"events {how}: dropped", bool(text))
                return _Step(end or len(work), stop=True, ended=bool(end))
            after = match.end()
        self._failed += 1
        self._ledger.add("events with broken JSON: dropped")
        match = _JOINT.search(work, first)
        assert match is not None  # the loop has just found it
        return _Step(_resume(work, match.start() + 1))

    def _repaired(self, done: list[T], text: bytes) -> bool:
        """Try the text of one event as it is, then repaired."""
        if not text.startswith(b"{"):
            return False
        for change in (None, salvage.repair)[: 2 if self._failed < _GIVE_UP else 1]:
            attempt = change(text) if change else text
            try:
                msgspec.json.decode(attempt, type=msgspec.Raw)
            except (msgspec.DecodeError, RecursionError):
                continue
            event = self._lenient(attempt)
            if event is None:
                return False
            done.append(event)
            self._ledger.add("events with broken JSON: repaired", change is not None)
            self._failed = 0
            return True
        return False


def _tail_of(work: bytearray, bad: int, *, open_end: bool) -> tuple[int, int]:
    """Where the last event stops, and where the list ends (0: not in this text)."""
    if not open_end:
        return len(work) - 1, 0
    end = _closed(work, bad + 1, 1)
    return (end - 1, end) if end else (len(work), 0)


def _resume(work: bytearray, after: int) -> int:
    """Turn what separates two events into an opening bracket; where it is."""
    comma, brace = work.find(b",", after), work.find(b"{", after)
    at = comma if 0 <= comma < brace else brace - 1  # for `}{` the brace before, which has been read
    work[at] = _OPEN
    return at


def _closed(text: bytes | bytearray, start: int, depth: int) -> int:
    """Just after the bracket that brings the nesting to zero, 0 where there is none; brackets in strings are text."""
    for match in _TOKEN.finditer(text, start):
        token = match.group(0)
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
            if depth == 0:
                return match.end()
    return 0


def _last_joint(work: bytearray, start: int, end: int) -> int | None:
    """The comma of the last ``}, {`` between two places."""
    while (brace := work.rfind(b"{", start, end)) > start:
        comma = _before(work, brace, start)
        if work[comma] == _COMMA and work[_before(work, comma, start)] == _BRACE:
            return comma
        end = brace
    return None


def _before(work: bytearray, at: int, start: int) -> int:
    """The last character before ``at`` that is not blank."""
    at -= 1
    while at > start and work[at] in b" \t\r\n":
        at -= 1
    return at


def _joint_before(work: bytearray, start: int, fault: int) -> int | None:
    """The comma of the last ``}, {`` before the fault that leaves a valid list; None: the first event is at fault."""
    end = fault
    for _ in range(_CUTS):
        cut = _last_joint(work, start + 1, end)
        if cut is None:
            return None
        before, work[cut] = work[cut], _CLOSE
        try:
            msgspec.json.decode(memoryview(work)[start : cut + 1], type=list[msgspec.Raw])
            return cut
        except (msgspec.DecodeError, RecursionError):
            end = cut
        finally:
            work[cut] = before
    return None
