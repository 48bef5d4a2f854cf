"""Decisions of a detector or classifier on labelled examples: which rows each of its rates is over."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.format import count
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.reader import ROLES, Wanted, read
from ridgeline.gate.evidence.samples import Floats, Mask, Samples, Texts
from ridgeline.gate.registration.plan import Plan

LABELS = ("label", "truth", "positive", "y_true", "actual")
DECISIONS = ("decision", "alarm", "flagged", "detected", "predicted", "y_pred")
RIGHT = ("correct", "right", "accuracy", "acc", "passed")
SUBGROUPS = ("subgroup", "slice", "population")
NAMELESS = "(no name)"
_THRESHOLD = re.compile(r"^(.+?)\s*>=\s*([-+.\deE]+)$")


@dataclass(frozen=True)
class Labelled:
    """Rows of one sample. ``right`` says whether the decision is the label's; ``positive`` is None without labels.

    ``slices`` and ``clusters`` are what the plan names, None where it names none. ``labels`` are the columns that were
    there to name. ``decided`` is the threshold of the decision as given, and ``rows`` the id and scores of each row.
    """

    run: str
    right: Mask
    positive: Mask | None
    slices: Texts | None = None
    clusters: Texts | None = None
    labels: tuple[str, ...] = ()
    inputs: tuple[InputFile, ...] = ()
    lost: tuple[Loss, ...] = ()
    decided: str = ""
    rows: frozenset[tuple[object, ...]] = frozenset()

    def __len__(self) -> int:
        return len(self.right)

    @property
    def alarms(self) -> int:
        """Decisions that are positive; 0 without labels."""
        return 0 if self.positive is None else int((self.right == self.positive).sum())

    @property
    def metrics(self) -> dict[str, Mask]:
        """The rows of each rate of right decisions: specificity (1 - FPR) and sensitivity, or accuracy alone."""
        if self.positive is None:
            return {"accuracy": np.ones(len(self), dtype=np.bool_)}
        return {"specificity": ~self.positive, "sensitivity": self.positive}

    def names(self) -> list[str]:
        """The slices, sorted; none without."""
        return [] if self.slices is None else sorted(set(self.slices.tolist()))


def read_labelled(text: str, plan: Plan, *, subgroups: bool = False) -> Labelled:
    """The sample of a file; ``PATH#risk>=0.8`` names the decision. Labels and decisions by their usual names.

    ``subgroups`` takes the slices by their usual names too, where the plan names none.
    A row that failed, or has no decision, is a wrong one, unless the plan drops or refuses it. Raises `InputError` for
    duplicate ids, a label or decision that is neither 0 nor 1, and a column that is not there.
    """
    path, _, decided = text.rpartition("#") if "#" in text else (text, "", "")
    roles = {role: name for role, name in plan.columns.items() if role in ROLES}
    for role, name in (("slice", plan.slices), ("cluster", plan.cluster)):
        if name and name != role:
            roles.setdefault(role, name)
    found = read(path, Wanted(roles))
    _refuse_duplicates(found)
    if subgroups and not plan.slices:
        plan = plan.model_copy(update={"slices": next((name for name in SUBGROUPS if name in found.labels), "")})
    label = _named(found, plan.columns.get("label", ""), LABELS)
    decision = decided or plan.columns.get("decision", "")
    if not label:
        name = _named(found, decision, RIGHT)
        if not name:
            raise _absent(found, "label", LABELS)
        right = _bits(found, path, Wanted(roles), name)
        return replace(_kept(found, right, None, plan), rows=_rows(found))
    truth = _bits(found, path, Wanted(roles), label)
    alarm = _alarms(found, path, Wanted(roles), decision)
    kept = _kept(found, np.where(np.isnan(truth), np.nan, _agree(alarm, truth)), truth, plan)
    return replace(kept, rows=_rows(found), decided="".join(decision.split()) if _THRESHOLD.match(decision) else "")


def _rows(found: Samples) -> frozenset[tuple[object, ...]]:
    """The id and every score of each row: equal for a row that stands in two files."""
    names = sorted(found.scores)
    return frozenset(zip(found.keys.tolist(), *(found.scores[name].tolist() for name in names), strict=True))


def _agree(alarm: Floats, truth: Floats) -> Floats:
    return np.where(np.isnan(alarm), np.nan, (alarm == truth).astype(np.float64))


def _refuse_duplicates(found: Samples) -> None:
    keys = found.keys.tolist()
    if len(set(keys)) < len(keys):
        first = Counter(keys).most_common(1)[0][0]
        got = f"{count(len(keys) - len(set(keys)), 'row')} more, first {first!r}"
        raise InputError.expected("one row an example", got, where=found.run)


def _named(found: Samples, declared: str, usual: Sequence[str]) -> str:
    """The declared column, or the first of the usual names that is there; empty for none."""
    if declared:
        return declared
    known = {name.lower(): name for name in (*found.scores, *found.labels)}
    return next((known[name] for name in usual if name in known), "")


def _absent(found: Samples, role: str, usual: Sequence[str]) -> InputError:
    known = ", ".join((*found.scores, *found.labels)) or "none"
    hint = f"usual names: {', '.join(usual)}; declare another as {role}=NAME"
    return InputError.expected(f"a column of a {role}", f"the columns {known}", where=found.run, hint=hint)


def _numbers(found: Samples, path: str, wanted: Wanted, name: str) -> Floats:
    """A column as numbers; one of words (yes, no) is read again as scores."""
    if name in found.scores:
        return found.scores[name]
    if name not in found.labels:
        known = (*found.scores, *found.labels)
        hint = did_you_mean(name, known, "columns: " + ", ".join(known))
        raise InputError.expected("a column of the file", name, where=found.run, hint=hint)
    return read(path, Wanted({**wanted.columns, name: name}, (name,))).scores[name]


def _bits(found: Samples, path: str, wanted: Wanted, name: str) -> Floats:
    values = _numbers(found, path, wanted, name)
    astray = np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))
    if len(astray):
        got = f"{values[astray[0]]:g} in row {astray[0] + 1}"
        hint = f"a score needs its threshold: {name}>=0.5"
        raise InputError.expected(f"0 or 1 in {name}", got, where=found.run, hint=hint)
    return values


def _alarms(found: Samples, path: str, wanted: Wanted, decision: str) -> Floats:
    if cut := _THRESHOLD.match(decision):
        try:
            limit = float(cut.group(2))
        except ValueError as error:
            raise InputError.expected("a threshold such as risk>=0.8", decision, where=found.run) from error
        values = _numbers(found, path, wanted, cut.group(1))
        return np.where(np.isnan(values), np.nan, (values >= limit).astype(np.float64))
    name = _named(found, decision, DECISIONS)
    if not name:
        raise _absent(found, "decision", DECISIONS)
    return _bits(found, path, wanted, name)


def _kept(found: Samples, right: Floats, truth: Floats | None, plan: Plan) -> Labelled:
    """Rows with a label. Raises `InputError` for failed rows that the plan refuses, and for no rows at all."""
    known = np.ones(len(found), dtype=np.bool_) if truth is None else ~np.isnan(truth)
    undecided = known & (np.isnan(right) | found.errors)
    lost = list(found.lost)
    if not known.all():
        lost.append(Loss("rows without a label, which count for no rate", int((~known).sum()), found.run))
    if undecided.any():
        many = int(undecided.sum())
        if plan.on_error == "refuse":
            raise InputError.expected("a decision in every row", f"none in {count(many, 'row')}", where=found.run)
        drop = plan.on_error == "drop"
        lost.append(Loss(f"rows without a decision, {'left out' if drop else 'counted as wrong'}", many, found.run))
        right = np.where(undecided, 0.0, right)
        known &= ~undecided if drop else True
    if not known.any():
        raise InputError.expected("at least one labelled row with a decision", "none", where=found.run)
    return Labelled(
        found.run,
        right[known] == 1,
        None if truth is None else truth[known] == 1,
        _label(found, plan.slices, "--slices", known),
        _label(found, plan.cluster, "cluster", known),
        tuple(found.labels),
        found.inputs,
        tuple(lost),
    )


def _label(found: Samples, name: str, where: str, known: Mask) -> Texts | None:
    if not name:
        return None
    if name not in found.labels:
        hint = did_you_mean(name, found.labels, "labels: " + (", ".join(found.labels) or "none"))
        raise InputError.expected(f"a column of {found.run}", name, where=where, hint=hint)
    values = found.labels[name][known]
    texts = np.empty(len(values), dtype=object)
    texts[:] = [NAMELESS if value is None or not str(value).strip() else str(value) for value in values.tolist()]
    return texts


def rows_at(found: Labelled, metric: str, name: str = "") -> Mask:
    """The rows that a rate is over, of one slice or of all."""
    rows = found.metrics[metric]
    return rows if not name or found.slices is None else rows & (found.slices == name)
