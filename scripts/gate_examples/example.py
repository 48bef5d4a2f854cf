"""The example of a gate: files, the command that reads them, and what of its case is kept as golden."""

import csv
import io
import json
import shlex
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

DIGITS = 6  # of a golden value; what differs beyond is the platform's arithmetic


@dataclass(frozen=True, eq=False)  # found by walking: each is itself alone
class Example:
    """``files`` draws file name -> content; ``command`` is what follows ``ridgeline gate``, each word of its own.

    ``{here}`` in a word is the example's folder. ``about`` is what a reader must know, in Markdown: what was built
    into the data, and what the gate then says. ``variants`` are further command lines, by a word each.
    """

    gate: str
    about: str
    command: tuple[str, ...]
    files: Callable[[Generator], Mapping[str, str | bytes]]
    variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def arguments(self, here: str, variant: str = "") -> list[str]:
        """The words after ``ridgeline``, with the folder of the example."""
        words = self.variants[variant] if variant else self.command
        return ["gate", *(word.replace("{here}", here) for word in words)]

    def drawn(self) -> dict[str, bytes]:
        """Every file with its content, the same each time."""
        rng = np.random.default_rng(zlib.crc32(self.gate.encode()))
        made = self.files(rng)
        return {name: text.encode() if isinstance(text, str) else text for name, text in made.items()}

    def readme(self) -> str:
        """The page of the folder."""
        lines = [shlex.join(["ridgeline", *self.arguments(f"examples/gates/{self.gate}", name)])
                 for name in ("", *self.variants)]  # fmt: skip
        shown = "\n".join(lines)
        drawn = f"Drawn from a seed by `scripts/gate_examples/{self.gate.replace('-', '_')}.py`, not recorded."
        return f"# Example: `ridgeline gate {self.gate}`\n\n{self.about.strip()}\n\n```\n{shown}\n```\n\n{drawn}\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def lines(records: Iterable[Mapping[str, Any]]) -> str:
    """A file of JSON lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def golden(document: Mapping[str, Any], code: int) -> dict[str, Any]:
    """What of a case must stay as it is: outcome, names, units, verdicts, and values to six digits."""
    quantities = {
        name: [_rounded(item["value"]), item["unit"]]
        for name, item in document["quantities"].items()
        if isinstance(item["value"], int | float) and not isinstance(item["value"], bool)
    }
    return {
        "tool": document["tool"],
        "outcome": document["decision"].partition(":")[0],
        "exit": code,
        "findings": sorted(f"{item['code']} {item['verdict']}" for item in document["findings"]),
        "quantities": dict(sorted(quantities.items())),
        "tables": {name: [column["name"] for column in item["columns"]] for name, item in document["tables"].items()},
        "charts": sorted(document["charts"]),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
