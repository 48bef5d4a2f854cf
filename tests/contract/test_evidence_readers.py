"""What every reader of evaluation logs has to keep, the ones of plug-ins included."""

from pathlib import Path

import numpy as np
import pytest
from tests.gate.evidence.logs import EXAMPLES, file_of, llamacpp

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.pairing import pair
from ridgeline.gate.evidence.reader import Reader, Wanted, read, readers

READERS = list(readers().values())
PER_EXAMPLE = [reader for reader in READERS if reader.name != "llamacpp"]
RIGHT = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
RUBBISH = {
    "nothing": b"", "blank": b" \n", "html": b"<!DOCTYPE html><html><body>login</body></html>", "zeros": bytes(4096),
    "other json": b'{"loss": [3.2, 3.1]}', "all bytes": bytes(range(256)) * 16,
}  # fmt: skip


def test_every_reader_has_an_example_here() -> None:
    """A reader without one is not tested by this suite."""
    assert {reader.name for reader in READERS} == {*EXAMPLES, "llamacpp"}


@pytest.mark.parametrize("reader", PER_EXAMPLE, ids=lambda r: r.name)
def test_its_own_log_is_told_by_content_and_read(reader: Reader, tmp_path: Path) -> None:
    example = EXAMPLES[reader.name]
    path = example.make(tmp_path, RIGHT)
    assert next(item.name for item in readers().values() if item.sniff(path)) == reader.name
    found = read(path)
    by_key = dict(zip(found.keys.tolist(), found.scores[example.metric].tolist(), strict=True))
    assert len(by_key) == len(RIGHT)
    assert sorted(by_key.values()) == sorted(RIGHT)
    assert not found.errors.any()
    assert found.inputs
    assert found.lost == ()


@pytest.mark.parametrize("reader", PER_EXAMPLE, ids=lambda r: r.name)
def test_two_runs_pair_by_content(reader: Reader, tmp_path: Path) -> None:
    example = EXAMPLES[reader.name]
    for name in "ab":
        (tmp_path / name).mkdir()
    base = read(example.make(tmp_path / "a", RIGHT))
    cand = read(example.make(tmp_path / "b", [1.0 - value for value in RIGHT]))
    pairs = pair(base, cand)
    left, right, _ = pairs.scores(example.metric)
    assert len(pairs) == len(RIGHT)
    assert np.array_equal(left + right, np.ones(len(RIGHT)))


@pytest.mark.parametrize("reader", PER_EXAMPLE, ids=lambda r: r.name)
def test_damaged_half_way_is_read_as_far_as_it_goes(reader: Reader, tmp_path: Path) -> None:
    path = EXAMPLES[reader.name].make(tmp_path, RIGHT)
    file = file_of(path)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 6 // 10])
    found = read(path, form=reader.name)
    assert 0 < len(found) < len(RIGHT)
    assert found.lost
    assert all(loss.count > 0 for loss in found.lost)


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.name)
@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH.keys())
def test_rubbish_is_refused_in_one_line(reader: Reader, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)
    assert reader.sniff(path) is False
    with pytest.raises(InputError) as caught:
        reader.read(path, Wanted())
    assert caught.value.message.count("\n") == 0


@pytest.mark.parametrize("reader", PER_EXAMPLE, ids=lambda r: r.name)
def test_an_empty_file_is_refused(reader: Reader, tmp_path: Path) -> None:
    path = EXAMPLES[reader.name].make(tmp_path, RIGHT)
    file_of(path).write_bytes(b"")
    with pytest.raises(InputError, match=r"empty|at least one"):
        read(path, form=reader.name)


@pytest.mark.parametrize("reader", PER_EXAMPLE, ids=lambda r: r.name)
def test_nothing_is_averaged(reader: Reader, tmp_path: Path) -> None:
    """As many rows as the log has results, each with the score that was written."""
    example = EXAMPLES[reader.name]
    found = read(example.make(tmp_path, RIGHT))
    assert len(found) == len(RIGHT)
    assert set(found.scores[example.metric].tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("reader", PER_EXAMPLE, ids=lambda r: r.name)
def test_a_declared_column_that_is_not_there_is_refused(reader: Reader, tmp_path: Path) -> None:
    path = EXAMPLES[reader.name].make(tmp_path, RIGHT)
    with pytest.raises(InputError, match="column for slice"):
        read(path, Wanted({"slice": "nowhere"}))


def test_means_are_no_examples(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="single examples") as caught:
        read(llamacpp(tmp_path, RIGHT))
    assert "can be paired" in caught.value.hint
    assert "precision gate" in caught.value.hint


def test_names_that_say_another_format(tmp_path: Path) -> None:
    """Content beats the name: an lm-eval log that is called results.csv."""
    file = file_of(EXAMPLES["lm_eval"].make(tmp_path, RIGHT))
    file.rename(tmp_path / "results.csv")
    assert "exact_match" in read(tmp_path / "results.csv").scores


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# notes\n", encoding="utf-8")
    with pytest.raises(InputError, match="known evaluation log") as caught:
        read(path)
    assert "lm_eval" in caught.value.hint
    with pytest.raises(InputError, match="log format"):
        read(path, form="lm_evil")
