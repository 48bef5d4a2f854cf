"""Where an argument sends to: addresses, accounts, and hosts of pages, however they are written.

What two readers could read in two ways counts as both: a policy must allow every destination that a text can lead to.
"""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from ridgeline.gate.traces.names import document, visible

_URL = re.compile(r"ur[il]|href|link|endpoint|webhook|host", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)
_BRACKETS = re.compile(r"<([^<>]*)>")
_BETWEEN = re.compile(r"[\s()<>\[\]\"'?&=/|:\\]+")
_LAYERS = 3  # of percent encoding that are taken off


@dataclass(frozen=True)
class Egress:
    """Something leaves for ``destination``, by the argument ``role`` (``send_email.recipients``)."""

    role: str
    destination: str


def destinations(value: Any, argument: str = "") -> list[str]:
    """Where a value sends to: hosts of an argument that holds addresses of pages, else addresses or accounts."""
    if isinstance(value, list | tuple | set | frozenset):
        return [found for item in value for found in destinations(item, argument)]
    if not isinstance(value, str):
        return [json.dumps(value, sort_keys=True, default=str)]
    held = document(value)
    if isinstance(held, list):
        return destinations(held, argument)
    text = visible(value)
    if _URL.search(argument) or "://" in decoded(text):
        return list(dict.fromkeys(host for piece in _pages(text) for host in _hosts(piece)))
    pieces = re.split(r"[,;\n\r]", decoded(text))
    return [found for item in pieces if item.strip() for found in _addresses(item)]


def decoded(text: str) -> str:
    """The text without percent encoding, also where it was encoded more than once."""
    for _ in range(_LAYERS):
        text, before = unquote(text), text
        if text == before:
            break
    return text


def _pages(text: str) -> list[str]:
    """Every address of a page in a text: apart by spaces, or one inside the query of another."""
    found = []
    for number, word in enumerate(text.split()):
        if not number or "." in word or "://" in word:
            found.append(word)
            whole = decoded(word)
            starts = [match.start() for match in _SCHEME.finditer(whole)]
            found += [whole[start:] for start in starts if start]
    return found or [text]


def _hosts(text: str) -> list[str]:
    """The host as written and as decoded, with ``\\`` as itself and as ``/``: clients differ in which they go to."""
    return [host(read, slashes=slashes) for read in (text, decoded(text)) for slashes in (True, False)]


def _addresses(text: str) -> list[str]:
    inner = _BRACKETS.findall(text)
    if inner:
        outside = _BRACKETS.sub(" ", text)
        return [found for item in (*inner, *([outside] if "@" in outside else [])) for found in _addresses(item)]
    if "@" not in text:
        return ["".join(text.lower().split())]
    words = [word for word in _BETWEEN.split(text.lower().strip().removeprefix("mailto:")) if word]
    return [found for word in words for found in _parts(word)]


def _parts(word: str) -> list[str]:
    """An address; of one with several signs, each name with what follows: relays disagree on which counts."""
    parts = word.split("@")
    return ["@".join(parts[at : at + 2]) for at in range(len(parts) - 1)] or [word]


def host(text: str, *, slashes: bool = True) -> str:
    """The host that a page leads to, without user name and port; with ``slashes``, ``\\`` is read as ``/``."""
    plain = text.strip().replace("\\", "/") if slashes else text.strip()
    try:
        found = urlsplit(plain if "://" in plain else f"//{plain.lstrip('/')}").hostname
    except ValueError:
        found = None
    return (found or plain).lower().rstrip(".")
