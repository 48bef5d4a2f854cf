"""``ridgeline serve capacity``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _report, _serve, _talk


def command(
    model: _serve.Model,
    device: _serve.Chip,
    count: _serve.Count = 1,
    context: _serve.Context = "8k",
    parallel: _serve.Parallel = "",
    weights: _serve.Weights = "bf16",
    kv: _serve.Kv = "bf16",
    tiers: Annotated[
        Path | None, typer.Option("--tiers", metavar="FILE", help="TOML with the tiers of the product.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE", help="Also write Prometheus rules, or the equation to a .json."),
    ] = None,
    spec: Annotated[
        Path | None, typer.Option("--spec", metavar="FILE", help="TOML with rarer settings, such as utilisation.")
    ] = None,
    output: _serve.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """How many requests a deployment holds at once, how long one may be, and what each gigabyte buys."""
    from ridgeline.core import parse
    from ridgeline.core.case import InputFile
    from ridgeline.core.config import load
    from ridgeline.core.errors import InfeasibleError
    from ridgeline.core.specs import build, read_toml
    from ridgeline.serve.capacity.capacity import capacity, overfull
    from ridgeline.serve.capacity.case import capacity_case, overfull_case
    from ridgeline.serve.capacity.facts import facts_of
    from ridgeline.serve.capacity.outputs import rules_text
    from ridgeline.serve.capacity.settings import Settings
    from ridgeline.serve.capacity.tiers import read_tiers

    length = parse.context(context, where="--context")
    settings = build(Settings, read_toml(spec, what="settings file"), where=str(spec)) if spec else Settings()
    product = read_tiers(tiers) if tiers else None
    made, file = _serve.deployment(model, device, count, parallel=parallel, weights=weights, kv=kv)
    words = _report.words([
        ("", model), ("--device", device), ("--count", count), ("--context", context), ("--parallel", parallel),
        ("--weights", weights if weights != "bf16" else ""), ("--kv", kv if kv != "bf16" else ""),
        ("--tiers", tiers), ("--spec", spec),
    ])  # fmt: skip
    files = [file, *(InputFile.of(path) for path in (tiers, spec) if path)]
    typed = f"ridgeline serve capacity {words}"
    try:
        found = capacity(made, length, settings)
    except InfeasibleError as error:  # what one request keeps is known all the same
        case = overfull_case(overfull(made, length, settings, error.nearest), command=typed, inputs=files)
        _serve.written(case, output, "capacity", as_json=as_json)
        return
    case = capacity_case(facts_of(found, product), command=typed, inputs=files, config=load())
    if rules is not None:
        rules.parent.mkdir(parents=True, exist_ok=True)
        rules.write_text(rules_text(found, made.spec.name, rules), encoding="utf-8")
        _talk.say(f"wrote {rules}")
    _serve.written(case, output, "capacity", as_json=as_json)
