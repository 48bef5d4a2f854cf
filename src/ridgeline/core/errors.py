"""What can go wrong, drawn once.

RidgelineError
├── InputError              a value, file or flag the user gave cannot be used   exit 2
│   ├── UnknownDeviceError  no accelerator of that name; carries the close matches
│   └── MissingExtraError   an optional package is needed; prints the install line
├── InfeasibleError         nothing fits; names the binding limit and the nearest miss   exit 1
└── NotEnoughDataError      an estimate exists but may not be trusted; carries it   exit 1

Every message reads *Expected X, got Y, at where*, then a ``hint:`` line. ``assert`` is for our own bugs.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class RidgelineError(Exception):
    """Root of everything this package raises on purpose."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class InputError(RidgelineError):
    """The user's value cannot be used. ``where`` is a flag, a file or a path such as ``$.layers[3].d_ff``."""

    exit_code = 2

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        self.where = where
        super().__init__(f"{message} at {where}" if where else message, hint=hint)

    @classmethod
    def expected(cls, expected: str, got: object, *, where: str = "", hint: str = "") -> "InputError":
        """The house sentence: *Expected X, got Y, at where*."""
        text = repr(got)
        if len(text) > 80:  # of a path the end tells most
            text = f"{text[:32]}...{text[-45:]}"
        return cls(f"Expected {expected}, got {text},", where=where or "the input", hint=hint)


class UnknownDeviceError(InputError):
    """No accelerator of that name. There is no default device."""

    def __init__(self, name: str, known: Iterable[str], *, where: str = "") -> None:
        hint = did_you_mean(name, known, "run `ridgeline devices` for the catalog")
        super().__init__(f"Expected a known accelerator, got {name!r},", where=where or "the device name", hint=hint)


class MissingExtraError(InputError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"Expected the optional package {package}, got an installation without it,",
            where="import",
            hint=f'pip install "ridgeline[{extra}]"',
        )


class InfeasibleError(RidgelineError):
    """Nothing in the searched space satisfies the limits. Names the limit that binds and the nearest miss."""

    def __init__(self, message: str, *, limit: str, nearest: str = "", hint: str = "") -> None:
        self.limit = limit
        self.nearest = nearest
        parts = [message, f"binding limit: {limit}"]
        if nearest:
            parts.append(f"nearest miss: {nearest}")
        super().__init__("\n".join(parts), hint=hint)


class NotEnoughDataError(RidgelineError):
    """An estimate exists but its evidence is too thin to use; ``estimate`` carries it."""

    def __init__(self, message: str, *, estimate: object = None, hint: str = "") -> None:
        self.estimate = estimate
        super().__init__(message, hint=hint)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that lists the close matches of ``name`` among ``known``."""
    by_lower = {item.lower(): item for item in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=4, cutoff=0.5)
    if not close:
        close = [low for low in by_lower if name.lower() in low or low in name.lower()][:4]
    if close:
        return "did you mean " + ", ".join(by_lower[item] for item in close) + "?"
    return otherwise


@contextmanager
def located(prefix: str) -> Iterator[None]:
    """Prefix the place of any ``InputError`` raised inside: the file around a path."""
    try:
        yield
    except InputError as error:
        if error.where.startswith(prefix):
            raise
        where = f"{prefix}: {error.where}" if error.where else prefix
        message = error.message.removesuffix(f" at {error.where}")
        raise InputError(message, where=where, hint=error.hint) from error
