"""``ridgeline plan layout``, which is also ``ridgeline plan`` with ``--model``."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _talk

REPORT = Path("plan-report")


def command(
    model: Annotated[str, typer.Option("--model", help="llama-3-70b, or a config.json, its folder, or a TOML.")],
    cluster: Annotated[str, typer.Option("--cluster", help="How many of what, such as 512xH100.")],
    seq: Annotated[str, typer.Option("--seq", help="Tokens of a sequence, such as 8192 or 8k.")],
    batch: Annotated[str, typer.Option("--batch", help="Tokens of a step, such as 4M (4,194,304).")],
    network: Annotated[str, typer.Option("--network", help="Link between nodes, such as infiniband_ndr.")] = "",
    dtype: Annotated[str, typer.Option("--dtype", help="Type of the layers' matmuls.")] = "bf16",
    framework: Annotated[
        str, typer.Option("--framework", help="What trains: megatron-core, fsdp, jax, or one of their frameworks.")
    ] = "megatron-core",
    fix: Annotated[
        list[str] | None, typer.Option("--fix", metavar="NAME=VALUE", help="Hold a column, such as tp=8. Repeatable.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Search without limits: every schedule, chunk, size.")] = False,
    top: Annotated[int, typer.Option("--top", help="How many plans to show.")] = 10,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the report and the jobs.")
    ] = REPORT,
    as_json: _talk.AsJson = False,
) -> None:
    """The parallel plans of a model on a cluster: ranked with intervals, why the runner-up lost, what more chips buy.

    Beside the card a report (layout.html, layout.json), the fastest plan (job.toml) and the fastest that each tool can
    run (job.torchtitan.toml and so on) are written to plan-report, or to the folder that -o names.
    """
    from ridgeline.plan.layouts.search_case import Asked, request_of, search_case

    asked = Asked(model, cluster, seq, batch, network, dtype, framework, tuple(fix or ()), whole)
    request, file = request_of(asked)
    answer = search_case(request, command=_typed(asked, top), inputs=[file], top=top)
    output.mkdir(parents=True, exist_ok=True)
    for name, text in answer.jobs.items():
        (output / (f"job.{name}.toml" if name else "job.toml")).write_text(text, encoding="utf-8")
    _talk.report(answer.case, output, "layout", as_json=as_json)
    _talk.say(f"wrote {output / 'job.toml'}: the fastest plan; job.NAME.toml: the fastest that NAME can run")


def _typed(asked: object, top: int) -> str:
    """The command line that makes this case, without what only says where it goes."""
    usual = {"dtype": "bf16", "framework": "megatron-core"}
    words = ["ridgeline", "plan", "layout"]
    for name, value in vars(asked).items():
        if name == "fixed":
            words += [word for item in value for word in ("--fix", item)]
        elif value is True:
            words.append(f"--{name}")
        elif value and value != usual.get(name):
            words += [f"--{name}", value]
    return shlex.join([*words, *(["--top", str(top)] if top != 10 else [])])
