"""Excerpts of prompts that may be shown: short, on one line, without keys, addresses and long tokens."""

import re

MOST_CHARS = 48
_SECRET = re.compile(
    r"(?i)\b(?:sk|pk|rk|ghp|gho|glpat|xox[a-z]|hf|key|token|secret|password|passwd|bearer|authorization|api[_-]?key)"
    r"[\"'\s:=_-]+(?:bearer\s+)?[^\s\"',;]{3,}"
)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_LONG = re.compile(r"(?=[\w+/=-]*\d)[A-Za-z0-9_+/=-]{16,}|[A-Za-z0-9_+/=]{28,}")
_NAMED = re.compile(r"\b(?:AKIA|ASIA|AIza|eyJ)[\w.\-]{6,}")


def redact(text: bytes, most: int = MOST_CHARS) -> str:
    """At most ``most`` characters of a text; keys, addresses and long tokens keep their first four characters."""
    shown = text.decode("utf-8", "replace")
    shown = _ADDRESS.sub("<address>", shown)
    shown = _SECRET.sub(lambda match: f"{match[0][:4]}***", shown)
    shown = _NAMED.sub(lambda match: f"{match[0][:4]}***", shown)
    shown = _LONG.sub(lambda match: match[0] if _is_date(match[0]) else f"{match[0][:4]}***", shown)
    shown = "".join(char if char.isprintable() else " " for char in shown)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _is_date(text: str) -> bool:
    return re.match(r"\d{4}-\d{2}-\d{2}(T\d|$)", text) is not None or (text.isdigit() and len(text) <= 19)
