"""``ridgeline serve levers``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _report, _serve, _talk


def command(
    model: _serve.Model,
    device: _serve.Chip,
    count: _serve.Count = 1,
    parallel: _serve.Parallel = "",
    engine: _serve.Engine = "",
    input_: Annotated[str, typer.Option("--input", help="Mean tokens of a prompt, such as 4k.")] = "",
    answer: Annotated[str, typer.Option("--answer", help="Mean tokens of an answer, such as 300.")] = "",
    rate: Annotated[str, typer.Option("--rate", help="Requests a second and replica.")] = "",
    hit_rate: Annotated[str, typer.Option("--hit-rate", help="Share of the input found in the prefix cache.")] = "",
    spec: Annotated[
        Path | None, typer.Option("--spec", metavar="FILE", help="TOML with the traffic and the rarer settings.")
    ] = None,
    output: _serve.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """What each lever buys for a model and its traffic: alone, together, and what is already priced in.

    The report (levers.html, levers.json) is written to serve-report, or to the folder that -o names.
    """
    from ridgeline.core.case import InputFile
    from ridgeline.core.config import load
    from ridgeline.serve.levers.case import lever_case, lever_facts
    from ridgeline.serve.levers.traffic import read_traffic

    traffic = read_traffic(spec, input=input_, output=answer, rate=rate, hit_rate=hit_rate)
    made, file = _serve.deployment(
        model, device, count, parallel=parallel, weights=traffic.weights, kv=traffic.kv, engine=engine
    )
    words = _report.words([
        ("", model), ("--device", device), ("--count", count), ("--parallel", parallel), ("--engine", engine),
        ("--input", input_), ("--answer", answer), ("--rate", rate), ("--hit-rate", hit_rate), ("--spec", spec),
    ])  # fmt: skip
    files = [file, *([InputFile.of(spec)] if spec else [])]
    case = lever_case(
        lever_facts(made, traffic), command=f"ridgeline serve levers {words}", inputs=files, config=load()
    )
    _serve.written(case, output, "levers", as_json=as_json)
