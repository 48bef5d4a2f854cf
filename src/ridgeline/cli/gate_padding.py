"""``ridgeline gate padding``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _gate, _report, _talk

if TYPE_CHECKING:
    from ridgeline.gate.gates.padding import Setting

Batch = Annotated[
    Path, typer.Argument(metavar="BATCH", help="Lengths (text, CSV, JSONL, Parquet), or ids or masks (also .npy).")
]
Longest = Annotated[str, typer.Option("--max-length", metavar="TOKENS", help="Length that is padded to, such as 4096.")]
Model = Annotated[str, typer.Option("--model", help="Model by name or config.json: also the FLOPs on zeros.")]
PadId = Annotated[int | None, typer.Option("--pad-id", metavar="ID", help="Token id that is padding.")]
Size = Annotated[int | None, typer.Option("--batch-size", min=1, help="Sequences of a batch, in the file's order.")]
Waste = Annotated[str, typer.Option("--margin", help="Padding ratio that is tolerated, such as 40%.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=NAME", help="Column of length, mask, ids or slice. Repeatable."),
]


def command(
    batch: Batch,
    max_length: Longest = "",
    model: Model = "",
    pad_id: PadId = None,
    batch_size: Size = None,
    margin: Waste = "",
    column: Columns = None,
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Token slots of a real batch that hold a token, what multiplies zeros, and what would recover it.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.gate.gates.padding import decide
    from ridgeline.gate.padding.lengths import Declared, read_lengths

    chosen = _gate.plan("padding", registration, column, margin=margin, slice_margin=margin)
    columns = {**({"slice": chosen.slices} if chosen.slices else {}), **chosen.columns}
    found = read_lengths(batch, Declared(columns, pad_id))
    words = _report.words([
        ("", batch), ("--max-length", max_length), ("--model", model), ("--pad-id", pad_id),
        ("--batch-size", batch_size), ("--margin", margin), ("--column", column), ("--registration", registration),
    ])  # fmt: skip
    result = decide(found, _setting(max_length, batch_size, model), chosen)
    ci = _gate.CI(junit, github, registration)
    _gate.decided(result, f"ridgeline gate padding {words}", output, as_json=as_json, ci=ci, chosen=chosen)


def _setting(max_length: str, batch_size: int | None, model: str) -> "Setting":
    from ridgeline.arithmetic.named import find_model
    from ridgeline.core import parse
    from ridgeline.gate.gates.padding import Setting

    longest = parse.context(max_length, where="--max-length") if max_length else None
    if not model:
        return Setting(longest, batch_size)
    spec, file = find_model(model)
    return Setting(longest, batch_size, spec, (file,))
