"""A workload: the requests that arrive, as frozen arrays in order of arrival."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT_CLASS = "default"
MOST_TOKENS = 1 << 30  # of one request: more is a damaged number


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Workload:
    """``n`` requests in order of arrival; every array has shape (n,) but the last two of the block hashes.

    ``arrival_s`` counts from the start of the trace. ``priority`` is smaller for what is more urgent, ``service`` is an
    index into ``classes`` (the classes that have their own SLO). ``hashes`` is flat: request ``i`` owns
    ``hashes[hash_offsets[i] : hash_offsets[i + 1]]``, one id per block of ``hash_tokens`` tokens of its prompt, equal
    where the whole prefix up to that block is equal. ``concurrency`` above zero closes the loop: that many clients each
    send the next request of the list ``think_s`` after their last one finished, and ``arrival_s`` is not used.
    Raises `InputError` that counts what is wrong.
    """

    arrival_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    priority: Ints = field(default_factory=_none)
    service: Ints = field(default_factory=_none)
    classes: tuple[str, ...] = (DEFAULT_CLASS,)
    hashes: Ints = field(default_factory=_none)
    hash_offsets: Ints = field(default_factory=_none)
    hash_tokens: int = 0
    concurrency: int = 0
    think_s: float = 0.0
    name: str = "workload"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrival_s", _array(self.arrival_s, np.float64, "arrival_s"))
        for name in ("input_tokens", "output_tokens", "priority", "service", "hashes", "hash_offsets"):
            object.__setattr__(self, name, _array(getattr(self, name), np.int64, name))
        for name in ("priority", "service"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, _array(np.zeros(len(self)), np.int64, name))
        if not len(self.hash_offsets):
            object.__setattr__(self, "hash_offsets", _array(np.zeros(len(self) + 1), np.int64, "hash_offsets"))
        self._check_lengths()
        self._check_values()
        self._check_hashes()

    def __len__(self) -> int:
        return len(self.arrival_s)

    @cached_property
    def span_s(self) -> float:
        """Seconds from the first arrival to the last."""
        return float(self.arrival_s[-1] - self.arrival_s[0])

    @property
    def closed(self) -> bool:
        """Whether clients wait for their last answer before they send the next request."""
        return self.concurrency > 0

    @property
    def has_hashes(self) -> bool:
        """Whether prefixes are known."""
        return len(self.hashes) > 0

    def _check_lengths(self) -> None:
        if not len(self):
            raise InputError.expected("at least one request", 0, where=self.name)
        for name in ("input_tokens", "output_tokens", "priority", "service"):
            if len(getattr(self, name)) != len(self):
                raise InputError.expected(f"{len(self)} values", len(getattr(self, name)), where=f"{self.name}: {name}")

    def _check_values(self) -> None:
        bad: Mapping[str, NDArray[np.bool_]] = {
            "times that are not finite": ~np.isfinite(self.arrival_s),
            "negative times": self.arrival_s < 0,
            "times before the one above": np.diff(self.arrival_s, prepend=self.arrival_s[0]) < 0,
            "requests without input": self.input_tokens < 1,
            "requests without output": self.output_tokens < 1,
            "requests of absurd length": self.input_tokens + self.output_tokens >= MOST_TOKENS,
            "requests of an unknown class": (self.service < 0) | (self.service >= len(self.classes)),
        }
        found = [
            f"{int(mask.sum())} {what} (first: row {int(mask.argmax())})" for what, mask in bad.items() if mask.any()
        ]
        if found:
            hint = "drop or repair these rows; sorting by arrival repairs the order"
            raise InputError.expected("a workload without faults", ", ".join(found), where=self.name, hint=hint)
        if self.concurrency < 0 or not 0 <= self.think_s < np.inf:
            raise InputError.expected("a concurrency and a think time of at least 0", self.concurrency, where=self.name)

    def _check_hashes(self) -> None:
        if not self.has_hashes:
            return
        where = f"{self.name}: block hashes"
        counts = np.diff(self.hash_offsets)
        if self.hash_tokens < 1:
            raise InputError.expected("the tokens of a hashed block", self.hash_tokens, where=where)
        ends = len(self.hash_offsets) == len(self) + 1 and self.hash_offsets[0] == 0
        if not ends or self.hash_offsets[-1] != len(self.hashes) or (counts < 0).any():
            raise InputError.expected("offsets from 0 to the number of hashes, rising", "others", where=where)
        over = counts > -(-self.input_tokens // self.hash_tokens)
        if over.any():
            got = f"{int(over.sum())} with more (first: row {int(over.argmax())})"
            raise InputError.expected("at most one hash per started block of the prompt", got, where=where)

    def take(self, rows: Iterable[int] | NDArray[np.int64] | NDArray[np.bool_] | slice) -> "Workload":
        """The requests of these rows, in order of arrival."""
        index = np.arange(len(self))[rows if isinstance(rows, slice | np.ndarray) else np.array(list(rows), np.int64)]
        index = index[np.argsort(self.arrival_s[index], kind="stable")]
        counts = np.diff(self.hash_offsets)[index]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        hashes = self.hashes[np.repeat(self.hash_offsets[index], counts) + within]
        return self.replace(
            **{name: getattr(self, name)[index] for name in _PER_REQUEST}, hashes=hashes, hash_offsets=offsets
        )

    def replace(self, **changes: object) -> "Workload":
        """A copy with these fields changed, checked again."""
        values = {item.name: getattr(self, item.name) for item in fields(self)} | changes
        return Workload(**values)

    def rate_scaled(self, factor: float) -> "Workload":
        """The same requests arriving ``factor`` times as fast."""
        if not 0 < factor < np.inf:
            raise InputError.expected("a factor above 0", factor, where="rate")
        return self.replace(arrival_s=self.arrival_s / factor)

    def tiled(self, copies: int) -> "Workload":
        """``copies`` of the trace one after another; a mean gap lies between two of them."""
        if copies < 1:
            raise InputError.expected("at least one copy", copies, where="copies")
        gap_s = self.span_s / max(1, len(self) - 1)
        shift = np.repeat(np.arange(copies) * (self.span_s + gap_s), len(self))
        offsets = np.arange(copies)[:, None] * len(self.hashes) + self.hash_offsets[None, :-1]
        return self.replace(
            **{name: np.tile(getattr(self, name), copies) for name in _PER_REQUEST if name != "arrival_s"},
            arrival_s=np.tile(self.arrival_s, copies) + shift,
            hashes=np.tile(self.hashes, copies),
            hash_offsets=np.append(offsets.ravel(), copies * len(self.hashes)),
        )


_PER_REQUEST = ("arrival_s", "input_tokens", "output_tokens", "priority", "service")


def _array(values: object, dtype: type, name: str) -> NDArray[np.generic]:
    """A read-only one-dimensional copy; whole numbers only where the field counts things."""
    try:
        array = np.array(values, dtype=np.float64 if dtype is np.float64 else None)
    except (TypeError, ValueError) as error:
        raise InputError.expected("numbers", values, where=name) from error
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
        raise InputError.expected("a list of numbers", values, where=name)
    if dtype is np.int64 and array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.floor(array))).all():
        raise InputError.expected("whole numbers", "fractions or values that are not finite", where=name)
    array = array.astype(dtype)
    array.setflags(write=False)
    return array
