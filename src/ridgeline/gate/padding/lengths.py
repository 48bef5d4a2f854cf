"""The true lengths of a batch: from a column or list of lengths, or counted in token ids or an attention mask.

A mask says which positions are true. Ids say it by their padding alone: the runs of the pad id at both ends of a row
are padding, and a pad id between true tokens is a token (many tokenizers pad with the id that ends a text).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, MissingExtraError, did_you_mean
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import Content, content
from ridgeline.gate.evidence.readers.tabular import frame_of, sniff
from ridgeline.gate.evidence.samples import Texts

if TYPE_CHECKING:
    import polars as pl

Counts = NDArray[np.int64]
ROLES = ("length", "mask", "ids", "slice")
_USUAL = {
    "mask": ("attention_mask", "mask"),
    "length": ("length", "lengths", "num_tokens", "n_tokens", "seq_len", "tokens"),
    "ids": ("input_ids", "ids", "token_ids", "tokens"),
}
LONGEST = 2**40  # tokens; no sequence is longer, and sums stay exact
RUN = 4  # equal ids at an end of a row that are taken for padding
_NO_PAD = "--pad-id NUMBER says which id is padding; an attention mask needs none"


@dataclass(frozen=True)
class Lengths:
    """``true`` positions of each sequence, in file order; ``width`` of the array that held them, None without one.

    ``left`` and ``right`` count padded positions on either side, ``holes`` those that a mask leaves out in between, and
    ``inside`` pad ids between true tokens, which count as true; all are None for a list of lengths. ``why`` says what
    makes them no evidence, empty where nothing does.
    """

    true: Counts
    width: int | None = None
    left: Counts | None = None
    right: Counts | None = None
    holes: Counts | None = None
    inside: Counts | None = None
    slices: Texts | None = None
    said: str = "a list of lengths"
    inputs: tuple[InputFile, ...] = ()
    lost: tuple[Loss, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Declared:
    """The columns, or tensors, that the user named by role, and the pad id. Raises `InputError` for another role."""

    columns: Mapping[str, str] = field(default_factory=dict)
    pad_id: int | None = None

    def __post_init__(self) -> None:
        """Refuse a role that a batch does not have."""
        for role in self.columns:
            if role not in ROLES:
                hint = did_you_mean(role, ROLES, "roles: " + ", ".join(ROLES))
                raise InputError.expected("a role of a batch's column", role, where="--column", hint=hint)


def read_lengths(path: Path, declared: Declared | None = None) -> Lengths:
    """The batch of a file: ``.npy``, ``.safetensors``, a table, or text with a number a line.

    Raises `InputError` for no sequence, for lengths that are negative, broken or not finite, and for ids without a pad
    id; `MissingExtraError` for safetensors without its package.
    """
    declared, held = declared or Declared(), content(path)
    if path.suffix == ".npy":
        found = _of_array(_npy(held, path), "", declared, str(path))
    elif path.suffix == ".safetensors":
        found = _safetensors(held, path, declared)
    elif sniff(path):
        found = _table(held, path, declared)
    else:
        found = Lengths(_counts(_numbers(held, path), str(path)))
    if not len(found.true):
        raise InputError.expected("at least one sequence", "none", where=str(path))
    return replace(found, inputs=(held.file,), lost=(*held.lost, *found.lost, *_notes(found, path)))


def _notes(found: Lengths, path: Path) -> list[Loss]:
    """What a reader must know of rows that were counted."""
    notes = []
    if found.inside is not None and found.inside.sum():
        what = "pad ids between true tokens, counted as true; an attention mask would say"
        notes.append(Loss(what, int(found.inside.sum()), path.name))
    if found.holes is not None and found.holes.sum():
        notes.append(Loss("positions between true tokens that the mask leaves out", int(found.holes.sum()), path.name))
    return notes


def _counts(values: NDArray[Any], where: str) -> Counts:
    """Lengths as whole numbers. Raises `InputError` with the first that is none."""
    numbers = np.asarray(values, dtype=np.float64)
    for wrong, what in (
        (~np.isfinite(numbers), "finite lengths"),
        (numbers < 0, "lengths of zero or more"),
        (numbers != np.floor(numbers), "whole lengths"),
        (numbers > LONGEST, f"lengths of at most {LONGEST:,}"),
    ):
        at = np.flatnonzero(wrong)
        if len(at):
            raise InputError.expected(what, float(numbers[at[0]]), where=f"{where}, sequence {at[0] + 1}")
    return numbers.astype(np.int64)


def _numbers(held: Content, path: Path) -> NDArray[np.float64]:
    found = []
    for number, line in enumerate(held.data.decode("utf-8", "replace").splitlines(), 1):
        if line.strip():
            try:
                found.append(float(line))
            except ValueError as error:
                hint = "one length a line, or a .csv, .jsonl, .parquet, .npy or .safetensors file"
                raise InputError.expected(
                    "a length", line.strip()[:40], where=f"{path}, line {number}", hint=hint
                ) from error
    return np.array(found)


def _npy(held: Content, path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(BytesIO(held.data), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError.expected("an array of NumPy", str(error).splitlines()[0], where=str(path)) from error
    return found


def _of_array(array: NDArray[Any], role: str, declared: Declared, where: str) -> Lengths:
    """Lengths in one dimension; a mask or ids in two: zeros and ones without a pad id are a mask."""
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2) or 0 in array.shape:
        got = f"{array.dtype} of shape {array.shape}"
        raise InputError.expected("numbers in one or two dimensions", got, where=where)
    if array.ndim == 1:
        return Lengths(_counts(array, where))
    is_mask = bool(((array == 0) | (array == 1)).all())
    if role == "mask" or (not role and declared.pad_id is None and is_mask):
        if not is_mask:
            hint = "an additive mask of minus infinities is none"
            raise InputError.expected("a mask of zeros and ones", array.flat[0].item(), where=where, hint=hint)
        return _of_mask(array != 0, "an attention mask")
    if declared.pad_id is None:
        raise InputError.expected("a pad id for token ids", None, where=where, hint=_NO_PAD)
    return _of_ids(array, declared.pad_id, where)


def _of_mask(mask: NDArray[np.bool_], said: str) -> Lengths:
    """Counts of a mask ``[rows, width]``. A row without a true position is padded on the right."""
    true = mask.sum(axis=1, dtype=np.int64)
    width = mask.shape[1]
    left = np.where(true > 0, mask.argmax(axis=1), 0).astype(np.int64)
    right = np.where(true > 0, mask[:, ::-1].argmax(axis=1), width).astype(np.int64)
    return Lengths(true, width, left, right, width - left - right - true, said=said, why=_inverted(true, left, right))


def _inverted(true: Counts, left: Counts, right: Counts) -> str:
    """Why a mask may say padding where it should say token: a row of the whole width, inverted, is an empty one."""
    held = true > 0
    if held.all() or not held.any() or not (left[held] > 0).all() or (right[held] > 0).any():
        return ""
    return "every row begins with zeros and some have no token: an inverted mask reads so; give the ids beside it"


def _of_ids(ids: NDArray[Any], pad_id: int, where: str) -> Lengths:
    """Counts of token ids ``[rows, width]``: the runs of the pad id at both ends of a row are padding.

    Raises `InputError` where rows end in runs of another id.
    """
    edges = _of_mask(ids != pad_id, f"token ids, padded with {pad_id}")
    assert edges.holes is not None
    for end in (ids[:, -RUN:], ids[:, :RUN]) if ids.shape[1] > RUN else ():
        runs = end[(end == end[:, :1]).all(axis=1), 0]
        other = runs[runs != pad_id]
        if not (runs == pad_id).any() and len(other) > 1 and (other == other[0]).all():
            got = f"runs of {other[0]} at the ends of {len(other):,} rows"
            hint = f"--pad-id {other[0]}, if that is the padding"
            raise InputError.expected(f"rows padded with {pad_id}", got, where=where, hint=hint)
    return replace(edges, true=edges.true + edges.holes, holes=np.zeros_like(edges.holes), inside=edges.holes, why="")


def _refuse_inverted(mask: NDArray[Any], ids: NDArray[Any], where: str) -> None:
    """Raise where what a mask keeps is one id and what it drops is many: it is the wrong way round."""
    if mask.shape != ids.shape or mask.ndim != 2:
        return
    kept, dropped = (np.unique(ids[at]) for at in (mask != 0, mask == 0))
    if len(kept) == 1 and len(dropped) > 1:
        got = f"ones at the id {kept[0]} alone, and zeros at {len(dropped):,} ids"
        raise InputError.expected("a mask with ones at tokens", got, where=where, hint="invert it: one is a token")


def _safetensors(held: Content, path: Path, declared: Declared) -> Lengths:
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load
    except ModuleNotFoundError as error:
        raise MissingExtraError("safetensors", "readers") from error
    try:
        tensors: dict[str, NDArray[Any]] = load(held.data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        got = str(error).splitlines()[0]
        raise InputError.expected("a readable safetensors file", got, where=str(path)) from error
    role, name = _chosen(list(tensors), declared, path)
    if role == "ids" and tensors[name].ndim == 2 and declared.pad_id is None:
        hint = f"{_NO_PAD}; tensors: {', '.join(tensors)}"
        raise InputError.expected("a pad id for token ids", None, where=f"{path}: {name}", hint=hint)
    beside = next((tensors[other] for other in tensors if other.lower() in _USUAL["ids"]), None)
    found = _of_array(tensors[name], role, declared, f"{path}: {name}")
    return _beside(found, role, tensors[name], beside, f"{path}: {name}")


def _beside(found: Lengths, role: str, mask: NDArray[Any], ids: NDArray[Any] | None, where: str) -> Lengths:
    """A mask that was held against its ids; without any its doubt stays."""
    if role != "mask" or ids is None:
        return found
    _refuse_inverted(mask, ids, where)
    return replace(found, why="")


def _chosen(names: list[str], declared: Declared, path: Path) -> tuple[str, str]:
    """The role and name of the column or tensor that gives the lengths: as declared, else a mask before ids."""
    for role in ("mask", "length", "ids"):
        if role in declared.columns:
            return role, _known(declared.columns[role], names, role, path)
    lower = {name.lower(): name for name in names}
    for role, usual in _USUAL.items():
        found = next((lower[name] for name in usual if name in lower), None)
        if found is not None:
            return role, found
    hint = "declare it: --column length=NAME, mask=NAME or ids=NAME; there are " + ", ".join(names)
    raise InputError.expected("a column of lengths, masks or ids", ", ".join(names), where=str(path), hint=hint)


def _known(name: str, names: list[str], role: str, path: Path) -> str:
    if name not in names:
        hint = did_you_mean(name, names, "there are " + ", ".join(names))
        raise InputError.expected(f"a column for {role}", name, where=str(path), hint=hint)
    return name


def _table(held: Content, path: Path, declared: Declared) -> Lengths:
    frame, lost = frame_of(path, held)
    if frame.height == 0:
        raise InputError.expected("at least one sequence", "none", where=str(path))
    role, name = _chosen(frame.columns, declared, path)
    series = frame[name]
    if series.null_count():
        got = f"none in {series.null_count():,} rows"
        raise InputError.expected(f"a value of {name} in every row", got, where=str(path))
    found = _nested(series, role, declared, path) if series.dtype.is_nested() else _plain(series, path)
    slices = None
    if "slice" in declared.columns:
        cut = frame[_known(declared.columns["slice"], frame.columns, "slice", path)]
        slices = cut.cast(str, strict=False).fill_null("(no name)").to_numpy().astype(object)
    return replace(found, slices=slices, lost=lost)


def _plain(series: "pl.Series", path: Path) -> Lengths:
    where = f"{path}, column {series.name}"
    if not series.dtype.is_numeric():
        raise InputError.expected("a column of numbers or of lists", str(series.dtype), where=where)
    return Lengths(_counts(series.to_numpy(), where))


def _nested(series: "pl.Series", role: str, declared: Declared, path: Path) -> Lengths:
    """A column of lists: rows of one width are an array; ragged ones are unpadded ids, or masks of their own width."""
    rows = [np.asarray(row) for row in series.to_list()]
    where = f"{path}, column {series.name}"
    wrong = next((row for row in rows if row.ndim != 1 or (len(row) and row.dtype.kind not in "biuf")), None)
    if wrong is not None:
        raise InputError.expected("lists of numbers", str(wrong.dtype), where=where)
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    if role != "mask" and declared.pad_id is None and len(set(sizes.tolist())) > 1:
        return Lengths(sizes, said="lists of unpadded token ids")
    width = int(sizes.max())
    if width == 0:
        return Lengths(sizes, said="lists of unpadded token ids")
    fill = 0 if role == "mask" or declared.pad_id is None else declared.pad_id
    array = np.full((len(rows), width), fill, dtype=np.result_type(*{row.dtype for row in rows if len(row)}, np.int64))
    for at, row in enumerate(rows):
        array[at, : len(row)] = row
    return _of_array(array, "mask" if role == "mask" else "", declared, where)
