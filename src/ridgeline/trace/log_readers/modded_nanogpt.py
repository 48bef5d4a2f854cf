"""modded-nanogpt: ``step:12/2245 train_time:713ms step_avg:59.42ms``.

The clock is cumulative and stops for validation.
"""

import re
from pathlib import Path

from ridgeline.trace.logs import NS, Log, LogReader, StepRows, number, text_lines
from ridgeline.trace.salvage import Ledger

_LINE = re.compile(
    r"^step:(?P<step>\d{1,15})/\d+ (?:(?P<kind>train|val)_loss:(?P<loss>\S+) )?"
    r"train_time:(?P<time>\d{1,15})ms step_avg:\S*ms"
)
_SNIFF = re.compile(rb"^step:\d+/\d+ .*train_time:\d+ms step_avg:", re.MULTILINE)


def _read(path: Path) -> tuple[Log, ...]:
    ledger, rows = Ledger(str(path)), StepRows()
    for line in text_lines(path, ledger):
        match = _LINE.match(line)
        if match is None:
            if line.startswith("step:"):
                ledger.add("step line that is cut short or malformed")
            continue
        step = int(match["step"])
        if match["kind"] == "val":
            rows.mark("evaluation", step)
            continue
        rows.add(step, end_ns=int(match["time"]) * NS["ms"])
        if match["loss"]:
            rows.value("loss", number(match["loss"]))
    notes = ("the log's clock stops during validation: its time is not in the step times",)
    return (rows.build(ledger, format="modded-nanogpt", path=str(path), resolution_ns=NS["ms"], notes=notes),)


READER = LogReader("modded-nanogpt", lambda head, _: _SNIFF.search(head) is not None, _read)
