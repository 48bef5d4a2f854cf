"""The log of a gate's looks at the field, one line of JSON a run: only added to, each line with the hash of the last.

A run on the same two samples is the same look, and is not written again.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from datetime import date
from math import isfinite
from pathlib import Path

from ridgeline.core.errors import InputError

START = "0" * 16  # what stands before the first line


@dataclass(frozen=True)
class Seen:
    """One look. ``delta`` is the error rate of the field minus that of the offline sample, ``low`` and ``high`` bounds.

    ``field`` and ``offline`` are hashes of what was read, ``alpha`` the level of this look alone, ``margin`` the rise
    that was tolerated.
    """

    date: str
    metric: str
    field: str
    offline: str
    field_rate: float
    offline_rate: float
    delta: float
    low: float
    high: float
    n_field: int
    n_offline: int
    alpha: float
    margin: float
    outcome: str

    @property
    def alarm(self) -> bool:
        """Whether the rise is past its margin for certain, by that look."""
        return self.outcome == "NO-SHIP"

    @property
    def rose(self) -> bool:
        """Whether the field is worse than the offline sample for certain, by that look."""
        return self.low > 0

    def same_data(self, other: "Seen") -> bool:
        """Whether another look was at the same two samples, for the same rate."""
        return (self.metric, self.field, self.offline) == (other.metric, other.field, other.offline)


@dataclass(frozen=True)
class History:
    """The looks of a log in their order; ``last`` is the hash that the next line begins with."""

    looks: tuple[Seen, ...] = ()
    last: str = START

    def number(self, look: Seen) -> int:
        """Which look this is of its rate, from 1; the same data are the same look."""
        alike = [item for item in self.looks if item.metric == look.metric]
        return next((i for i, item in enumerate(alike, 1) if item.same_data(look)), len(alike) + 1)

    def line(self, look: Seen) -> str:
        """The line to add; empty where the same look is there.

        Raises `InputError` for a date before the last look's.
        """
        if any(item.same_data(look) for item in self.looks):
            return ""
        if self.looks and look.date < self.looks[-1].date:
            got = f"{look.date} after {self.looks[-1].date}"
            raise InputError.expected("a date not before the last look's", got, where="--date")
        return json.dumps({**asdict(look), "before": self.last}) + "\n"

    def after(self, look: Seen) -> "History":
        """The log with this look at its end."""
        line = self.line(look)
        return History((*self.looks, look), _hash(line)) if line else self


def read_history(path: Path | None) -> History:
    """The log; an empty one where there is no file yet.

    Raises `InputError` for a line that is no look, that was changed, or before which one was taken out.
    """
    if path is None or not path.exists():
        return History()
    found, before = [], START
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}, line {number}"
        chained, look = _look(line, where)
        if chained != before:
            hint = "a log is only added to; begin another file where looks are not to be counted on"
            raise InputError.expected("the hash of the line before", chained, where=where, hint=hint)
        found.append(look)
        before = _hash(line)
    return History(tuple(found), before)


def _look(line: str, where: str) -> tuple[str, Seen]:
    try:
        said = json.loads(line)
        chained = said.pop("before")
        look = Seen(**said)
        date.fromisoformat(look.date)
        numbers = [getattr(look, item.name) for item in fields(Seen) if item.type in (float, int)]
        whole = all(isfinite(value) for value in numbers)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError.expected("a look of this gate", line, where=where) from error
    if not whole:
        raise InputError.expected("a look of finite numbers", line, where=where)
    return chained, look


def _hash(line: str) -> str:
    return hashlib.sha256(line.strip().encode()).hexdigest()[: len(START)]
