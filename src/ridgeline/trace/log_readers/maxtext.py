"""MaxText: ``completed step: 9, seconds: 1.341, TFLOP/s/device: 257.929, Tokens/s/device: 36653.244, loss: 0.000``."""

import re
from pathlib import Path

from ridgeline.trace.logs import NS, Log, LogReader, StepRows, number, text_lines
from ridgeline.trace.salvage import Ledger

_LINE = re.compile(r"completed step: (\d{1,15}), seconds: ([\d.]+(?:e[+-]?\d+)?)")
_FIELD = re.compile(r"(TFLOP/s/device|Tokens/s/device|loss): ([\d.]+(?:e[+-]?\d+)?)")
_EVALUATION = re.compile(r"eval(?:uation)? metrics after step:? (\d{1,15})", re.IGNORECASE)
_CHECKPOINT = re.compile(r"sav(?:ed|ing) (?:a )?checkpoint (?:at|for) step:? (\d{1,15})", re.IGNORECASE)


def _read(path: Path) -> tuple[Log, ...]:
    ledger, rows = Ledger(str(path)), StepRows()
    for line in text_lines(path, ledger):
        if match := _LINE.search(line):
            rows.add(int(match[1]), per_step_ns=number(match[2]) * NS["s"])
            for name, text in _FIELD.findall(line):
                rows.value(name, number(text))
        elif "completed step:" in line:
            ledger.add("step line that is cut short or malformed")
        elif found := _EVALUATION.search(line):
            rows.mark("evaluation", int(found[1]))
        elif found := _CHECKPOINT.search(line):
            rows.mark("checkpoint", int(found[1]))
    return (rows.build(ledger, format="MaxText", path=str(path), resolution_ns=NS["ms"]),)


READER = LogReader("MaxText", lambda head, _: b"completed step: " in head and b", seconds: " in head, _read)
