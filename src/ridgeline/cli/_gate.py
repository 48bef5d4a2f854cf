"""What the gates share: two runs, the plan that decides, and how a decision leaves the process."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ridgeline.cli import _report, _talk

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ridgeline.core.case import Case
    from ridgeline.gate.case import Decided
    from ridgeline.gate.evidence.pairing import Pairs
    from ridgeline.gate.evidence.samples import Samples
    from ridgeline.gate.registration.plan import Plan

REPORT = Path("gate-report")

Baseline = Annotated[
    str, typer.Option("--baseline", metavar="PATH", help="Results that are trusted; PATH#COLUMN names one column.")
]
Candidate = Annotated[str, typer.Option("--candidate", metavar="PATH", help="Results to decide on, in the same form.")]
Slices = Annotated[str, typer.Option("--slices", help="Column that cuts the examples into slices.")]
Metric = Annotated[list[str] | None, typer.Option("--metric", help="Metric to judge; all if none. Repeatable.")]
Margin = Annotated[str, typer.Option("--margin", help="Loss tolerated overall, such as 1% (nats for losses).")]
SliceMargin = Annotated[str, typer.Option("--slice-margin", help="Loss tolerated in one slice, such as 3%.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=NAME", help="Column of id, slice, cluster, error ... Repeatable."),
]
PlanFile = Annotated[
    Path | None, typer.Option("--registration", metavar="FILE", help="Record of `gate register`, or a plan as TOML.")
]
JUnit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")]
GitHub = Annotated[bool, typer.Option("--github", help="Also print GitHub annotations.")]
Folder = _report.Folder


@dataclass(frozen=True)
class CI:
    """What a command writes beside the report: JUnit XML, annotations, and which registration is cited."""

    junit: Path | None = None
    github: bool = False
    registration: Path | None = None


@dataclass(frozen=True)
class Asked:
    """Two runs and the margins, as typed: what the gates on pairs ask for."""

    baseline: str
    candidate: str
    slices: str
    metric: list[str] | None
    margin: str
    slice_margin: str
    column: list[str] | None


def compare(
    gate: str,
    decide: "Callable[[Pairs, Plan], Decided]",
    asked: Asked,
    ci: CI,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Decide on two runs by a gate on pairs, and leave as `decided` does."""
    chosen = plan(
        gate, ci.registration, asked.column, slices=asked.slices, metrics=tuple(asked.metric or ()),
        margin=asked.margin, slice_margin=asked.slice_margin,
    )  # fmt: skip
    options = {f"--{name.replace('_', '-')}": value for name, value in vars(asked).items()}
    words = _report.words([*options.items(), ("--registration", ci.registration)])
    found = decide(pairs(asked.baseline, asked.candidate, chosen), chosen)
    decided(found, f"ridgeline gate {gate} {words}", output, as_json=as_json, ci=ci, chosen=chosen)


def plan(gate: str, file: Path | None, columns: Sequence[str] | None, **flags: Any) -> "Plan":
    """The plan of a file, or of the flags.

    Beside a plan that is a TOML file flags must agree with it; beside a registration they win, and the report says so.
    Raises `InputError` for flags that contradict a TOML file, or a plan of another gate.
    """
    from ridgeline.core.errors import InputError
    from ridgeline.core.specs import build
    from ridgeline.gate.registration.plan import Plan

    said = {name: value for name, value in flags.items() if value not in ("", None, ())}
    if columns:
        said["columns"] = dict(_column(text) for text in columns)
    if file is None:
        return build(Plan, {"gate": gate, **said})
    found = _planned(file)
    if found.gate != gate:
        raise InputError.expected(f"a plan of the gate {gate}", found.gate, where=f"{file}: $.gate")
    if columns:  # beside those of the plan, not instead of them
        clash = [role for role, name in said["columns"].items() if found.columns.get(role, name) != name]
        if record_of(file) is None and clash:
            got = f"{said['columns'][clash[0]]} beside {found.columns[clash[0]]} in the plan"
            raise InputError.expected("columns that agree with the plan", got, where=f"--column {clash[0]}")
        found = found if record_of(file) else found.model_copy(update={"columns": {**found.columns, **said["columns"]}})
        said["columns"] = {**found.columns, **said["columns"]}
    given = build(Plan, {"gate": gate, **said})
    if record_of(file) is not None:
        return found.model_copy(update={name: getattr(given, name) for name in said})
    for name in said:
        if getattr(found, name) != getattr(given, name):
            got = f"{name} = {getattr(given, name)} beside {getattr(found, name)} in the plan"
            raise InputError.expected("flags that agree with the plan", got, where=f"--{name.replace('_', '-')}")
    return found


def _planned(file: Path) -> "Plan":
    from ridgeline.gate.registration.plan import read_plan
    from ridgeline.gate.registration.record import read_record

    return read_record(file).plan if file.suffix == ".json" else read_plan(file)


def record_of(file: Path | None) -> Path | None:
    """The record that ``--registration`` names: the file itself, or the one beside a TOML file; None without one."""
    from ridgeline.gate.registration.record import place_of

    if file is None or file.suffix == ".json":
        return file
    return place_of(file) if place_of(file).exists() else None


def _column(text: str) -> tuple[str, str]:
    from ridgeline.core.errors import InputError

    role, equals, name = text.partition("=")
    if not equals or not role or not name:
        raise InputError.expected("a role and a column", text, where="--column", hint="such as --column id=doc_id")
    return role, name


def pairs(baseline: str, candidate: str, chosen: "Plan") -> "Pairs":
    """Both runs, paired by content. Raises `InputError` as reading and pairing do."""
    from ridgeline.gate.evidence.pairing import pair

    found = run(baseline, chosen), run(candidate, chosen)
    for text, item in zip((baseline, candidate), found, strict=True):
        _refuse_unknown(text, item, chosen)
    return pair(*found)


def _refuse_unknown(text: str, found: "Samples", chosen: "Plan") -> None:
    """Raise `InputError`, with the metrics that are there, for one that the run does not have."""
    from ridgeline.core.errors import InputError, did_you_mean

    wanted = [name for name in chosen.metrics if name not in (*found.scores, "calibration")]
    if not wanted:
        return
    there = run(text, chosen.model_copy(update={"metrics": ()})).scores
    hint = did_you_mean(wanted[0], there, "metrics: " + (", ".join(there) or "none"))
    raise InputError.expected("a metric of the run", wanted[0], where=text, hint=hint)


def run(text: str, chosen: "Plan") -> "Samples":
    """One run, with the plan's columns. Raises `InputError` as reading does."""
    from dataclasses import replace

    from ridgeline.gate.evidence.reader import Wanted, read

    path, _, column = text.partition("#") if not Path(text).exists() else (text, "", "")
    roles = {**chosen.columns}
    for role in ("slice", "cluster"):
        named = getattr(chosen, "slices" if role == "slice" else role)
        if named and role not in roles and named != role:
            roles[role] = named
    metrics = () if "calibration" in chosen.metrics else chosen.metrics  # it needs an answer beside the confidence
    wanted = Wanted({**roles, "score": column} if column else roles, ("score",) if column else metrics)
    found = read(path, wanted)
    return replace(found, run=column) if column else found


def decided(
    found: "Decided",
    command: str,
    output: Path | None,
    *,
    as_json: bool,
    ci: "CI | None" = None,
    chosen: "Plan | None" = None,
) -> None:
    """Print and write the decision, and leave with the exit code of its outcome.

    ``chosen`` is the plan that decided, for gates whose margins can be registered; ``ci`` what else is written.
    """
    from ridgeline.core.config import load
    from ridgeline.gate.case import case_of
    from ridgeline.gate.decision import EXIT
    from ridgeline.gate.junit import annotations, junit

    config, asked = load(), ci or CI()
    if chosen is not None:
        found = _registered(found, asked.registration, chosen, command)
    case = case_of(found, command=command, config=config)
    if asked.junit is not None:
        asked.junit.parent.mkdir(parents=True, exist_ok=True)
        asked.junit.write_text(junit(found, case), encoding="utf-8")
    if asked.github:  # stdout is the card's; beside --json it is one document, so that annotations go to stderr
        stream = sys.stderr if as_json else sys.stdout
        print("\n".join(annotations(found, case)), file=stream, flush=True)
    place = output or REPORT
    _report.keep_inputs(case, place, found.gate.name)
    if place.suffix == ".json":
        _write_case(case, place, as_json=as_json)
    else:
        _talk.report(case, place, found.gate.name, as_json=as_json)
    if EXIT[found.outcome]:
        raise typer.Exit(EXIT[found.outcome])


def _write_case(case: "Case", place: Path, *, as_json: bool) -> None:
    """The case alone, into a file; findings do not decide the exit code, the outcome does."""
    text = case.dumps()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    if as_json:
        sys.stdout.write(text)
    else:
        _talk.emit_card(_talk.plain_card(case))


def _registered(found: "Decided", file: Path | None, chosen: "Plan", command: str) -> "Decided":
    """The decision with what its registration says; the look is logged beside the record."""
    from datetime import UTC, datetime

    from ridgeline.core.config import load
    from ridgeline.gate.registration.cited import Cited, with_registration
    from ridgeline.gate.registration.looks import Look, data_hash, next_look, place_of, read_looks, utc
    from ridgeline.gate.registration.record import Seen, read_record

    place = record_of(file)
    if place is None:
        return with_registration(found, Cited(chosen), load())
    record, log = read_record(place), place_of(place)
    looks = read_looks(log, record.sha256)
    files = tuple((item.path, item.sha256, _written(item.path)) for item in found.inputs)
    data = data_hash([sha256 for _, sha256, _ in files])
    ids = found.ids() if any(item.kind == "ids" for item in record.data) else ()
    n = max((check.interval.n for check in found.checks), default=0)
    cited = Cited(chosen, record, Seen(files, ids), looks, data, n)
    told = with_registration(found, cited, load())
    look = Look(record.sha256, utc(datetime.now(UTC)), data, n, str(told.outcome), command)
    if line := next_look(looks, look):
        with log.open("a", encoding="utf-8") as stream:
            stream.write(line)
    return told


def _written(path: str) -> "datetime | None":
    from datetime import UTC, datetime

    file = Path(path)
    return datetime.fromtimestamp(file.stat().st_mtime, UTC) if file.exists() else None
