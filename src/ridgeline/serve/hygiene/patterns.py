"""What a changing span looks like: a time, an identifier, a number.

Each pattern starts with a set of characters and looks back after it: the engine then skips what cannot match.
"""

import re
from collections.abc import Callable, Iterator

WINDOW_BYTES = 96  # around a difference in which a pattern is looked for
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_NTH = rb"(?:st|nd|rd|th)?,?"
_REST = rb":\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?"  # of a clock, after its hours
_ZONE = rb"(?:\s?(?:Z\b|UTC\b|GMT\b|[ECMP][SD]T\b|[+-]\d{2}:?\d{2}\b))?"
_CLOCK = rb"(?:(?:,? at|,)? \d{1,2}" + _REST + rb")?" + _ZONE
_TIMES = (
    re.compile(  # Monday, March 9, 2026 at 06:00:31 PM PDT; 9 March 2026
        rb"[ADFJMNOSTW](?<!\w[A-Z])(?:(?<=[MTWFS])(?:on|ue|ed|hu|ri|at|un)[a-z]*,?\s+(?:" + _MONTH + rb" \d{1,2}" + _NTH
        + rb" \d{4}|\d{1,2} " + _MONTH + rb" \d{4})|(?:an|eb|ar|pr|ay|un|ul|ug|ep|ct|ov|ec)[a-z]*\.? \d{1,2}" + _NTH
        + rb" \d{4})" + _CLOCK
    ),
    re.compile(
        rb"\d(?<![\w.:]\d)(?:\d{3}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?" + _ZONE  # ISO 8601
        + rb"|\d? " + _MONTH + rb" \d{4}" + _CLOCK
        + rb"|\d?/\d{1,2}/(?:\d{4}|\d{2})\b" + _CLOCK
        + rb"|(?<=1)\d{9}(?:\.\d+|\d{3}|\d{6}|\d{9})?(?![\w.:])"  # seconds since 1970, and ms, us, ns
        + rb"|\d?" + _REST + _ZONE + rb"(?![\w:]))"
    ),
)  # fmt: skip
_TOKEN = re.compile(rb"[A-Za-z0-9](?<![A-Za-z0-9_\-].)[A-Za-z0-9_\-]{9,}")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_PREFIXED = re.compile(
    rb"(?i)(?:req|request|sess|session|conv|conversation|thread|trace|span|run|msg|call|toolu|chatcmpl|user|usr|id)[-_]"
)
_UUID = re.compile(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(rb"(?:[0-9a-f]+|[0-9A-F]+)")
_LEAST_HEX, _LEAST_MIXED = 12, 20
Span = tuple[int, int]


def is_identifier(token: bytes) -> bool:
    """Whether a long word names one request, session or user: a UUID, a hexadecimal or mixed code, ``req_...``."""
    if _UUID.fullmatch(token):
        return True
    digits = sum(token.count(digit) for digit in (b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"))
    if not digits or digits == len(token):
        return False
    if prefix := _PREFIXED.match(token):
        return len(token) - prefix.end() >= 6
    bare = token.replace(b"-", b"").replace(b"_", b"")
    if _HEX.fullmatch(bare):
        return len(bare) >= _LEAST_HEX
    return bare == token and len(token) >= _LEAST_MIXED


def times(text: bytes, low: int = 0, high: int | None = None) -> Iterator[Span]:
    """Where times and dates stand in ``text[low:high]``."""
    for pattern in _TIMES:
        yield from (match.span() for match in pattern.finditer(text, low, len(text) if high is None else high))


def identifiers(text: bytes, low: int = 0, high: int | None = None) -> Iterator[Span]:
    """Where identifiers stand in ``text[low:high]``."""
    for match in _TOKEN.finditer(text, low, len(text) if high is None else high):
        if is_identifier(match[0]):
            yield match.span()


def numbers(text: bytes, low: int = 0, high: int | None = None) -> Iterator[Span]:
    """Where numbers stand in ``text[low:high]``."""
    yield from (match.span() for match in _NUMBER.finditer(text, low, len(text) if high is None else high))


def without_times(text: bytes) -> bytes:
    """A text with its times and dates taken out."""
    for pattern in _TIMES:
        text = pattern.sub(b"", text)
    return text


def without_identifiers(text: bytes) -> bytes:
    """A text with its identifiers taken out."""
    return _TOKEN.sub(lambda match: b"" if is_identifier(match[0]) else match[0], text)


def digits_as_zero(text: bytes) -> bytes:
    """A text with each number as 0: the same for texts that differ in numbers only."""
    return _NUMBER.sub(b"0", text)


FORMS: dict[str, Callable[[bytes, int, int], Iterator[Span]]] = {
    "timestamp": times,
    "identifier": identifiers,
    "counter": numbers,
}


def covering(name: str, text: bytes, at: int) -> Span | None:
    """The span of a form that holds the byte at ``at`` or ends right before it; None where there is none."""
    low, high = max(0, at - WINDOW_BYTES), min(len(text), at + WINDOW_BYTES)
    return next(((start, end) for start, end in FORMS[name](text, low, high) if start <= at <= end), None)
