"""``ridgeline serve latency``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _report, _serve, _talk

if TYPE_CHECKING:
    from ridgeline.core.case import InputFile
    from ridgeline.serve.steps.calibrate import Check
    from ridgeline.serve.steps.expected import Calibration


def command(
    model: Annotated[
        str, typer.Argument(metavar="[MODEL]", help="A name such as llama-3-70b, or a config.json, its folder, a TOML.")
    ] = "",
    device: Annotated[str, typer.Option("--device", help="Accelerator, such as H100; see `ridgeline devices`.")] = "",
    count: _serve.Count = 1,
    context: _serve.Context = "8k",
    answer: Annotated[str, typer.Option("--output-tokens", help="Tokens of an answer, part of --context.")] = "256",
    batch: Annotated[float, typer.Option("--batch", help="Requests at once, each replaced when it ends.")] = 1,
    measured: Annotated[
        Path | None, typer.Option("--measured", metavar="FILE", help="CSV of rows that you measured: sets the level.")
    ] = None,
    price: Annotated[float | None, typer.Option("--price", help="Dollars per chip-hour.")] = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE", help="CSV of many deployments instead of MODEL.")
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", metavar="FILE", help="TOML: parallel, weights, kv, engine, slo_tpot_ms, slo_ttft_ms."),
    ] = None,
    output: _serve.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Time to first token, time per token, tokens, dollars and joules of a deployment under a load.

    The report (latency.html, latency.json) is written to serve-report, or to the folder that -o names. With --rows the
    answers go to latency-rows.csv there, or to the .csv file that -o names.
    """
    from ridgeline.core import parse
    from ridgeline.core.case import InputFile
    from ridgeline.core.config import load
    from ridgeline.core.errors import InputError
    from ridgeline.core.specs import build, read_toml
    from ridgeline.serve.deployment import DEAREST
    from ridgeline.serve.steps.case import latency_case
    from ridgeline.serve.steps.facts import Settings, facts_of, load_for

    calibration, checks = _calibration(measured)
    files = [InputFile.of(path) for path in (measured, rows, spec) if path]
    if rows is not None:
        _table(rows, calibration, files, output, as_json=as_json)
        return
    if not model or not device:
        raise InputError.expected("a MODEL and a --device, or --rows FILE", model or "none", where="MODEL")
    if price is not None and not 0 <= price <= DEAREST:
        raise InputError.expected(f"a price of 0 to {DEAREST:,} dollars per chip-hour", price, where="--price")
    settings = build(Settings, read_toml(spec, what="settings file"), where=str(spec)) if spec else Settings()
    length, written = (
        parse.context(text, where=flag) for text, flag in ((context, "--context"), (answer, "--output-tokens"))
    )
    made, file = _serve.deployment(model, device, count, parallel=settings.parallel, weights=settings.weights,
                                   kv=settings.kv, engine=settings.engine)  # fmt: skip
    facts = facts_of(load_for(made, length, written, batch), settings, price, calibration, checks)
    words = _report.words([
        ("", model), ("--device", device), ("--count", count), ("--context", context), ("--output-tokens", answer),
        ("--batch", f"{batch:g}"), ("--measured", measured), ("--price", price), ("--spec", spec),
    ])  # fmt: skip
    case = latency_case(facts, command=f"ridgeline serve latency {words}", inputs=[file, *files], config=load())
    _serve.written(case, output, "latency", as_json=as_json)


def _calibration(path: Path | None) -> "tuple[Calibration | None, dict[str, Check]]":
    """What the user's rows say, and the leave-one-out check of it. Raises `InputError` where a row is refused."""
    if path is None:
        return None, {}
    from ridgeline.core.errors import InputError
    from ridgeline.serve.steps.calibrate import calibrate, leave_one_out
    from ridgeline.serve.steps.published import parse_all, read_rows
    from ridgeline.serve.steps.table_case import answer

    found, refused = answer(parse_all(read_rows(path)))
    if refused:
        raise InputError(refused[0].reason, where=f"{path}, row {refused[0].row_id}")
    return calibrate(found), dict(leave_one_out(found))


def _table(
    path: Path, calibration: "Calibration | None", files: "list[InputFile]", output: Path | None, *, as_json: bool
) -> None:
    """Answer every row, write the answers, and print how far they are off where the table says what was measured."""
    from ridgeline.core.errors import InputError
    from ridgeline.serve.steps.published import parse_all, read_rows
    from ridgeline.serve.steps.table_case import answer, as_csv, table_case

    place = output or _serve.REPORT
    place = place if place.suffix == ".csv" else place / "latency-rows.csv"
    if place.exists() and place.samefile(path):
        raise InputError.expected("an output beside the inputs", "a file that was read", where=f"-o, {place}")
    found, refused = answer(parse_all(read_rows(path)), calibration)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(as_csv(found, refused), encoding="utf-8")
    _talk.say(f"wrote {place}")
    case = table_case(found, refused, files, command=f"ridgeline serve latency --rows {path}")
    _talk.hand_over(case, _talk.sheet, as_json=as_json)
