"""True lengths from every form of a batch, and the traps of each."""

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.gate.padding.lengths import Declared, read_lengths

IDS = np.array([[5, 6, 7, 0, 0], [0, 0, 5, 0, 6], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0]])
TRUE = [3, 3, 5, 0]  # the pad id between 5 and 6 counts as true


def npy(folder: Path, array: np.ndarray, name: str = "batch.npy") -> Path:
    out = BytesIO()
    np.save(out, array, allow_pickle=array.dtype == object)
    (folder / name).write_bytes(out.getvalue())
    return folder / name


def text(folder: Path, said: str, name: str = "lengths.txt") -> Path:
    (folder / name).write_text(said)
    return folder / name


def test_a_number_a_line(tmp_path: Path) -> None:
    found = read_lengths(text(tmp_path, "12\n\n7\n0\n"))
    assert found.true.tolist() == [12, 7, 0]
    assert found.width is None
    assert found.left is None


@pytest.mark.parametrize(("said", "name"), [
    ("id,length,kind\na,12,x\nb,7,y\n", "t.csv"),
    ('{"length": 12, "kind": "x"}\n{"length": 7, "kind": "y"}\n', "t.jsonl"),
])  # fmt: skip
def test_a_column_of_lengths_with_slices(tmp_path: Path, said: str, name: str) -> None:
    found = read_lengths(text(tmp_path, said, name), Declared({"slice": "kind"}))
    assert found.true.tolist() == [12, 7]
    assert found.slices is not None
    assert found.slices.tolist() == ["x", "y"]


def test_token_ids_with_a_pad_id(tmp_path: Path) -> None:
    found = read_lengths(npy(tmp_path, IDS), Declared(pad_id=0))
    assert found.true.tolist() == TRUE
    assert found.width == 5
    assert found.left is not None
    assert found.right is not None
    assert found.left.tolist() == [0, 2, 0, 0]
    assert found.right.tolist() == [2, 0, 0, 5]
    assert [(item.what.partition(",")[0], item.count) for item in found.lost] == [("pad ids between true tokens", 1)]


def test_a_mask_decides_over_ids(tmp_path: Path) -> None:
    mask = np.array([[1, 1, 0, 0], [0, 1, 0, 1]], dtype=np.int8)
    found = read_lengths(npy(tmp_path, mask))
    assert found.true.tolist() == [2, 2]
    assert found.holes is not None
    assert found.holes.tolist() == [0, 1]
    assert "mask leaves out" in found.lost[0].what


def test_ids_of_zeros_and_ones_are_ids_where_a_pad_id_is_given(tmp_path: Path) -> None:
    found = read_lengths(npy(tmp_path, np.array([[1, 0, 1, 1]])), Declared(pad_id=1))
    assert found.true.tolist() == [1]


def test_one_dimension_is_lengths(tmp_path: Path) -> None:
    assert read_lengths(npy(tmp_path, np.array([3, 4]))).true.tolist() == [3, 4]


def test_parquet_lists_and_masks(tmp_path: Path) -> None:
    ragged = pl.DataFrame({"input_ids": [[5, 6, 7], [5]], "n": [3, 1]})
    ragged.write_parquet(tmp_path / "ragged.parquet")
    assert read_lengths(tmp_path / "ragged.parquet").true.tolist() == [3, 1]
    masked = pl.DataFrame({"input_ids": [[5, 0, 0], [5, 6, 0]], "attention_mask": [[1, 0, 0], [1, 1, 1]]})
    masked.write_parquet(tmp_path / "masked.parquet")
    assert read_lengths(tmp_path / "masked.parquet", Declared(pad_id=0)).true.tolist() == [1, 3]
    ids = Declared({"ids": "input_ids"}, pad_id=0)
    assert read_lengths(tmp_path / "masked.parquet", ids).true.tolist() == [1, 2]


def test_safetensors(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"input_ids": IDS.astype(np.int64)}, tmp_path / "ids.safetensors")
    assert read_lengths(tmp_path / "ids.safetensors", Declared(pad_id=0)).true.tolist() == TRUE
    mask = (IDS != 0).astype(np.int64)
    save_file({"input_ids": IDS.astype(np.int64), "attention_mask": mask}, tmp_path / "both.safetensors")
    assert read_lengths(tmp_path / "both.safetensors").true.tolist() == mask.sum(axis=1).tolist()
    with pytest.raises(InputError, match="pad id"):
        read_lengths(tmp_path / "ids.safetensors")
    text(tmp_path, "no tensors", "bad.safetensors")
    with pytest.raises(InputError, match="readable safetensors"):
        read_lengths(tmp_path / "bad.safetensors")


def test_safetensors_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingExtraError, match=r"safetensors"):
        read_lengths(text(tmp_path, "anything", "x.safetensors"))


@pytest.mark.parametrize(("said", "name", "words"), [
    ("", "l.txt", "an empty file"),
    ("12\n-3\n", "l.txt", r"zero or more, got -3.0, at .*sequence 2"),
    ("12\nnan\n", "l.txt", "finite lengths"),
    ("12\ninf\n", "l.txt", "finite lengths"),
    ("12.5\n", "l.txt", "whole lengths"),
    ("12\nabc\n", "l.txt", "a length, got 'abc', at .*line 2"),
    ("length\n", "l.csv", "at least one sequence|row|readable"),
    ("id,text\n1,a\n", "l.csv", "a column of lengths"),
    ("id,length\n1,\n2,3\n", "l.csv", "in every row"),
    ("id,length\n1,long\n", "l.csv", "column of numbers"),
])  # fmt: skip
def test_bad_files(tmp_path: Path, said: str, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_lengths(text(tmp_path, said, name))


@pytest.mark.parametrize(("array", "declared", "words"), [
    (IDS, Declared(), "a pad id"),
    (np.zeros((0, 4)), Declared(), "one or two dimensions"),
    (np.zeros((2, 2, 2)), Declared(), "one or two dimensions"),
    (np.array([["a"]]), Declared(), "one or two dimensions"),
    (np.array([object()]), Declared(), "array of NumPy"),
])  # fmt: skip
def test_bad_arrays(tmp_path: Path, array: np.ndarray, declared: Declared, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_lengths(npy(tmp_path, array), declared)


def test_an_additive_mask_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"attention_mask": [[0.0, -1e9], [0.0, 0.0]]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(InputError, match="zeros and ones"):
        read_lengths(tmp_path / "m.parquet")


def test_roles_and_columns_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean"):
        Declared({"lenght": "n"})
    with pytest.raises(InputError, match="a column for length"):
        read_lengths(text(tmp_path, "length\n3\n", "l.csv"), Declared({"length": "n_tok"}))


def right_padded(rows: int = 40, width: int = 64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 30, rows)
    lengths[0] = width
    mask = np.arange(width)[None] < lengths[:, None]
    return mask, np.where(mask, rng.integers(5, 1000, (rows, width)), 0)


def test_an_inverted_mask_is_seen(tmp_path: Path) -> None:
    mask, _ = right_padded()
    np.save(tmp_path / "a.npy", mask.astype(np.int64))
    np.save(tmp_path / "b.npy", (~mask).astype(np.int64))
    np.save(tmp_path / "c.npy", mask[:, ::-1].astype(np.int64))
    assert read_lengths(tmp_path / "a.npy").why == ""
    assert read_lengths(tmp_path / "c.npy").why == ""
    assert "inverted" in read_lengths(tmp_path / "b.npy").why


def test_a_mask_is_held_against_its_ids(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    mask, ids = right_padded()
    numpy.save_file({"input_ids": ids, "attention_mask": mask.astype(np.int64)}, tmp_path / "a.safetensors")
    assert read_lengths(tmp_path / "a.safetensors").why == ""
    numpy.save_file({"input_ids": ids, "attention_mask": (~mask).astype(np.int64)}, tmp_path / "b.safetensors")
    with pytest.raises(InputError, match="ones at tokens"):
        read_lengths(tmp_path / "b.safetensors")


def test_another_pad_id_than_the_padding_is_refused(tmp_path: Path) -> None:
    _, ids = right_padded()
    np.save(tmp_path / "ids.npy", ids)
    assert read_lengths(tmp_path / "ids.npy", Declared(pad_id=0)).true[0] == 64
    with pytest.raises(InputError, match="--pad-id 0"):
        read_lengths(tmp_path / "ids.npy", Declared(pad_id=1))


def test_lengths_beyond_any_sequence_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("5\n1e300\n")
    with pytest.raises(InputError, match="at most"):
        read_lengths(tmp_path / "a.txt")
