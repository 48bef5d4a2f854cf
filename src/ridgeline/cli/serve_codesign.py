"""``ridgeline serve codesign``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _report, _serve, _talk


def command(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY", help="Folder with a study.toml, whose budget and need are taken."),
    ] = None,
    compute: Annotated[str, typer.Option("--compute", help="Training compute in FLOPs, such as 1e24.")] = "",
    device: Annotated[str, typer.Option("--device", help="Serving accelerator, such as H100.")] = "",
    chips: Annotated[int | None, typer.Option("--chips", help="Chips of one replica, all tensor parallel.")] = None,
    ttft: Annotated[str, typer.Option("--ttft", help="Limit on the time to first token, such as 500ms.")] = "",
    tpot: Annotated[str, typer.Option("--tpot", help="Limit on the time per output token, such as 20ms.")] = "",
    context: Annotated[str, typer.Option("--context", help="Prompt and answer in tokens, such as 8k+128.")] = "",
    batch: Annotated[str, typer.Option("--batch", help="Sequences that decode together, such as 1,16,64.")] = "",
    price_ceiling: Annotated[
        float | None, typer.Option("--price-ceiling", help="Dollars per million output tokens.")
    ] = None,
    spec: Annotated[
        Path | None, typer.Option("--spec", metavar="FILE", help="TOML with the axes of the grid, the law, a turn.")
    ] = None,
    output: _serve.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Which model meets the serving budget on the training compute there is, and what that costs in loss."""
    from ridgeline.core.case import InputFile
    from ridgeline.core.config import load
    from ridgeline.core.specs import read_toml
    from ridgeline.serve.codesign import need
    from ridgeline.serve.codesign.case import codesign_case
    from ridgeline.serve.codesign.facts import codesign

    file = need.study_file(study) if study else None
    keys, budget = need.from_study(file) if file else ({}, None)
    flags = {"compute": compute, "device": device, "chips": chips, "ttft": ttft, "tpot": tpot, "ceiling": price_ceiling}
    told = {key: value for key, value in flags.items() if value not in ("", None)} | _lengths(context)
    own = read_toml(spec, what="settings file") if spec else {}
    sizes = need.batches_of(batch)
    typed = {*told, *(["axes.batches"] if sizes else [])}
    asked = need.asked_of(need.merged(keys, own, told, batches=sizes), str(spec or file or "the flags"), typed)
    facts = codesign(need.need_of(asked, budget, str(file or "the flags")))
    words = _report.words([
        ("", study), ("--compute", compute), ("--device", device), ("--chips", chips), ("--ttft", ttft),
        ("--tpot", tpot), ("--context", context), ("--batch", batch), ("--price-ceiling", price_ceiling),
        ("--spec", spec),
    ])  # fmt: skip
    files = [InputFile.of(path) for path in (file, spec) if path]
    config = load(file.parent) if file else load()
    case = codesign_case(facts, command=f"ridgeline serve codesign {words}", inputs=files, config=config)
    _serve.written(case, output, "codesign", as_json=as_json)


def _lengths(text: str) -> dict[str, str]:
    """``8k+128`` as prompt and output; a plain length is the prompt."""
    if not text:
        return {}
    prompt, plus, answer = text.partition("+")
    return {"prompt": prompt} | ({"output": answer} if plus else {})
