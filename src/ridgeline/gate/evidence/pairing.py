"""Two runs on the same examples, paired by content: never by row.

What did not pair is counted and bounded. Rows that failed stay in the denominator as wrong answers where a score is
zero or one; a real-valued metric has no value for them, and is refused unless the caller drops them by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.format import count
from ridgeline.gate.evidence.samples import Floats, Mask, Samples, Texts, known_direction

OnError = Literal["wrong", "drop", "refuse"]
_MAY_DIFFER = ("model", "model_name", "model_args", "run", "date", "dtype")
_OF_TASK = " of "  # a setting that differs between the tasks of a run: "n_shot of gsm8k"


@dataclass(frozen=True)
class Difference:
    """A setting that two runs do not share."""

    name: str
    baseline: str
    candidate: str


@dataclass(frozen=True)
class Pairs:
    """Aligned columns of two runs: row i of both is the same example.

    ``failed`` marks pairs of which a side failed. ``alone`` are the rows of the baseline and of the candidate that did
    not pair, ``prompts_differ`` counts pairs whose prompts differ, None where a log has no prompts; ``identical`` says
    whether all outputs are equal to the bit, or both runs are one file, None where nothing is there to tell.
    """

    baseline: Samples
    candidate: Samples
    failed: Mask
    alone: tuple[Samples, Samples]
    prompts_differ: int | None
    identical: bool | None
    differences: tuple[Difference, ...]

    def __len__(self) -> int:
        return len(self.baseline)

    @property
    def only_baseline(self) -> tuple[str, ...]:
        """Keys that the candidate does not have."""
        return tuple(map(str, self.alone[0].keys))

    @property
    def only_candidate(self) -> tuple[str, ...]:
        """Keys that the baseline does not have."""
        return tuple(map(str, self.alone[1].keys))

    @property
    def unmatched(self) -> int:
        """Rows of either run without a partner."""
        return len(self.alone[0]) + len(self.alone[1])

    @property
    def metrics(self) -> list[str]:
        """Metrics that both runs have."""
        return [name for name in self.baseline.scores if name in self.candidate.scores]

    @property
    def one_sided(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Metrics that the baseline alone has, and the candidate alone."""
        base, cand = self.baseline.scores, self.candidate.scores
        return tuple(name for name in base if name not in cand), tuple(name for name in cand if name not in base)

    def called(self, metric: str) -> str:
        """The metric's name with what it is called in the logs: what it measures is told by all of them."""
        names = (run.columns.get(metric, metric) for run in (self.baseline, self.candidate))
        return " ".join(dict.fromkeys((metric, *names)))

    def says_direction(self, metric: str) -> bool:
        """Whether a log or a name says which way a metric is better."""
        logged = any(metric in run.directions for run in (self.baseline, self.candidate) if metric not in run.columns)
        return logged or known_direction(self.called(metric))

    def lower_is_better(self, metric: str) -> bool:
        """Whether less of a metric is better. Raises `InputError` where the runs disagree."""
        said = [run.lower_is_better(metric) for run in (self.baseline, self.candidate)]
        if said[0] != said[1]:
            hint = "less is better in one of the runs, more in the other: give both metrics that mean the same"
            raise InputError.expected("one direction of a metric", metric, where="pairing", hint=hint)
        return said[0]

    def scores(self, metric: str, on_error: OnError = "wrong") -> tuple[Floats, Floats, Mask]:
        """Both columns, turned so that higher is better, and which rows are in them.

        Raises `InputError` for an unknown metric, a score that is missing in a row that did not fail, or failed rows
        of a metric that has no value for them.
        """
        if metric not in self.metrics:
            hint = did_you_mean(metric, self.metrics, "both runs have: " + (", ".join(self.metrics) or "none"))
            raise InputError.expected("a metric of both runs", metric, where="--metric", hint=hint)
        sign = -1.0 if self.lower_is_better(metric) else 1.0
        columns = [run.scores[metric] for run in (self.baseline, self.candidate)]
        kept = np.ones(len(self), dtype=np.bool_) if on_error != "drop" else ~self.failed
        if self.failed.any() and on_error != "drop":
            columns = self._failed_as_wrong(metric, columns, on_error)
        for run, column in zip((self.baseline, self.candidate), columns, strict=True):
            self._refuse_missing(metric, run.run, np.isnan(column) & kept)
        base, cand = (sign * column[kept] for column in columns)
        return base, cand, kept

    def _failed_as_wrong(self, metric: str, columns: Sequence[Floats], on_error: OnError) -> list[Floats]:
        binary = all(np.isin(column[~np.isnan(column)], (0.0, 1.0)).all() for column in columns)
        runs = (self.baseline, self.candidate)
        if on_error == "refuse" or not binary or any(metric in run.measured_only for run in runs):
            hint = 'on_error = "drop" in the registration leaves them out, and says so'
            got = f"{int(self.failed.sum()):,} that failed in either run"
            raise InputError.expected(f"a {metric} for every example", got, where=metric, hint=hint)
        wrong = 1.0 if self.lower_is_better(metric) else 0.0
        return [np.where(run.errors, wrong, column) for run, column in zip(runs, columns, strict=True)]

    def _refuse_missing(self, metric: str, run: str, missing: Mask) -> None:
        if missing.any():
            first = self.baseline.keys[int(np.flatnonzero(missing)[0])]
            got = f"none in {count(int(missing.sum()), 'row')}, first {first!r}"
            raise InputError.expected(f"a {metric} in every row", got, where=run)


def pair(baseline: Samples, candidate: Samples) -> Pairs:
    """The pairs of two runs. Raises `InputError` for duplicate keys, runs that share none, or no metric in common."""
    _refuse_duplicates(baseline)
    rows = _refuse_duplicates(candidate)
    match = np.fromiter((rows.get(key, -1) for key in baseline.keys.tolist()), dtype=np.int64, count=len(baseline))
    at_base = np.flatnonzero(match >= 0)
    if not len(at_base):
        hint = f"first keys: {_some(baseline.keys)} against {_some(candidate.keys)}"
        raise InputError.expected("runs on the same examples", "none in common", where="pairing", hint=hint)
    alone = np.ones(len(candidate), dtype=np.bool_)
    alone[match[at_base]] = False
    base, cand = take(baseline, at_base), take(candidate, match[at_base])
    found = Pairs(
        base,
        cand,
        base.errors | cand.errors,
        (take(baseline, np.flatnonzero(match < 0)), take(candidate, np.flatnonzero(alone))),
        _prompts_differ(base, cand),
        _identical(base, cand),
        _settings(baseline.settings, candidate.settings),
    )
    if not found.metrics:
        hint = f"{', '.join(baseline.scores) or 'none'} against {', '.join(candidate.scores) or 'none'}"
        raise InputError.expected("a metric in both runs", "none in common", where="pairing", hint=hint)
    return found


def _refuse_duplicates(samples: Samples) -> dict[object, int]:
    """The row of every key."""
    found = {key: row for row, key in enumerate(samples.keys.tolist())}
    if len(found) < len(samples):
        first = next(key for row, key in enumerate(samples.keys.tolist()) if found[key] != row)
        more = count(len(samples) - len(found), "row")
        hint = "two filters or epochs of one document? choose a filter, or declare what tells them apart as part of id"
        raise InputError.expected("one row an example", f"{more} more, first {first!r}", where=samples.run, hint=hint)
    return found


def take(samples: Samples, rows: NDArray[np.int64]) -> Samples:
    """The same columns at these rows."""
    return replace(
        samples,
        keys=samples.keys[rows],
        scores={name: column[rows] for name, column in samples.scores.items()},
        errors=samples.errors[rows],
        labels={name: column[rows] for name, column in samples.labels.items()},
        prompts=None if samples.prompts is None else samples.prompts[rows],
        outputs=None if samples.outputs is None else samples.outputs[rows],
    )


def _some(keys: Texts) -> str:
    return ", ".join(repr(key)[:40] for key in keys[:2].tolist())


def _prompts_differ(base: Samples, cand: Samples) -> int | None:
    if base.prompts is None or cand.prompts is None:
        return None
    return int((base.prompts != cand.prompts).sum())


def _identical(base: Samples, cand: Samples) -> bool | None:
    if base.outputs is not None and cand.outputs is not None:
        return bool((base.outputs == cand.outputs).all())
    shared = [name for name in base.scores if name in cand.scores]
    same = [name for name in shared if np.array_equal(base.scores[name], cand.scores[name], equal_nan=True)]
    real = [name for name in shared if not np.isin(base.scores[name], (0.0, 1.0)).all()]
    if real:
        return set(real) <= set(same)
    files = [{item.sha256 for item in run.inputs} for run in (base, cand)]
    return True if len(same) == len(shared) and files[0] and files[0] == files[1] else None


def _settings(base: Mapping[str, str], cand: Mapping[str, str]) -> tuple[Difference, ...]:
    """Settings that both runs have, those of one task beside those of all."""
    found = []
    for name in dict.fromkeys((*base, *cand)):
        general = name.partition(_OF_TASK)[0]
        values = [run.get(name, run.get(general)) for run in (base, cand)]
        if general not in _MAY_DIFFER and None not in values and values[0] != values[1]:
            found.append(Difference(name, str(values[0]), str(values[1])))
    return tuple(found)
