"""Every reader of a step-time or device log: it knows its own format, no other, and survives what is damaged."""

from pathlib import Path

import numpy as np
import pytest
from tests.trace.logs import FORMATS, write

from ridgeline.core.errors import InputError
from ridgeline.trace.logs import Log, LogReader, StepLog, log_readers, read_log, sniff_log

READERS = list(log_readers().values())


def attempt(reader: LogReader, file: Path) -> tuple[tuple[Log, ...], str]:
    """What is read, or the refusal; any other error is a failure."""
    try:
        return reader.read(file), ""
    except InputError as error:
        return (), str(error)


def test_every_reader_has_a_sample() -> None:
    assert {reader.name for reader in READERS} == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_content_alone_decides(name: str, tmp_path: Path) -> None:
    file = write(tmp_path / "file", FORMATS[name])
    assert [r.name for r in READERS if r.sniff(file.read_bytes(), file)] == [name]
    found = sniff_log(file)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.name)
def test_columns_are_whole(reader: LogReader, tmp_path: Path) -> None:
    for log in reader.read(write(tmp_path / "file", FORMATS[reader.name])):
        assert log.format == reader.name
        assert len(log) > 0
        assert log.lost == () or all(loss.count > 0 for loss in log.lost)
        columns = (log.step, log.count, log.dur, log.end) if isinstance(log, StepLog) else (log.gpu, log.t)
        assert {(len(column), column.dtype.kind) for column in columns} == {(len(log), "i")}
        if isinstance(log, StepLog):
            assert (log.dur > 0).all()
            assert (np.diff(log.step) > 0).all()


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.name)
def test_a_file_cut_anywhere_is_read_or_refused(reader: LogReader, tmp_path: Path) -> None:
    text = FORMATS[reader.name]
    for share in (0.0, 0.3, 0.51, 0.77, 0.995):
        file = write(tmp_path / "file", text[: int(len(text) * share)])
        logs, refusal = attempt(reader, file)
        assert all(len(log) > 0 for log in logs)
        assert logs or str(file) in refusal


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.name)
def test_damage_never_raises_anything_else(reader: LogReader, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    good = FORMATS[reader.name].encode()
    for _ in range(20):
        damaged = bytearray(good)
        for at in random.integers(0, len(good), 30):
            damaged[at] = int(random.integers(0, 256))
        file = tmp_path / "file"
        file.write_bytes(bytes(damaged))
        logs, refusal = attempt(reader, file)
        assert logs or refusal.startswith("Expected")


def test_a_file_of_no_known_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Expected a step-time or device log, got") as caught:
        read_log(write(tmp_path / "file", "hello\n"))
    assert "MaxText" in caught.value.hint
