"""Megatron-LM and its relatives: ``iteration 201/ 250000 | ... | elapsed time per iteration (ms): 139113.4 | ...``.

With a log interval above one the time is the mean over the interval. Timer lines give phases.
"""

import re
from pathlib import Path

from ridgeline.trace.logs import NS, Log, LogReader, StepRows, number, text_lines
from ridgeline.trace.salvage import Ledger

_ITERATION = re.compile(r"\biteration\s+(\d{1,15})/\s*(?:\d+|infinity)\s*\|")
_ELAPSED = re.compile(r"elapsed time per iteration \((ms|s)\):\s*([\d.]+(?:[eE][+-]?\d+)?)")
_FIELDS = re.compile(r"\| ?(lm loss|grad norm|throughput per GPU \(TFLOP/s/GPU\)):\s*([\d.]+(?:E[+-]?\d+)?)")
_TIMER_LINE = re.compile(r"^\s*time \(ms\)\s*\|")
_TIMER = re.compile(r"\|\s*([a-z][a-z0-9/_-]{0,60}):\s*([\d.]+)")
_TIMER_ROW = re.compile(r"^\s{2,}([a-z][a-z0-9/_-]{0,60}) \.+: \(([\d.]+), ([\d.]+)\)")
_CHECKPOINT = re.compile(r"saving checkpoint at iteration\s+(\d{1,15})")
_EVALUATION = re.compile(r"validation loss at iteration\s+(\d{1,15})")
_SNIFF = re.compile(rb"iteration\s+\d+/\s*(\d+|infinity)\s*\|.*elapsed time per iteration \(m?s\):")


def _read(path: Path) -> tuple[Log, ...]:
    ledger, rows = Ledger(str(path)), StepRows()
    for line in text_lines(path, ledger):
        iteration, elapsed = _ITERATION.search(line), _ELAPSED.search(line)
        if iteration and elapsed:
            rows.add(int(iteration[1]), per_step_ns=number(elapsed[2]) * NS[elapsed[1]])
            for name, text in _FIELDS.findall(line):
                rows.value(name, number(text))
        elif iteration:
            ledger.add("iteration line that is cut short or malformed")
        elif _TIMER_LINE.match(line):
            for name, text in _TIMER.findall(line):
                rows.phase(name, number(text) * NS["ms"])
        elif timer := _TIMER_ROW.match(line):
            rows.phase(timer[1], number(timer[3]) * NS["ms"])  # the slowest rank's
        elif found := _CHECKPOINT.search(line):
            rows.mark("checkpoint", int(found[1]))
        elif found := _EVALUATION.search(line):
            rows.mark("evaluation", int(found[1]))
    return (rows.build(ledger, format="Megatron-LM", path=str(path), resolution_ns=NS["ms"] // 10),)


READER = LogReader("Megatron-LM", lambda head, _: _SNIFF.search(head) is not None, _read)
