"""Points: the runs of a ladder as one table of float64 columns, with the line of each run in its file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError

Array = NDArray[np.float64]
LABELS = ("recipe", "seed", "budget", "schedule", "run")  # what makes runs alike, or tells them apart
PARAMS = ("total", "non-embedding", "active", "unstated")  # which parameters N counts


@dataclass(frozen=True)
class Points:
    """Runs of a ladder, n of them.

    ``columns``: ``N`` (parameters, counted as ``params`` says), ``D`` (tokens), ``C`` (FLOP), ``loss`` (nats per
    token), and where known ``U`` (unique tokens), ``lr``, ``batch`` (tokens) and whatever else a form reads,
    each float64 of shape (n,). ``labels``: text columns of `LABELS`, shape (n,). ``rows`` is the line of each run in
    its file (the header is line 1; a file without lines counts its runs from 1), ``lost`` what was dropped and why.
    ``assumed`` says what the reader filled in.
    """

    columns: Mapping[str, Array]
    labels: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    params: str = "unstated"
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    lost: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    source: InputFile | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Array:
        """A column. Raises `InputError` where the ladder has none of that name."""
        if name not in self.columns:
            raise InputError.expected(f"a column {name}", ", ".join(self.columns), where=self.path)
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    @property
    def path(self) -> str:
        """The file as the user named it, for messages."""
        return self.source.path if self.source else "the points"

    @property
    def compute(self) -> Array:
        """The compute of each run (n,), FLOP: the column C, else 6ND. Raises `InputError` where neither is there."""
        return self["C"] if "C" in self else 6 * self["N"] * self["D"]

    def take(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> "Points":
        """The runs of a mask or of indices."""
        return replace(
            self,
            columns={name: values[keep] for name, values in self.columns.items()},
            labels={name: values[keep] for name, values in self.labels.items()},
            rows=self.rows[keep] if len(self.rows) else self.rows,
        )

    def place(self, index: int) -> str:
        """Where a run is: its line, else its number from 1."""
        return f"line {self.rows[index]}" if len(self.rows) else f"run {index + 1}"

    def label(self, *names: str) -> NDArray[np.str_]:
        """The labels of each run joined, shape (n,); empty texts where the ladder has none of them."""
        joined = np.full(len(self), "", dtype=object)
        for name in names:
            if name in self.labels:
                joined = joined + np.where(joined == "", "", " / ") + self.labels[name].astype(object)
        return joined.astype(np.str_)

    def require(self, runs: int, what: str) -> None:
        """Raise `InputError` where fewer than ``runs`` distinct (N, D) are there for ``what``."""
        names = [name for name in ("N", "D") if name in self.columns]
        distinct = len(np.unique(np.stack([self.columns[name] for name in names]), axis=1).T) if names else len(self)
        if distinct < runs:
            got = f"{distinct}" if distinct == len(self) else f"{distinct} among {len(self)} runs"
            raise InputError.expected(f"at least {runs} different (N, D) for {what}", got, where=self.path)
