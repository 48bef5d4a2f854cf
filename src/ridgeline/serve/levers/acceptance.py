"""Acceptance lengths: tokens that one step of speculative decoding yields, measured and as a model of k.

Each drafted token is accepted with a probability while all before it were. With one probability *a* for every place the
expected length is ``1 + a + ... + a^k = (1 - a^(k+1))/(1 - a)`` (Leviathan et al. 2023, arXiv:2211.17192, equation 1);
the 1 is the token that the model itself adds. Measured heads do worse at later places: with a ratio *r* from each place
to the next, the chance of place i is ``a*r^(i-1)``; *r* = 1 is the geometric law. The table is in
``core/data/levers.toml``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.core import figures
from ridgeline.core.catalog import DATA
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import Source

Floats = NDArray[np.float64]
_STEP = 1e-3  # of the search for a and r


@dataclass(frozen=True)
class Acceptance:
    """The chance that the ``first`` drafted token is accepted, and its ratio ``decay`` from place to place.

    Raises `InputError` for a chance outside [0, 1) or a decay outside (0, 1].
    """

    first: float
    decay: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.first < 1:
            hint = "1 would accept every token that anything drafts"
            raise InputError.expected("a share of at least 0 and below 1", self.first, where="acceptance", hint=hint)
        if not 0 < self.decay <= 1:
            raise InputError.expected("a ratio above 0 and at most 1", self.decay, where="acceptance.decay")

    def length(self, drafted: ArrayLike) -> Floats:
        """Expected tokens a step with ``drafted`` tokens (0 or more, whole), an array of any shape."""
        count = np.asarray(drafted, dtype=np.int64)
        if np.any(count < 0):
            raise InputError.expected("zero drafted tokens or more", int(np.min(count)), where="drafted")
        places = np.arange(1, int(np.max(count, initial=0)) + 1)
        chances = np.cumprod(np.concatenate([[1.0], self.first * self.decay ** (places - 1.0)]))
        return np.asarray(np.cumsum(chances)[count], dtype=np.float64)


@dataclass(frozen=True)
class Measured:
    """A row of the table: ``lengths`` with 1, 2, ... drafted tokens for a model, its drafter and a mode."""

    model: str
    drafter: str
    mode: str
    lengths: tuple[float, ...]


@dataclass(frozen=True)
class Fit:
    """A fitted `Acceptance` and its relative errors, each place predicted from the others (leave one k out)."""

    acceptance: Acceptance
    errors: tuple[float, ...]

    @property
    def worst(self) -> float:
        """The largest of the errors' sizes."""
        return max(map(abs, self.errors))


def expected_length(chance: float, drafted: int) -> float:
    """Tokens a step by the geometric law, ``1 + a + ... + a^k``."""
    return float(Acceptance(chance).length(drafted))


def chance_for(length: float, drafted: int) -> float | None:
    """The geometric chance whose expected length with ``drafted`` tokens is ``length``; None where none below 1 is.

    By bisection: the length rises with the chance. Raises `InputError` for a length that is not a number.
    """
    if not np.isfinite(length):
        raise InputError.expected("a finite length", length, where="the acceptance length")
    if length <= 1:
        return 0.0
    if length >= drafted + 1:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if expected_length(middle, drafted) < length else (low, middle)
    return low


@lru_cache(maxsize=1)
def table() -> tuple[Measured, ...]:
    """Every measured row."""
    data = figures.table(figures.read(DATA / "levers.toml")["acceptance"], "$.acceptance")
    return tuple(
        Measured(model, drafter, mode, tuple(float(figures.number(item, "$.acceptance")) for item in lengths))
        for model, drafters in data.items()
        if isinstance(drafters, Mapping)
        for drafter, modes in drafters.items()
        for mode, lengths in modes.items()
    )


@lru_cache(maxsize=1)
def table_source() -> Source:
    """Where the table comes from."""
    data = figures.read(DATA / "levers.toml")
    return figures.sources(data)[data["acceptance"]["source"]]


def measured(model: str, drafter: str = "", mode: str = "") -> tuple[Measured, ...]:
    """The rows of a model, of all its drafters and modes unless given. Raises `InputError` for an unknown model."""
    known = sorted({row.model for row in table()})
    if model not in known:
        hint = did_you_mean(model, known, "known: " + ", ".join(known))
        raise InputError.expected(
            "a model with measured acceptance lengths", model, where="speculation.model", hint=hint
        )
    rows = tuple(row for row in table() if row.model == model and drafter in ("", row.drafter))
    found = tuple(row for row in rows if mode in ("", row.mode))
    if not found:
        has = ", ".join(f"{row.drafter} {row.mode}" for row in table() if row.model == model)
        raise InputError.expected(f"one of {has}", f"{drafter} {mode}".strip(), where="speculation.drafter")
    return found


def fit(lengths: Sequence[float], *, geometric: bool = False) -> Fit:
    """The acceptance that minimizes the relative squared errors of ``lengths`` (of 1, 2, ... drafted tokens).

    With ``geometric`` the decay is held at 1. Raises `InputError` for fewer than three lengths or one below 1.
    """
    given = np.asarray(lengths, dtype=np.float64)
    if given.size < 3 or not np.all(np.isfinite(given)) or np.any(given < 1):
        raise InputError.expected("three or more lengths of at least 1", list(lengths), where="the acceptance lengths")
    pairs, wanted = _grid(given.size, geometric)
    squares = (wanted / given - 1) ** 2
    first, decay = pairs[int(np.argmin(squares.sum(axis=1)))]
    errors = []
    for left in range(given.size):
        others = np.arange(given.size) != left
        best = int(np.argmin(squares[:, others].sum(axis=1)))
        errors.append(float(wanted[best, left] / given[left] - 1))
    return Fit(Acceptance(float(first), float(decay)), tuple(errors))


@lru_cache(maxsize=8)
def _grid(count: int, geometric: bool) -> tuple[Floats, Floats]:
    """Every (first, decay) of the search, and the lengths of 1 to ``count`` drafted tokens that each gives."""
    firsts = np.arange(0.0, 1.0, _STEP)
    decays = np.ones(1) if geometric else np.arange(0.5, 1.0 + _STEP, 5 * _STEP)
    pairs = np.stack(np.meshgrid(firsts, decays, indexing="ij"), axis=-1).reshape(-1, 2)
    chances = pairs[:, :1] * np.minimum(pairs[:, 1:], 1.0) ** np.arange(count)
    return np.minimum(pairs, 1.0), 1 + np.cumsum(np.cumprod(chances, axis=1), axis=1)


@lru_cache(maxsize=1)
def typical() -> Acceptance:
    """The measured row whose fitted length at 3 drafted tokens is the median of the table: for a model not in it."""
    fits = sorted((fit(row.lengths).acceptance for row in table()), key=lambda item: float(item.length(3)))
    return fits[len(fits) // 2]
