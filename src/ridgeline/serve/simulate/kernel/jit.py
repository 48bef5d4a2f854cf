"""Compile with Numba, with machine code kept between processes where a folder can be written.

Numba notices that a function's own file changed, but not the files of the functions that were compiled into it. So the
folder is named after the contents of every file here: a change anywhere starts a new one.

No function here makes an array, so none needs Numba to count references: without that a step takes a tenth of the time.
"""

import hashlib
import importlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from ridgeline.core.cache import folder

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """``function`` compiled at its first call, from the kept code if there is any."""
    numba = importlib.import_module("numba")
    options: dict[str, Any] = {"error_model": "numpy"}
    if hasattr(numba.core.options.DefaultOptions, "_nrt"):
        options["_nrt"] = False
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _folder()
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except (RuntimeError, OSError):  # nothing can be written: compile anew in each process
        return cast(F, numba.njit(**options)(function))
    finally:
        numba.config.CACHE_DIR = before


@cache
def _folder() -> str:
    contents = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        contents.update(path.read_bytes())
    contents.update((Path(__file__).parents[1] / "engine" / "state.py").read_bytes())
    own = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(own) / "ridgeline" if own else folder()
    return str(home / "numba" / contents.hexdigest()[:16]) if home else ""  # empty: Numba looks for a place of its own
