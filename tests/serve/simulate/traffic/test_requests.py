"""Bad traces: named, counted, refused or listed."""

from pathlib import Path

import numpy as np
import pytest
from tests.serve.simulate.formats import write

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.requests import read_requests

HEADER = "arrival_s,input_tokens,output_tokens\n"
GOOD = "0,100,10\n1,200,20\n2,300,30\n3,400,40\n"


def read(folder: Path, rows: str, header: str = HEADER, **options: bool) -> dict[str, int]:
    found = read_requests(write(folder / "trace.csv", header + rows), **options)
    assert len(found) == 4
    return {loss.what: loss.count for loss in found.lost}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("4,0,10", "lines with zero input tokens"),
        ("4,10,0", "lines with zero output tokens"),
        ("4,10.5,10", "lines whose input tokens are not whole"),
        ("4,10,-3", "lines whose output tokens are out of range"),
        ("4,10,1e30", "lines whose output tokens are out of range"),
        ("4,nan,10", "lines without a number of input tokens"),
        ("nan,10,10", "lines without an arrival time that is a number"),
        ("soon,10,10", "lines without an arrival time that is a number"),
        ("4,10", "lines with another number of columns than the header"),
        ("arrival_s,input_tokens,output_tokens", "lines that repeat the header"),
    ],
)
def test_a_row_that_cannot_be_used_is_left_out_and_counted(tmp_path: Path, row: str, what: str) -> None:
    assert read(tmp_path, f"{GOOD}{row}\n{row}\n") == {what: 2}


def test_a_fault_is_counted_once(tmp_path: Path) -> None:
    assert read(tmp_path, f"{GOOD}nan,nan,0\n") == {"lines without an arrival time that is a number": 1}


def test_times_that_go_back_are_refused_with_their_count(tmp_path: Path) -> None:
    file = write(tmp_path / "trace.csv", HEADER + "0,1,1\n5,2,2\n3,3,3\n4,4,4\n2,5,5\n")
    with pytest.raises(InputError, match=r"got 2 of 5 rows earlier than the row before \(the first in line 4\)"):
        read_requests(file)
    found = read_requests(file, sort=True)
    assert found.arrival_s is not None
    assert (np.diff(found.arrival_s) >= 0).all()
    assert found.input_tokens.tolist() == [1, 5, 3, 4, 2]
    assert found.notes == ("2 rows were out of order and have been sorted",)


def test_times_below_zero_are_refused_even_sorted(tmp_path: Path) -> None:
    file = write(tmp_path / "trace.csv", HEADER + "-3,1,1\n-1,2,2\n3,3,3\n4,4,4\n")
    with pytest.raises(InputError, match=r"got 2 of 4 below zero \(the first, -3 s, in line 2\)"):
        read_requests(file, sort=True)


@pytest.mark.parametrize("rows", ["", "4,0,0\n", "a,b,c\n"])
def test_nothing_left_is_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(InputError, match="of which 0 can be used"):
        read_requests(write(tmp_path / "trace.csv", HEADER + rows))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Expected a request trace"):
        read_requests(write(tmp_path / "trace.csv", ""))


def test_a_header_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    text = "arrival_s,input_tokens,input_tokens,output_tokens\n0,1,1,1\n"
    with pytest.raises(InputError, match="'input_tokens' twice"):
        read_requests(write(tmp_path / "trace.csv", text))


def test_a_file_without_a_column_names_the_known_formats(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file of another format") as caught:
        read_requests(write(tmp_path / "trace.csv", "arrival_s,input_tokens\n0,1\n"))
    assert "CSV (CSV with arrival_s, input_tokens, output_tokens" in caught.value.hint


def test_two_schemas_in_a_log(tmp_path: Path) -> None:
    own = '{"timestamp": 1000, "input_length": 10, "output_length": 5, "hash_ids": [1]}\n'
    other = '{"arrival_s": 1, "input_tokens": 10, "output_tokens": 5}\n'
    found = read_requests(write(tmp_path / "log.jsonl", own * 5 + other * 2))
    assert {loss.what: loss.count for loss in found.lost} == {"lines of another schema": 2}
    with pytest.raises(InputError, match="got 7 rows of which 2 can be used"):
        read_requests(write(tmp_path / "log.jsonl", own * 2 + other * 5))


def test_lengths_without_times(tmp_path: Path) -> None:
    found = read_requests(write(tmp_path / "t.csv", "num_prefill_tokens,num_decode_tokens\n10,5\n20,6\n"))
    assert found.arrival_s is None
    assert len(found) == 2


def test_clock_times_are_counted_from_the_first(tmp_path: Path) -> None:
    found = read_requests(write(tmp_path / "t.csv", HEADER + "1700000000,10,5\n1700000002,20,6\n"))
    assert found.arrival_s is not None
    assert found.arrival_s.tolist() == [0.0, 2.0]
    assert "clock times" in found.notes[0]


def test_hashes_that_fit_no_block_size_are_not_used(tmp_path: Path) -> None:
    row = '{{"timestamp": 0, "input_length": {}, "output_length": 5, "hash_ids": {}}}\n'
    text = row.format(600, [0, 1]) + row.format(40_000, [0, 1])
    found = read_requests(write(tmp_path / "log.jsonl", text))
    assert found.blocks is None
    assert "fit no block size" in found.notes[0]


def test_zones_are_minded(tmp_path: Path) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00+00:00,1,1\n2024-05-10 02:00:01.5+02:00,2,2\n"
    found = read_requests(write(tmp_path / "t.csv", text))
    assert found.arrival_s is not None
    assert found.arrival_s.tolist() == [0.0, 1.5]


def test_parquet_without_a_column(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame({"arrival_s": [0.0], "prompt": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="Expected the column input_tokens, got 'arrival_s, prompt'"):
        read_requests(tmp_path / "t.parquet")
