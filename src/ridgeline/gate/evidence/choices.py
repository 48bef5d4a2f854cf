"""Probabilities of a multiple choice from the log-probabilities of its answers.

The confidence is the softmax over the choices of the sum of a choice's token log-probabilities; the normalised variant
divides that sum by the choice's length in characters first, as ``acc_norm`` does. The log-loss is minus the log of the
target's share, in nat.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError

_NUMBERS = (int, float, str)


@dataclass(frozen=True)
class Choices:
    """``scores``: log_loss, log_loss_norm, confidence and confidence_norm of one row."""

    scores: dict[str, float | None]


def choices(row: Mapping[str, Any], place: str) -> Choices | bool | None:
    """Scores of a row that holds ``[log-probability, is greedy]`` a choice; False for another kind of row.

    None where the right choice cannot be told. Raises `InputError` for a log-probability that is NaN or above zero, or
    a right choice that is impossible.
    """
    answers = row.get("filtered_resps")
    if not _is_choice(answers):
        return False
    odds = np.array([_log_probability(answer[0], place) for answer in answers or ()])
    texts = _texts(row.get("arguments"), len(odds))
    if "acc_mutual_info" in (row.get("metrics") or ()) or "acc_mutual_info" in row:
        odds, texts = odds[: len(odds) // 2], texts[: len(odds) // 2]  # the second half has no context
    target = _target(row, odds, texts)
    if target is None:
        return None
    found = _shares("", odds, target, place)
    if all(texts):
        found |= _shares("_norm", odds / np.array([len(text) for text in texts]), target, place)
    return Choices(found)


def _is_choice(answers: Any) -> bool:
    return (
        isinstance(answers, list)
        and len(answers) > 1
        and all(isinstance(a, list | tuple) and len(a) == 2 and isinstance(a[0], _NUMBERS) for a in answers)
        and all(str(a[1]).lower() in ("true", "false") for a in answers)
    )


def _log_probability(value: Any, place: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if math.isnan(number) or number > 0:
        hint = "NaN logits are a broken run, no evidence"
        raise InputError.expected("log-probabilities of at most 0", value, where=place, hint=hint)
    return number


def _texts(arguments: Any, many: int) -> Sequence[str]:
    """The choices' texts, without the blank before them."""
    if isinstance(arguments, Mapping):
        found = [arguments.get(f"gen_args_{n}") or {} for n in range(many)]
        return [str(item.get("arg_1", "")).strip() for item in found]
    if isinstance(arguments, list) and len(arguments) == many:
        return [str(a[1]).strip() if isinstance(a, list | tuple) and len(a) > 1 else "" for a in arguments]
    return [""] * many


def _target(row: Mapping[str, Any], odds: np.ndarray, texts: Sequence[str]) -> int | None:
    """The right choice: an index, or a choice's text. Where the two disagree, ``acc`` says which."""
    said = row.get("target")
    text = str(said).strip()
    found = {int(text)} & set(range(len(odds))) if text.isdecimal() else set()
    if texts.count(text) == 1:
        found.add(texts.index(text))
    if len(found) > 1 and row.get("acc") in (0, 1):
        found = {index for index in found if (int(odds.argmax()) == index) == bool(row["acc"])}
    return found.pop() if len(found) == 1 else None


def _shares(suffix: str, odds: np.ndarray, target: int, place: str) -> dict[str, float | None]:
    top = odds.max()
    if not np.isfinite(top) or not np.isfinite(odds[target]):
        raise InputError.expected("a right choice that is possible", "log-probability -inf", where=place)
    total = top + math.log(np.exp(odds - top).sum())
    return {f"log_loss{suffix}": float(total - odds[target]), f"confidence{suffix}": math.exp(top - total)}
