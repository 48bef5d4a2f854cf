"""One run over a canary set, as rows of needles: of this project's probe, of RULER, or of a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.lost import Loss
from ridgeline.gate.canary.needles import Context, Unplaced, answered, is_found
from ridgeline.gate.canary.sets import CanarySet, context_of
from ridgeline.gate.evidence.files import digest, first, records
from ridgeline.gate.evidence.reader import Wanted, read
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Floats, Samples

FOUND = "found"
SET = "canary set"
PLACES = ("position", "length", "depth")
_HITS = (FOUND, "hit", "score", "correct")


@dataclass(frozen=True)
class Counted:
    """What a server said of one prompt: its tokens, where it counted them, and whether the answer was cut off."""

    tokens: int | None = None
    cut: bool = False
    length: int = 0


@dataclass(frozen=True)
class Run:
    """Rows of needles, values that have no position, and what the server said of each context."""

    samples: Samples
    unplaced: tuple[Unplaced, ...] = ()
    counted: Mapping[str, Counted] = field(default_factory=dict)


def read_run(path: Path, canary: CanarySet | None = None, wanted: Wanted | None = None) -> Run:
    """A run's needles. ``canary`` is the set that was asked, needed where results carry no text.

    Raises `InputError` for results of another set, two results of a context, or a table without positions.
    """
    row = first(path)
    if "answer" in row and "needles" in row:
        return _probed(path, canary)
    if "pred" in row and "outputs" in row:
        return _ruler(path, canary)
    return Run(_table(path, wanted or Wanted()))


def _probed(path: Path, canary: CanarySet | None) -> Run:
    held = records(path)
    for number, row in zip(held.lines, held.rows, strict=True):
        _refuse_malformed(row, f"{path}, line {number}")
    kept, again = last_answers(held.rows, str(path))
    sets = {str(row.get("set", "")) for row in kept.values()}
    if len(sets) > 1:
        raise InputError.expected("results of one canary set", f"{len(sets)} sets", where=str(path))
    told = sets.pop()
    if canary is not None and told != canary.sha256:
        hint = "ask again with this set, or name the set that these results belong to"
        raise InputError.expected(f"results of the set {canary.sha256[:12]}", told[:12], where=str(path), hint=hint)
    _refuse_hollow(kept, str(path))
    lost = [*held.lost, *_losses(kept, again, canary, path)]
    rows = [item for name, row in kept.items() for item in _needles(name, row, canary, path)]
    models = {str(row.get("model", "")) for row in kept.values()}
    settings = {SET: told, "model": ", ".join(sorted(models))}
    samples = gathered(rows, Source(path.name, (held.file,), tuple(lost), settings), Wanted())
    return Run(samples, _unplaced(kept, canary), {name: _counted(row) for name, row in kept.items()})


def _refuse_malformed(row: Mapping[str, Any], where: str) -> None:
    length, gone = row.get("length"), row.get("unplaced") or []
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise InputError.expected("the length of a context in tokens", length, where=where)
    if not isinstance(row.get("needles"), list):
        raise InputError.expected("a list of needles", row.get("needles"), where=where)
    if not isinstance(gone, list) or not all(isinstance(u, dict) and isinstance(u.get("times"), int) for u in gone):
        raise InputError.expected("a list of values with their times", gone, where=where)


def _refuse_hollow(kept: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """Raise where one text stands under several ids, and where nothing was answered."""
    seen: dict[str, str] = {}
    for name, row in kept.items():
        text = json.dumps([row["length"], [item.get("value") for item in row["needles"] if isinstance(item, Mapping)]])
        if row["needles"] and text in seen:
            hint = "the same text again is no other context: its needles share one luck"
            raise InputError.expected("a text of its own in every context", f"that of {seen[text]!r} as {name!r}",
                                      where=where, hint=hint)  # fmt: skip
        seen[text] = name
    errors = [str(row.get("error")) for row in kept.values() if row.get("error")]
    if errors and len(errors) == len(kept):
        hint = "`ridgeline gate probe --retry-errors` asks them again"
        raise InputError.expected(
            "an answer", f"{len(errors):,} errors, first: {errors[0][:80]}", where=where, hint=hint
        )


def last_answers(rows: Sequence[Mapping[str, Any]], where: str) -> tuple[dict[str, Mapping[str, Any]], int]:
    """The row of every context, and how many errors were asked again.

    An answer replaces an earlier error. Raises `InputError` for two answers of one context.
    """
    kept: dict[str, Mapping[str, Any]] = {}
    again = 0
    for row in rows:
        name = str(row.get("id", ""))
        if name not in kept:
            kept[name] = row
        elif kept[name].get("error"):
            kept[name], again = row, again + 1
        elif row.get("error"):
            again += 1
        else:
            hint = "two runs in one file? give each run its own"
            raise InputError.expected("one answer a context", f"two of {name!r}", where=where, hint=hint)
    return kept, again


def _losses(kept: Mapping[str, Any], again: int, canary: CanarySet | None, path: Path) -> list[Loss]:
    lost = [Loss("errors that were asked again; the last answer counts", again, path.name)] if again else []
    missing = [name for name in canary.contexts if name not in kept] if canary else []
    if missing:
        lost.append(Loss("contexts of the set without a result", len(missing), f"{path.name}, first {missing[0]}"))
    return lost


def _unplaced(kept: Mapping[str, Any], canary: CanarySet | None) -> tuple[Unplaced, ...]:
    if canary is not None:
        return tuple(gone for name in kept for gone in canary.contexts[name].unplaced)
    return tuple(
        Unplaced(name, str(item.get("value", "")), item["times"])
        for name, row in kept.items()
        for item in row.get("unplaced") or []
    )


def _counted(row: Mapping[str, Any]) -> Counted:
    tokens = row.get("prompt_tokens")
    return Counted(tokens if isinstance(tokens, int) else None, row.get("finish") == "length", int(row["length"]))


def _needles(name: str, row: Mapping[str, Any], canary: CanarySet | None, path: Path) -> list[Row]:
    answer, failed = row.get("answer"), bool(row.get("error")) or not isinstance(row.get("answer"), str)
    if canary is not None and name not in canary.contexts:
        raise InputError.expected("a context of the set", name, where=str(path))
    if canary is not None:
        context = canary.contexts[name]
        length = context.length
        said = [(n.id, n.value, n.position, n.depth, n.key) for n in context.needles]
    else:
        length = int(row["length"])
        said = [_said(item, length, f"{path}, context {name}") for item in row["needles"]]
    prompt = digest("prompt", row.get("set", ""), name)  # the set's hash covers its prompts
    hits = answered("" if failed else str(answer), [(key, value) for _, value, _, _, key in said])
    return [
        _row((name, ident), _labels(name, position, length, depth), None if failed else hit, prompt)
        for (ident, _, position, depth, _), hit in zip(said, hits, strict=True)
    ]


def _said(item: Any, length: int, where: str) -> tuple[str, str, int, float, str]:
    hint = "results of `ridgeline gate probe` have all four; name the set with --set otherwise"
    got = json.dumps(item, default=str)[:60]
    try:
        found = (
            str(item["id"]),
            str(item["value"]),
            int(item["position"]),
            float(item["depth"]),
            str(item.get("key", "")),
        )
    except (TypeError, KeyError, ValueError, OverflowError, AttributeError) as error:
        raise InputError.expected("a needle with id, value, position and depth", got, where=where, hint=hint) from error
    if not 0 <= found[2] <= length or not 0 <= found[3] <= 1:
        raise InputError.expected("a needle inside its context", got, where=where, hint=hint)
    return found


def _labels(context: str, position: int, length: int, depth: float) -> dict[str, str]:
    return {"context": context, "position": str(position), "length": str(length), "depth": f"{depth:.6f}"}


def _row(key: tuple[str, ...], labels: Mapping[str, str], hit: bool | None, prompt: str) -> Row:
    return Row(key, {FOUND: None if hit is None else float(hit)}, hit is None, labels, prompt)


def _ruler(path: Path, canary: CanarySet | None) -> Run:
    held = records(path)
    rows: list[Row] = []
    unplaced: list[Unplaced] = []
    seen: set[str] = set()
    for number, row in zip(held.lines, held.rows, strict=True):
        where = f"{path}, line {number}"
        context = _ruler_context(row, canary, where)
        told = digest("input", context.prompt)
        if told in seen:
            raise InputError.expected("one result a context", f"two of index {row.get('index')}", where=where)
        seen.add(told)
        unplaced += context.unplaced
        answer = row.get("pred")
        for needle in context.needles:
            hit = is_found(needle.value, answer) if isinstance(answer, str) else None
            labels = _labels(told, needle.position, context.length, needle.depth)
            rows.append(_row((told, needle.value), labels, hit, told))
    if not rows:
        got = f"{len(unplaced)} values that stand there never or more than once"
        raise InputError.expected("needles that can be placed", got, where=str(path))
    return Run(gathered(rows, Source(path.name, (held.file,), held.lost), Wanted()), tuple(unplaced))


def _ruler_context(row: Mapping[str, Any], canary: CanarySet | None, where: str) -> Context:
    if isinstance(row.get("input"), str):
        return context_of(row, where)
    name = str(row.get("index", ""))
    if canary is None or name not in canary.contexts:
        hint = "name RULER's data with --set: predictions without their input have no positions"
        raise InputError.expected("the input of a prediction", f"none for index {name}", where=where, hint=hint)
    return canary.contexts[name]


def _table(path: Path, wanted: Wanted) -> Samples:
    """A table with the columns id, context (or cluster), position and length, and one of hits."""
    found = read(path, wanted)
    labels = dict(found.labels)
    clusters = [name for name in ("context", "cluster") if name in labels]
    if not clusters:
        hint = did_you_mean("context", labels, "declare it: --column cluster=NAME")
        raise InputError.expected("a column for the context", "none", where=str(path), hint=hint)
    labels["context"] = labels[clusters[0]]
    hits = [name for name in (*wanted.metrics, *_HITS) if name in found.scores]
    if not hits:
        hint = f"columns of numbers: {', '.join(found.scores) or 'none'}; declare it: --column found=NAME"
        raise InputError.expected("a column of hits", "none", where=str(path), hint=hint)
    given = {name: column(found, name, str(path)) for name in PLACES if name in found.scores or name in labels}
    for name in PLACES[:2]:
        if name not in given:
            hint = f"columns: {', '.join([*labels, *found.scores])}; declare it: --column {name}=NAME"
            raise InputError.expected(f"a column of the needle's {name} in tokens", "none", where=str(path), hint=hint)
    depth = given.get("depth", given["position"] / np.maximum(given["length"], 1))
    if ((depth < 0) | (depth > 1)).any():
        raise InputError.expected("positions inside the context", float(depth.max()), where=str(path))
    texts = {"position": given["position"], "length": given["length"], "depth": depth}
    labels |= {name: np.array([f"{value:.6f}" for value in values], dtype=object) for name, values in texts.items()}
    return replace(found, labels=labels, scores={FOUND: _binary(found.scores[hits[0]], hits[0], str(path))})


def _binary(scores: Floats, name: str, where: str) -> Floats:
    known = scores[~np.isnan(scores)]
    if not np.isin(known, (0.0, 1.0)).all():
        off = float(known[~np.isin(known, (0.0, 1.0))][0])
        raise InputError.expected(f"zeros and ones of {name}: one row a needle", off, where=where)
    return scores


def column(samples: Samples, name: str, where: str = "") -> Floats:
    """A column of numbers, be it a label or a score. Raises `InputError` for one that is no number somewhere."""
    values = samples.scores[name] if name in samples.scores else samples.labels[name]
    try:
        found = np.array([float(value) for value in values], dtype=np.float64)
    except ValueError as error:
        raise InputError.expected(f"numbers in the column {name}", str(error), where=where or samples.run) from error
    if not np.isfinite(found).all():
        raise InputError.expected(f"a {name} in every row", "a gap", where=where or samples.run)
    return found
