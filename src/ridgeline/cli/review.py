"""``ridgeline review``."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.case import Case

REPORT = Path("review-report")


def command(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY", help="A folder with a review.toml, the file, or a model: config.json or a name."
        ),
    ],
    cluster: Annotated[str, typer.Option("--cluster", help="How many of what, such as 512xH100.")] = "",
    plan: Annotated[str, typer.Option("--plan", help="Parallel sizes, such as tp=8,pp=4,dp=16.")] = "",
    seq: Annotated[str, typer.Option("--seq", help="Tokens of a sequence, such as 8k.")] = "",
    batch: Annotated[str, typer.Option("--batch", help="Tokens of a step, such as 4M.")] = "",
    tokens: Annotated[str, typer.Option("--tokens", help="Tokens of the whole run, such as 15T.")] = "",
    claim: Annotated[
        str, typer.Option("--claim", help="MFU@provenance: 50%@folklore, roofline, comparable or pilot.")
    ] = "",
    against: Annotated[
        Path | None, typer.Option("--against", metavar="FILE", help="comparable.json: a run that was measured.")
    ] = None,
    calibrate: Annotated[
        list[Path] | None, typer.Option("--calibrate", metavar="FILE", help="run.json: your own measured steps.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Where to write; default: the study's folder.")
    ] = None,
    as_json: _talk.AsJson = False,
) -> None:
    """A design review before a chip-hour is spent: what to expect, what costs it, and a pilot that tests it.

    Writes review.html, review.json and expectation.json, the derived MFU that later investigations read. A model file
    needs --cluster, --plan, --seq and --batch; beside a review.toml each replaces what the file says.
    """
    from ridgeline.core.config import load
    from ridgeline.plan.prelaunch.expectation import FILE, expectation_case
    from ridgeline.plan.prelaunch.review import read_review
    from ridgeline.plan.prelaunch.review_case import review_case, review_facts

    options = {"--cluster": cluster, "--plan": plan, "--seq": seq, "--batch": batch, "--tokens": tokens,
               "--claim": claim, "--against": against}  # fmt: skip
    typed = _typed(study, options, calibrate or [])
    proposal = read_review(study, _flags(options))
    facts = review_facts(proposal, against, calibrate or ())
    case = review_case(facts, command=typed, config=load(_folder(study)))
    folder = out or (_folder(study) if proposal.own_file else REPORT)
    _talk.report(case, folder, "review", as_json=as_json)
    _write(expectation_case(facts, command=typed, before=folder / FILE), folder / FILE)
    _talk.fail_on(case)


def _folder(study: Path) -> Path:
    return study if study.is_dir() else study.parent


def _flags(options: Mapping[str, Any]) -> dict[str, Any]:
    """The flags as tables of a review file."""
    from ridgeline.plan.prelaunch.claim import claim_of
    from ridgeline.plan.prelaunch.review import plan_of

    found: dict[str, Any] = {name: options[f"--{name}"] for name in ("seq", "batch", "tokens") if options[f"--{name}"]}
    if options["--cluster"]:
        found["cluster"] = {"chips": options["--cluster"]}
    if options["--plan"]:
        found["plan"] = plan_of(options["--plan"])
    if options["--claim"]:
        found["claim"] = claim_of(options["--claim"]).model_dump()
    return found


def _typed(study: Path, options: Mapping[str, Any], runs: list[Path]) -> str:
    """The command line that makes this case, without what only says where it goes."""
    words = [word for flag, value in options.items() if value for word in (flag, str(value))]
    again = [word for run in runs for word in ("--calibrate", str(run))]
    return shlex.join(["ridgeline", "review", str(study), *words, *again])


def _write(case: "Case", file: Path) -> None:
    file.write_text(case.dumps(), encoding="utf-8")
    _talk.say(f"wrote {file}; try: ridgeline why {file} expected.mfu")
