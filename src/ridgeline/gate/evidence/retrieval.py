"""Gold questions with all the evidence that an answer takes, and retrieval runs over them, scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.format import count
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import digest, records
from ridgeline.gate.evidence.rows import texts
from ridgeline.gate.evidence.samples import Floats, Samples
from ridgeline.gate.statistics import ranking
from ridgeline.gate.statistics.answers import exact_match, token_f1

EVIDENCE = ("evidence_titles", "evidence_ids", "evidence", "gold")
ANSWERS = ("answers", "answer", "golden_answers")
RETRIEVED = ("retrieved", "retrieved_ids", "retrieved_titles", "documents", "contexts", "ranked")
ANSWERED = ("answer", "prediction", "response", "output")
NAMES = ("id", "title", "doc_id", "name")  # of one retrieved item


@dataclass(frozen=True)
class Question:
    """A gold question: ``evidence`` are all items that the answer takes, ``hops`` how many relations it is made of."""

    key: str
    evidence: tuple[str, ...]
    answers: tuple[str, ...]
    hops: int


@dataclass(frozen=True)
class Gold:
    """All gold questions of a file."""

    questions: tuple[Question, ...]
    file: InputFile
    lost: tuple[Loss, ...] = ()

    def __len__(self) -> int:
        return len(self.questions)


@dataclass(frozen=True)
class Retrieved:
    """What a run retrieved for one question, best first, and its answer, None where it gave none."""

    items: tuple[str, ...]
    answer: str | None


@dataclass(frozen=True)
class Run:
    """A run's questions by their key."""

    name: str
    found: Mapping[str, Retrieved]
    file: InputFile
    lost: tuple[Loss, ...] = ()


def read_gold(path: Path) -> Gold:
    """The questions of a JSON lines file.

    Raises `InputError` for a duplicate id, a question without evidence, evidence named twice, and a file without a
    question of two pieces: finding one would be finding all.
    """
    held = records(path)
    questions: dict[str, Question] = {}
    for row, line in zip(held.rows, held.lines, strict=True):
        where = f"{path}, line {line}"
        key = _key(row, where)
        if key in questions:
            raise InputError.expected("one line a question", f"another of {key!r}", where=where)
        evidence = _items(_field(row, EVIDENCE), where)
        if not evidence:
            hint = f"fields that are read: {', '.join(EVIDENCE)}"
            raise InputError.expected("evidence of every question", f"none for {key!r}", where=where, hint=hint)
        if len(set(evidence)) < len(evidence):
            raise InputError.expected("each piece of evidence once", f"one twice for {key!r}", where=where)
        answers = _field(row, ANSWERS)
        gold = answers if isinstance(answers, list) else [] if answers is None else [answers]
        questions[key] = Question(key, evidence, tuple(map(str, gold)), _hops(row, len(evidence), where))
    single = sum(len(item.evidence) < 2 for item in questions.values())
    if single == len(questions):
        hint = "with one piece, any-evidence and all-evidence recall are the same"
        raise InputError.expected("questions with two pieces of evidence", "none", where=str(path), hint=hint)
    fewer = sum(len(item.evidence) < item.hops for item in questions.values())
    notes = {
        "gold questions with one piece of evidence, which see what any-evidence recall sees": single,
        "gold questions with more hops than evidence: a hop that is not named cannot be missed": fewer,
    }
    lost = [Loss(what, many, path.name) for what, many in notes.items() if many]
    return Gold(tuple(questions.values()), held.file, (*held.lost, *lost))


def _key(row: Mapping[str, Any], where: str) -> str:
    key = row.get("id", row.get("question_id"))
    if not isinstance(key, str | int) or isinstance(key, bool) or key == "":
        raise InputError.expected("an id of the question", key, where=where)
    return str(key)


def _field(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _hops(row: Mapping[str, Any], evidence: int, where: str) -> int:
    hops = row.get("hops", evidence)
    if not isinstance(hops, int) or isinstance(hops, bool) or hops < 1:
        raise InputError.expected("a whole number of hops from 1 on", hops, where=where)
    return hops


def _items(value: Any, where: str) -> tuple[str, ...]:
    """Names of a list: texts, numbers, or objects with an id or a title."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError.expected("a list of items", value, where=where)
    return tuple(_item(item, where) for item in value)


def _item(item: Any, where: str) -> str:
    if isinstance(item, Mapping):
        item = _field(item, NAMES)
    if not isinstance(item, str | int) or isinstance(item, bool) or not str(item).strip():
        raise InputError.expected(f"an item's name, or an object with {' or '.join(NAMES)}", item, where=where)
    return str(item).strip()


def read_run(path: Path) -> Run:
    """The retrieved items of every question, best first. Raises `InputError` for duplicate ids, or no ranked list."""
    held = records(path)
    found: dict[str, Retrieved] = {}
    for row, line in zip(held.rows, held.lines, strict=True):
        where = f"{path}, line {line}"
        key = _key(row, where)
        if key in found:
            raise InputError.expected("one line a question", f"another of {key!r}", where=where)
        if not any(name in row for name in RETRIEVED):
            hint = f"fields that are read: {', '.join(RETRIEVED)}"
            raise InputError.expected("a ranked list of retrieved items", sorted(row), where=where, hint=hint)
        answer = _field(row, ANSWERED)
        found[key] = Retrieved(_items(_field(row, RETRIEVED), where), None if answer is None else str(answer))
    return Run(path.name, found, held.file, held.lost)


def metrics_at(k: int) -> tuple[str, ...]:
    """Names of the scores of retrieval, the one that needs every hop first."""
    return (f"all-evidence recall@{k}", f"any-evidence recall@{k}", f"evidence recall@{k}", "MRR", f"nDCG@{k}", "MAP")


ANSWER = ("answer EM", "answer F1")


def scored(gold: Gold, run: Run, k: int, on_error: str = "wrong") -> Samples:
    """Every gold question with its scores; one that the run does not have found nothing and answered nothing.

    Raises `InputError` for a k below 1, a run of other questions or whose items are named otherwise than the evidence,
    and a question that is missing where the plan refuses it.
    """
    if k < 1:
        raise InputError.expected("k of at least 1", k, where="-k")
    missing = np.array([item.key not in run.found for item in gold.questions])
    lost = _lost(gold, run, missing, on_error)
    nothing = Retrieved((), None)
    rows = [(item, run.found.get(item.key, nothing)) for item in gold.questions]
    if not any(set(item.evidence) & set(got.items) for item, got in rows):
        first = next((got.items[0] for _, got in rows if got.items), "nothing")
        hint = f"the evidence is named as {gold.questions[0].evidence[0]!r}"
        raise InputError.expected("retrieved items named as the evidence is", first, where=run.name, hint=hint)
    columns = np.array([_scores(item, got, k) for item, got in rows]).T
    scores: dict[str, Floats] = dict(zip(metrics_at(k), columns, strict=True))
    if any(got.answer is not None for _, got in rows) and all(item.answers for item in gold.questions):
        scores |= dict(zip(ANSWER, np.array([_answer(item, got) for item, got in rows]).T, strict=True))
    return Samples(
        run.name, texts([item.key for item, _ in rows]), scores,
        missing if on_error == "drop" else np.zeros(len(rows), dtype=np.bool_),
        {"hops": texts([f"{item.hops} hops" for item, _ in rows])},
        outputs=texts([digest(list(got.items), got.answer) for _, got in rows]), lost=lost, inputs=(run.file,),
    )  # fmt: skip


def _lost(gold: Gold, run: Run, missing: "np.ndarray[Any, np.dtype[np.bool_]]", on_error: str) -> tuple[Loss, ...]:
    absent, lost = int(missing.sum()), list(run.lost)
    if absent == len(gold):
        first = next(iter(run.found), "none")
        hint = f"first ids: {gold.questions[0].key!r} against {first!r}"
        raise InputError.expected("a run of the gold questions", "none of them", where=run.name, hint=hint)
    if absent and on_error == "refuse":
        raise InputError.expected("every gold question in the run", f"{absent} missing", where=run.name)
    if absent:
        said = "left out" if on_error == "drop" else "counted as nothing found"
        lost.append(Loss(f"gold questions that the run does not have, {said}", absent, run.name))
    extra = len(run.found) - (len(gold) - absent)
    if extra:
        lost.append(Loss("questions of the run that are not gold", extra, run.name))
    silent = sum(got.answer is None for got in run.found.values())
    if 0 < silent < len(run.found):
        lost.append(Loss("questions without an answer, counted as wrong", silent, run.name))
    twice = sum(len(set(got.items)) < len(got.items) for got in run.found.values())
    if twice:
        what = f"{'questions' if twice > 1 else 'question'} with an item retrieved twice, counted at its first place"
        lost.append(Loss(what, twice, run.name))
    return tuple(lost)


def _scores(item: Question, got: Retrieved, k: int) -> tuple[float, ...]:
    ranked, gold = got.items, item.evidence
    return (
        float(ranking.all_at(ranked, gold, k)), float(ranking.any_at(ranked, gold, k)),
        ranking.recall_at(ranked, gold, k), ranking.reciprocal_rank(ranked, gold),
        ranking.ndcg_at(ranked, gold, k), ranking.average_precision(ranked, gold),
    )  # fmt: skip


def _answer(item: Question, got: Retrieved) -> tuple[float, float]:
    if got.answer is None:
        return 0.0, 0.0
    return exact_match(got.answer, item.answers), token_f1(got.answer, item.answers)


def hops_of(gold: Gold) -> dict[str, int]:
    """Questions by their number of hops."""
    hops = [item.hops for item in gold.questions]
    return {count(number, "hop"): hops.count(number) for number in sorted(set(hops))}
