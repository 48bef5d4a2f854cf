"""``ridgeline gate register``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _gate, _report, _talk

if TYPE_CHECKING:
    from ridgeline.gate.registration.plan import Plan
    from ridgeline.gate.registration.record import Data

Spec = Annotated[
    Path, typer.Argument(metavar="SPEC", help="The plan: a TOML file with margins, slices, metrics, alpha.")
]
DataFiles = Annotated[
    list[Path] | None, typer.Option("--data", metavar="FILE", help="Data to decide on; its hash is kept. Repeatable.")
]
Ids = Annotated[bool, typer.Option("--ids", help="Keep the hash of the examples' ids, not of the whole file.")]
PilotBase = Annotated[
    str, typer.Option("--pilot-baseline", metavar="PATH", help="Pilot results: n from their variance.")
]
PilotCand = Annotated[str, typer.Option("--pilot-candidate", metavar="PATH", help="Pilot results of another run.")]
Place = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="The record; beside SPEC if not named.")
]


def command(
    spec: Spec,
    data: DataFiles = None,
    ids: Ids = False,
    pilot_baseline: PilotBase = "",
    pilot_candidate: PilotCand = "",
    output: Place = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Write a plan down before the data is seen: margins, slices, n, the data's hash, the time, signed by a hash.

    A registration is never written over. Gates cite it with --registration, and say where they depart from it.
    """
    from datetime import UTC, datetime

    from ridgeline.core.case import InputFile, tool_version
    from ridgeline.core.errors import InputError
    from ridgeline.gate.gate import find_gate
    from ridgeline.gate.registration.plan import read_plan
    from ridgeline.gate.registration.record import dumps, place_of
    from ridgeline.gate.registration.required import Registering, case_of, register

    chosen, place = read_plan(spec), output or place_of(spec)
    find_gate(chosen.gate)
    if place.exists():
        hint = "a registration is not written over: name another file with -o, and say why in `note`"
        raise InputError.expected("a new file for the record", str(place), where="-o", hint=hint)
    if bool(pilot_baseline) != bool(pilot_candidate):
        raise InputError.expected("two pilot runs, or none", "one", where="--pilot-baseline and --pilot-candidate")
    kept, there = _kept(data or [], chosen, ids=ids)
    pilot = _gate.pairs(pilot_baseline, pilot_candidate, chosen) if pilot_baseline else None
    record = register(Registering(chosen, kept, datetime.now(UTC), tool_version(), pilot, there))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(dumps(record), encoding="utf-8")
    words = _report.words([
        ("", spec), ("--data", data), ("--ids", ids), ("--pilot-baseline", pilot_baseline),
        ("--pilot-candidate", pilot_candidate), ("-o", output),
    ])  # fmt: skip
    inputs = tuple(InputFile.of(item) for item in [spec, *(data or [])])
    case = case_of(record, inputs, str(place), f"ridgeline gate register {words}")
    _talk.hand_over(case, _talk.plain_card, as_json=as_json)


def _kept(files: list[Path], chosen: "Plan", *, ids: bool) -> tuple[tuple["Data", ...], dict[str, int]]:
    """The hashes of the data, and how many examples they hold overall and by slice (ids alone)."""
    from ridgeline.core.case import InputFile
    from ridgeline.core.errors import InputError
    from ridgeline.gate.registration.record import Data, hash_of_ids
    from ridgeline.gate.statistics.slices import sizes

    found: list[Data] = []
    there: dict[str, int] = {}
    for file in files:
        if not file.is_file():
            raise InputError.expected("a file of data", "no such file", where=str(file))
        if not ids:
            found.append(Data(str(file), "file", InputFile.of(file).sha256))
            continue
        run = _gate.run(str(file), chosen)
        found.append(Data(str(file), "ids", hash_of_ids(run.keys.tolist()), len(run)))
        there["overall"] = there.get("overall", 0) + len(run)
        if chosen.slices in run.labels:
            for name, count in sizes(run.labels[chosen.slices]).items():
                there[name] = there.get(name, 0) + count
    return tuple(found), there
