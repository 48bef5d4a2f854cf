"""``ridgeline plan export``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _talk


def command(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="A job.toml: a plan, its batch and its model.")],
    target: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="torchtitan, megatron, nemo, maxtext or deepspeed.")
    ],
    launch: Annotated[
        str, typer.Option("--launch", help="Instead of the configuration: what starts it, slurm or ray.")
    ] = "",
    node_size: Annotated[
        int, typer.Option("--node-size", help="Chips of one host, where not the job's scale-up domain.")
    ] = 0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file instead of stdout.")] = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Write a plan as another tool's configuration, or the script that launches it.

    What the target cannot run is refused, with the nearest plan that it can; what its file has no place for is named
    on stderr. The script of --launch expects the configuration beside it, as job.torchtitan.toml, job.megatron.sh and
    so on.
    """
    from ridgeline.plan.formats._common import find_format
    from ridgeline.plan.job import read_job
    from ridgeline.plan.launch import launch as launched

    form = find_format(target, where="--to")
    made = read_job(job)
    made.check()
    written = form.write(made)
    file = f"{job.stem}.{form.name}{form.suffix}"
    text = launched(launch, made, form, file, node_chips=node_size) if launch else written.text
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
        _talk.say(f"wrote {output}; names as of {form.checked}")
    if as_json:
        _talk.emit_json({"format": form.name, "checked": form.checked, "text": text, "unsaid": dict(written.unsaid)})
        return
    if output is None:
        _talk.emit(text.removesuffix("\n"))
    for name, reason in written.unsaid.items():
        _talk.say(f"not in the file: {name} ({reason})")
