"""``ridgeline drill grade``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.trace.drills.grade import Grade


def command(
    answers: Annotated[Path, typer.Argument(metavar="ANSWERS", help="The answers.toml of a drill, in its folder.")],
    as_json: _talk.AsJson = False,
) -> None:
    """Answers against what was planted: causes found, missed and false, and how far off their seconds are."""
    from ridgeline.trace.drills.grade import card, grade, read_answers, read_truth

    found = grade(read_truth(answers.parent), read_answers(answers))
    if as_json:
        _talk.emit_json(_entry(found))
    else:
        _talk.emit_card(card(found))
    if not found.right:
        raise typer.Exit(1)


def _entry(found: "Grade") -> dict[str, Any]:
    causes = [
        {
            "name": cause.planted.name, "codes": list(cause.planted.codes), "seconds": cause.planted.seconds,
            "answer": None if cause.answer is None else {"code": cause.answer.code, "seconds": cause.answer.seconds},
            "error": cause.error, "close": cause.close,
        }
        for cause in found.causes
    ]  # fmt: skip
    false = [{"code": answer.code, "seconds": answer.seconds} for answer in found.false]
    return {"seed": found.truth.seed, "step_s": found.truth.step_s, "causes": causes, "false": false}
