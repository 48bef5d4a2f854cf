"""``examples/gates/ood``: a detector whose false alarms rise in the field, week by week, at one kind of site."""

import tempfile
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

from numpy.random import Generator
from scripts.gate_examples.example import Example, table

from ridgeline.core.specs import build
from ridgeline.gate.detector.history import History
from ridgeline.gate.detector.labelled import read_labelled
from ridgeline.gate.gates.ood import Samples, decide
from ridgeline.gate.registration.plan import Plan

SITES = ("gate", "tunnel", "yard")
RARE = 1 / 900  # positives in the field; one in five offline
WEEKS = {0: 0.012, 1: 0.02, 2: 0.05, 3: 0.09}  # false-positive rate in the yard
START = date(2026, 5, 4)
CUT = "risk>=0.8"


def _rows(rng: Generator, n: int, positives: float, yard: float) -> str:
    rows = []
    for i in range(n):
        label, site = int(rng.random() < positives), SITES[i % 3]
        false = yard if site == "yard" else 0.01
        alarm = rng.random() < (0.92 if label else false)
        risk = rng.uniform(0.8, 1.0) if alarm else rng.uniform(0.0, 0.8)
        rows.append((f"frame-{i:05d}", label, f"{risk:.3f}", site))
    return table(("id", "label", "risk", "site"), rows)


def _files(rng: Generator) -> Mapping[str, str]:
    offline = _rows(rng, 4500, 0.2, 0.01)
    weeks = [_rows(rng, 3000, RARE, yard) for yard in WEEKS.values()]
    return {"offline.csv": offline, "field.csv": weeks[-1], "log.jsonl": _log(offline, weeks)}


def _log(offline: str, weeks: list[str]) -> str:
    """What the gate wrote, run once a week."""
    plan = build(Plan, {"gate": "ood", "slices": "site"})
    history, lines = History(), []
    with tempfile.TemporaryDirectory() as folder:
        tested, field = Path(folder) / "offline.csv", Path(folder) / "field.csv"
        tested.write_text(offline, encoding="utf-8")
        for week, rows in enumerate(weeks):
            field.write_text(rows, encoding="utf-8")
            old, new = (read_labelled(f"{path}#{CUT}", plan) for path in (tested, field))
            day = (START + timedelta(weeks=week)).isoformat()
            look = decide(Samples(old, new, day, history, logged=True), plan).look
            assert look is not None
            lines.append(history.line(look))
            history = history.after(look)
    return "".join(lines)


EXAMPLE = Example(
    "ood",
    "A detector tested on frames of which one in five holds what it looks for, and met by frames of which one in 900\n"
    "does. Offline and at two kinds of site one frame in a hundred raises a false alarm; in the yard it is one in\n"
    "eleven after four weeks. The gate reads the fourth week, beside the log of all four looks. The second has no\n"
    "sample of the field, and no test set can stand in for one.",
    ("ood", "--offline", f"{{here}}/offline.csv#{CUT}", "--field", f"{{here}}/field.csv#{CUT}", "--slices", "site",
     "--log", "{here}/log.jsonl", "--date", "2026-05-25"),
    _files,
    {"no field sample": ("ood", "--offline", f"{{here}}/offline.csv#{CUT}")},
)  # fmt: skip
