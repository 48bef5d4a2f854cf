"""``ridgeline gate rewrite``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _talk

Traces = Annotated[Path, typer.Argument(metavar="TRACES", help="AgentDojo, tau-bench, or JSON lines with messages.")]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="JSON lines to write.")]
Seed = Annotated[int, typer.Option("--seed", help="Which templates a trace gets.")]


def command(traces: Traces, output: Output, seed: Seed = 0, as_json: _talk.AsJson = False) -> None:
    """Write every trace with no, a benign and a candid rationale: same actions, other words."""
    import json

    from ridgeline.core.format import printable
    from ridgeline.gate.traces.rewrite import record, variants
    from ridgeline.gate.traces.trace import by_pair, read_traces

    found = read_traces(traces)
    groups = list(by_pair(found.rows))
    rows = [record(item) for group in groups for item in variants(group[0], seed)]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    for loss in found.lost:
        _talk.say(printable(f"lost: {loss.count:,} {loss.what} ({loss.where})"))
    if as_json:
        _talk.emit_json({"file": str(output), "traces": len(rows), "pairs": len(groups)})
        return
    _talk.emit(f"Wrote {len(rows):,} traces, three rationales of {len(groups):,}, to {output}.")
