"""``ridgeline serve simulate``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ridgeline.cli import _report, _serve, _talk

if TYPE_CHECKING:
    from ridgeline.serve.simulate.study import ServeSpec

_NAME = "simulate"


def command(
    model: Annotated[
        str,
        typer.Argument(metavar="[MODEL]", help="A name, a config.json, its folder, or a TOML; or model in the spec."),
    ] = "",
    device: Annotated[str, typer.Option("--device", help="Accelerator, such as H100; see `ridgeline devices`.")] = "",
    count: Annotated[int | None, typer.Option("--count", help="Chips of one replica.")] = None,
    trace: Annotated[
        str, typer.Option("--trace", metavar="FILE", help="Requests: Azure, Mooncake, vLLM, Vidur, CSV, Parquet.")
    ] = "",
    rate: Annotated[
        float | None, typer.Option("--rate", help="Requests per second; with a trace its pattern at that rate.")
    ] = None,
    given: Annotated[str, typer.Option("--input", help="Tokens of every prompt, such as 1k.")] = "",
    answer: Annotated[str, typer.Option("--answer", help="Tokens of every answer, such as 256.")] = "",
    engine: Annotated[str, typer.Option("--engine", help="vllm, sglang or trtllm: batching and overheads.")] = "",
    slo: Annotated[
        str, typer.Option("--slo", metavar="LIMITS", help="Such as ttft=1s,tpot=50ms,at=99 (percent of requests).")
    ] = "",
    spec: Annotated[
        Path | None, typer.Option("--spec", metavar="FILE", help="TOML with these options and the rarer ones.")
    ] = None,
    output: _report.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Replay or generate traffic against a deployment: latency percentiles, goodput, and the highest rate under an SLO.

    Every step of the engine is simulated. Beside the card a report (simulate.html, simulate.json) is written to
    serve-report, or to the folder that -o names. The spec file holds classes, bursts, closed loops, replicas,
    pools and speculation.
    """
    from ridgeline.core.config import load
    from ridgeline.serve.simulate.study import read_spec

    changes: dict[str, Any] = {
        "model": model or None,
        "deployment": {"device": device or None, "count": count, "engine": engine or None},
        "traffic": {
            "trace": _from(spec, trace) if trace else None, "rate": rate,
            "input": {"p50": given} if given else None, "output": {"p50": answer} if answer else None,
        },
        "slo": _limits(slo),
    }  # fmt: skip
    line = _report.words(
        [("", ["ridgeline", "serve", "simulate"]), ("", model), ("--device", device), ("--count", count),
         ("--trace", trace), ("--rate", rate), ("--input", given), ("--answer", answer),
         ("--engine", engine), ("--slo", slo), ("--spec", spec)]
    )  # fmt: skip
    case = _run(read_spec(spec, changes), spec, line, load())
    place = output if output is not None else _serve.REPORT
    if place.suffix == ".json":
        _talk.hand_over(case, _talk.plain_card, as_json=as_json, output=place)
        return
    _report.keep_inputs(case, place, _NAME)
    _talk.report(case, place, _NAME, as_json=as_json)
    _talk.fail_on(case)


def _run(found: "ServeSpec", path: Path | None, line: str, config: Any) -> Any:
    from ridgeline.core.errors import InputError
    from ridgeline.serve.simulate.case import simulate_case, simulated
    from ridgeline.serve.simulate.costs.tabulate import step_table
    from ridgeline.serve.simulate.study import study

    placed = found.deployment
    for value, what, where in ((found.model, "a model", "MODEL"), (placed.device, "an accelerator", "--device")):
        if not value:
            raise InputError.expected(what, "none", where=where, hint="give it here or in the --spec file")
    laid, file = _serve.deployment(
        _near(found.model, path), placed.device, placed.count, parallel=placed.parallel, weights=placed.weights,
        kv=placed.kv, engine=placed.engine,
    )  # fmt: skip
    made = study(found, laid, file, path)
    profile = (path.parent if path is not None else Path()) / placed.profile if placed.profile else None
    table = step_table(laid, made.engine, made.longest, profile)
    return simulate_case(simulated(made, table), command=line, config=config)


def _from(spec: Path | None, trace: str) -> str:
    """The trace's path as seen from the spec's folder, from which a spec's paths are taken."""
    return trace if spec is None else os.path.relpath(trace, spec.parent)


def _near(model: str, path: Path | None) -> str:
    """A model's file beside the spec that names it, where there is one."""
    beside = path.parent / model if path is not None else Path(model)
    return str(beside) if beside.exists() else model


def _limits(slo: str) -> dict[str, Any]:
    """``ttft=1s,tpot=50ms`` as the keys of the ``[slo]`` table."""
    import math

    from ridgeline.serve.simulate.metrics import parse_slo

    if not slo:
        return {}
    found = parse_slo(slo)
    values = {"ttft": found.ttft_s, "tpot": found.tpot_s, "at": found.at}
    return {name: value for name, value in values.items() if math.isfinite(value)}
