"""Names of tools and arguments however they are spelled, and arguments however deep they stand.

A server finds its tool under another case, a namespace or an invisible character; a policy has to find it too.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPACES = re.compile(r"[\s\-]+")
_SPACE = re.compile(r"\.|/|:|__")  # what stands between a namespace and a name


def visible(text: str) -> str:
    """The text in one form of Unicode (NFKC), without characters that are not seen."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """A name in lower case with underscores: ``Send-Email``, ``sendEmail`` and ``SEND_EMAIL`` are one."""
    return _SPACES.sub("_", _HUMPS.sub("_", visible(name).strip())).casefold().strip("_")


@lru_cache(maxsize=4096)
def own(name: str) -> str:
    """A plain name without its namespace: ``send_email`` of ``mcp__mail__send_email`` and of ``mail.send_email``."""
    return _SPACE.split(plain(name))[-1]


def role_of(role: str) -> str:
    """A role ``tool.argument`` in one spelling."""
    tool, _, argument = role.rpartition(".")
    return f"{own(tool)}.{plain(argument)}"


def inside(value: Any, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Every argument of some plain names with its value, also inside objects, lists and JSON text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            name = plain(str(key))
            if name in names:
                yield name, inner
            else:
                yield from inside(inner, names)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from inside(inner, names)
    elif isinstance(value, str) and (held := document(value)) is not None:
        yield from inside(held, names)


def document(text: str) -> Any:
    """The object or list that a text is in JSON; None where it is neither."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping | list) else None
