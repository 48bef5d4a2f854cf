"""A reader of evaluation logs: one file of ``readers`` each; chosen by what the file holds, or by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ridgeline.core import plugins
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.gate.evidence.samples import Samples

PACKAGE = "ridgeline.gate.evidence.readers"
ROLES = ("id", "slice", "cluster", "prompt", "output", "error", "confidence")


@dataclass(frozen=True)
class Wanted:
    """What the user declared: the column of a role or metric, the metrics to keep (empty: all), a filter's name.

    Raises `InputError` for a column that is declared for nothing.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    filter: str = ""

    def keeps(self, metric: str) -> bool:
        """Whether this metric was asked for."""
        return not self.metrics or metric in self.metrics


@dataclass(frozen=True)
class Reader:
    """``sniff`` looks at a path and says whether it is this format; ``last`` readers are asked after all others."""

    name: str
    title: str
    sniff: Callable[[Path], bool]
    read: Callable[[Path, Wanted], Samples]
    last: bool = False


def readers() -> dict[str, Reader]:
    """Every reader by its name, general ones last."""
    found = plugins.load(PACKAGE, Reader, kind="evidence_reader")
    return {item.name: item for item in sorted(found, key=lambda item: (item.last, item.name))}


def read(path: str | Path, wanted: Wanted | None = None, *, form: str = "") -> Samples:
    """One run's results. Raises `InputError` for a path that is not there, an unknown ``form`` or unknown content."""
    file, known = Path(path), readers()
    if not file.exists():
        raise InputError.expected("an evaluation log", "no such file", where=str(path))
    if form and form not in known:
        raise InputError.expected("a log format", form, where="--format", hint=did_you_mean(form, known, _list(known)))
    chosen = known[form] if form else next((item for item in known.values() if item.sniff(file)), None)
    if chosen is None:
        raise InputError.expected("a known evaluation log", "another file", where=str(path), hint=_list(known))
    return chosen.read(file, wanted or Wanted())


def _list(known: Mapping[str, Reader]) -> str:
    return "formats: " + ", ".join(known)
