"""A logged request as an ordered list of prompt parts, and the plug-in form of a log's schema.

The order is the one in which a prompt is laid out for the model: tools, system, messages. A cache compares bytes, so a
part keeps the order of keys and the white space that the log has.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ridgeline.core import plugins

Record = Mapping[str, Any]
KINDS = ("tools", "system", "user", "assistant", "tool", "prompt")
HEADERS = {kind: b"" if kind in ("tools", "prompt") else f"<|{kind}|>\n".encode() for kind in KINDS}
IDS_DTYPE = np.dtype("<i4")  # four bytes a token: a block of N tokens is 4 N bytes, as in text


class Part(NamedTuple):
    """A piece of a prompt: one tool, the system prompt, one block of a message. ``kind`` is one of `KINDS`."""

    kind: str
    text: bytes


@dataclass(frozen=True)
class Usage:
    """What the server counted: prompt tokens and those of them that came from a cache; None where not logged."""

    prompt_tokens: float | None = None
    cached_tokens: float | None = None


@dataclass(frozen=True, eq=False)
class Request:
    """One request. Its prompt is in ``parts``, or in ``ids`` (token ids), or in ``hashes`` (one per block of the whole
    prefix, ``block_tokens`` tokens each). ``time_s`` is NaN where the log has none.
    """

    parts: tuple[Part, ...] = ()
    ids: NDArray[np.int32] | None = None
    hashes: NDArray[np.int64] | None = None
    block_tokens: int = 0
    model: str = ""
    time_s: float = math.nan
    usage: Usage = field(default_factory=Usage)
    line: int = 0
    schema: str = ""

    @property
    def content(self) -> bytes:
        """The prompt as the bytes that are compared."""
        return self.ids.astype(IDS_DTYPE).tobytes() if self.ids is not None else joined(self.parts)


def joined(parts: "tuple[Part, ...] | list[Part]") -> bytes:
    """Parts as one byte string: a header with the role, the text, a line end."""
    return b"".join([piece for part in parts for piece in (HEADERS[part.kind], part.text, b"\n")])


@dataclass(frozen=True)
class RequestReader:
    """A schema of request logs. ``claims(record)`` says whether a decoded line has it, ``read(record)`` reads one.

    ``from_text(line)`` turns a line that is not JSON into a record, or gives None. ``read`` raises `InputError` for a
    record that cannot be used. At most one reader may claim a record.
    """

    name: str
    claims: Callable[[Record], bool]
    read: Callable[[Record], Request]
    from_text: Callable[[str], Record | None] | None = None


@lru_cache(maxsize=1)
def readers() -> tuple[RequestReader, ...]:
    """Every known schema."""
    return tuple(plugins.load("ridgeline.serve.hygiene.readers", RequestReader, kind="prompt_reader"))
