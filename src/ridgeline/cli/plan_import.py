"""``ridgeline plan import``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.plan.formats._common import Known, Reading


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Another tool's configuration.")],
    source: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help="Its format, where the content does not decide.")
    ] = "",
    cluster: Annotated[
        str, typer.Option("--cluster", help="Chips such as 512xH100, where the file leaves them open.")
    ] = "",
    model: Annotated[
        Path | None, typer.Option("--model", help="A config.json or TOML of the model, where the file only names it.")
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The job file to write; one that is there is kept.")
    ] = Path("job.toml"),
    as_json: _talk.AsJson = False,
) -> None:
    """Read another tool's configuration of a plan into a job.toml.

    Settings that bear on the plan and have no place in a job are listed as lost; what does not bear on it is counted.
    """
    from ridgeline.core.errors import InputError, located
    from ridgeline.core.specs import read_text
    from ridgeline.plan.formats._common import find_format, sniff_format
    from ridgeline.plan.job import dumps

    text = read_text(file, what="configuration")
    form = find_format(source, where="--from") if source else sniff_format(text, where=str(file))
    known = _known(cluster, model)
    with located(str(file)):
        found = form.read(text, known)
    if output.exists():
        raise InputError.expected("a new file", "one that exists", where=str(output), hint="name another with -o")
    written = dumps(found.job)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(written, encoding="utf-8")
    _talk.say(f"wrote {output}; try: ridgeline plan export {output} --to FORMAT")
    if as_json:
        document = {"format": form.name, "plan": found.job.plan.columns, "job": written}
        _talk.emit_json(document | {"lost": list(found.lost), "ignored": list(found.ignored)})
    else:
        _talk.emit(_card(form.title, found))


def _known(cluster: str, model: Path | None) -> "Known":
    from ridgeline.arithmetic.read_model import read_model
    from ridgeline.plan.formats._common import Known
    from ridgeline.plan.steps.cluster import parse

    spec = None if model is None else read_model(model)[0]
    if not cluster:
        return Known(model=spec)
    machine = parse(cluster)
    return Known(machine.chips, spec, machine.device.name, machine.node_size)


def _card(title: str, found: "Reading") -> str:
    """The plan in a few lines, then what the job could not hold."""
    job, plan = found.job, found.job.plan
    stages = f"pp {plan.pp} of {plan.chunks} chunks" if plan.chunks > 1 else f"pp {plan.pp}"
    experts = f", ep {plan.ep} with etp {plan.etp}" if plan.ep > 1 else ""
    split = ", sequence split over tp" if plan.sequence_parallel else ""
    seq = "an unsaid length" if job.seq is None else f"{job.seq} tokens"
    lines = [
        f"{title}: {plan.chips} chips",
        f"plan       tp {plan.tp}, {stages}, dp {plan.dp}, cp {plan.cp}{experts}",
        f"sharding   ZeRO-{plan.zero} over {plan.shard}{split}",
        f"batch      {job.sequences} sequences of {seq}, {job.micro_batches} micro-batches of {plan.micro_batch}",
        f"schedule   {plan.schedule}, recompute {plan.recompute}",
        f"numbers    {job.dtype} matmuls, {job.gradients} gradients, {job.optimizer}",
        f"model      {'not in the file' if job.model is None else f'{job.model.layers} layers of {job.model.d_model}'}",
        *(f"lost       {item}" for item in found.lost),
    ]
    if found.ignored:
        lines.append(f"ignored    {len(found.ignored)} settings that do not bear on the plan")
    return "\n".join(lines)
