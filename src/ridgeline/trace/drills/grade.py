"""Answers to a drill against its truth: causes found, missed and false, and how far off their seconds are."""

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import Spec, build, read_toml
from ridgeline.trace.drills.generate import Planted
from ridgeline.trace.drills.render import TRUTH

CLOSE = 0.05  # of the seconds of a cause
TRUTH_LIMIT_BYTES = 1 << 20

Code = Annotated[str, StringConstraints(pattern=r"^T\d{3}$")]


class AnswerTable(Spec):
    """One ``[[cause]]``."""

    code: Code
    seconds: Annotated[float, Field(ge=0, le=1e6, strict=True)]


class AnswerFile(Spec):
    """``answers.toml``."""

    cause: tuple[AnswerTable, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A cause as somebody sees it: the code of the rule that names it, and seconds per step."""

    code: str
    seconds: float


@dataclass(frozen=True)
class Truth:
    """What is planted in a drill, and its step (s)."""

    seed: int
    step_s: float
    planted: tuple[Planted, ...]


@dataclass(frozen=True)
class Found:
    """A planted cause with the answer to it, None where it was missed."""

    planted: Planted
    answer: Answer | None

    @property
    def error(self) -> float | None:
        """Relative error of the seconds, signed."""
        return None if self.answer is None else self.answer.seconds / self.planted.seconds - 1

    @property
    def close(self) -> bool:
        """Whether it was found and its seconds are right within `CLOSE`."""
        return self.error is not None and abs(self.error) <= CLOSE


@dataclass(frozen=True)
class Grade:
    """``causes`` in the order of the truth; ``false``: answers that nothing planted explains."""

    truth: Truth
    causes: tuple[Found, ...]
    false: tuple[Answer, ...]

    @property
    def found(self) -> int:
        """Planted causes that were named."""
        return sum(cause.answer is not None for cause in self.causes)

    @property
    def right(self) -> bool:
        """Everything found, nothing false, all seconds close."""
        return not self.false and all(cause.close for cause in self.causes)


def grade(truth: Truth, answers: Sequence[Answer]) -> Grade:
    """Match answers to causes: the most exact code first, each answer once."""
    left = list(answers)
    taken: dict[str, Answer] = {}
    for cause in truth.planted:
        matches = [answer for code in cause.codes for answer in left if answer.code == code]
        if matches:
            taken[cause.name] = matches[0]
            left.remove(matches[0])
    causes = tuple(Found(cause, taken.get(cause.name)) for cause in truth.planted)
    return Grade(truth, causes, tuple(left))


def read_answers(path: str | Path) -> list[Answer]:
    """The causes of an ``answers.toml``. Raises `InputError`, with the place, for what cannot be read."""
    file = Path(path)
    with located(str(file)):
        table = build(AnswerFile, read_toml(file, what="answers"))
        codes = [row.code for row in table.cause]
        for code in codes:
            if codes.count(code) > 1:
                raise InputError.expected("each code once", code, where="$.cause")
    return [Answer(row.code, row.seconds) for row in table.cause]


def read_truth(folder: str | Path) -> Truth:
    """The truth of the drill in a folder. Raises `InputError` where there is none or it is damaged."""
    path = Path(folder) / TRUTH
    hint = "grade the answers.toml that lies in the drill's own folder"
    if not path.is_file():
        raise InputError.expected("a drill", "a folder without solution/truth.json.gz", where=str(folder), hint=hint)
    try:
        with gzip.open(path) as stream:
            data = json.loads(stream.read(TRUTH_LIMIT_BYTES))
        planted = tuple(
            Planted(str(c["name"]), str(c["title"]), tuple(map(str, c["codes"])), float(c["seconds"]))
            for c in data["causes"]
        )
        return Truth(int(data["seed"]), float(data["step_s"]), planted)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise InputError.expected("the truth of a drill", "a damaged file", where=str(path)) from error


def card(found: Grade) -> str:
    """The grade for people."""
    truth, lines = found.truth, []
    head = f"Drill {truth.seed}: {found.found} of {len(truth.planted)} causes found"
    lines.append(f"{head}, {len(found.false)} false. The step takes {truth.step_s * 1e3:.1f} ms.")
    for cause in found.causes:
        own = f"{cause.planted.codes[0]}  {cause.planted.title}: {cause.planted.seconds * 1e3:.2f} ms a step"
        if cause.answer is None:
            lines.append(f"  missed  {own}")
        else:
            mark = "found " if cause.close else "size  "
            lines.append(f"  {mark}  {own}; you say {cause.answer.seconds * 1e3:.2f} ms ({cause.error:+.0%})")
    lines += [f"  false   {answer.code}: {answer.seconds * 1e3:.2f} ms a step" for answer in found.false]
    return "\n".join(lines)
