"""Texts that take long to make and never change, kept in the user's cache folder.

What is read back is checked against its hash, and a folder that cannot be read or written is done without.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile


def folder() -> Path | None:
    """``$XDG_CACHE_HOME/ridgeline``, else ``~/.cache/ridgeline``; None where there is no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "ridgeline"
    except RuntimeError:
        return None


def kept(name: str, make: Callable[[], str]) -> str:
    """The text of that name, made once a machine. ``name`` holds what the text depends on, such as a version."""
    home = folder()
    if home is None:
        return make()
    file = home / name
    found = _read(file)
    if found is None:
        found = make()
        _write(file, found)
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(file: Path) -> str | None:
    try:
        written, _, text = file.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return None
    return text if written == _hash(text) else None


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as half:
            half.write(f"{_hash(text)}\n{text}")
        Path(half.name).replace(file)  # another process sees the whole file or none
    except OSError:
        return
