"""Files that are compressed, damaged, cut off, or of a method that needs a package."""

import gzip
import json
import struct
import sys
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import pytest
import zstandard

from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.gate.evidence.files import content, digest, document, first, members, parsed, records, salvage


def archive(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive; of zstd members, which this Python's zipfile does not write, by hand."""
    if method != 93:
        held = BytesIO()
        with zipfile.ZipFile(held, "w", method) as target:
            for name, data in files.items():
                target.writestr(name, data)
        return held.getvalue()
    body, directory = b"", b""
    for name, data in files.items():
        packed, path, at = zstandard.ZstdCompressor().compress(data), name.encode(), len(body)
        facts = (0, method, 0, 0, zlib.crc32(data), len(packed), len(data), len(path))
        body += struct.pack("<4s5H3I2H", b"PK\x03\x04", 63, *facts, 0) + path + packed
        directory += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 63, 63, *facts, 0, 0, 0, 0, 0, at) + path
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(files), len(files), len(directory), len(body), 0)
    return body + directory + end


FILES = {f"samples/{n}.json": json.dumps({"id": n, "text": "ab" * 200}).encode() for n in range(6)}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93])
def test_members_of_every_method(method: int) -> None:
    assert members(archive(FILES, method), "a.eval") == (FILES, ())


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93])
def test_an_archive_that_is_cut_off_gives_what_came_before(method: int) -> None:
    whole = archive(FILES, method)
    cut = whole[: whole.index(b"samples/4.json") + 20]
    found, lost = members(cut, "a.eval")
    assert list(found) == list(FILES)[:4]
    assert [item.what for item in lost] == ["archive that is cut off: its directory is missing"]


def test_an_archive_that_was_streamed_is_read_without_its_directory() -> None:
    class Pipe(BytesIO):
        def seekable(self) -> bool:
            return False

    held = Pipe()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in FILES.items():
            target.writestr(name, data)
    data = held.getvalue()
    found, lost = members(data[: data.index(b"PK\x01\x02")], "a.eval")
    assert found == FILES
    assert len(lost) == 1


def test_a_damaged_member_is_counted() -> None:
    whole = bytearray(archive(FILES, zipfile.ZIP_STORED))
    whole[whole.index(b'{"id": 2')] = 0
    found, lost = members(bytes(whole), "a.eval")
    assert len(found) == 5
    assert lost[0].count == 1
    assert "samples/2.json" in lost[0].where


def test_zstd_without_the_decoder_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match="zstandard") as caught:
        members(archive(FILES, 93), "a.eval")
    assert "pip install" in caught.value.hint


def test_no_archive_at_all() -> None:
    with pytest.raises(InputError, match="zip archive"):
        members(b"PK\x03\x04rest", "a.eval")


@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_a_gzip_that_is_cut_off(keep: float, tmp_path: Path) -> None:
    text = "".join(f'{{"n": {n}, "x": "{digest("x", n)}"}}\n' for n in range(2000)).encode()
    packed = gzip.compress(text)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(packed[: int(len(packed) * keep)])
    held = records(path)
    assert 0 < len(held.rows) < 2000
    assert [row["n"] for row in held.rows] == list(range(len(held.rows)))
    assert any("gzip" in item.what for item in held.lost)
    assert first(path)["n"] == 0


def test_a_gzip_that_is_damaged_in_the_middle(tmp_path: Path) -> None:
    text = "".join(f'{{"n": {n}, "x": "{digest("x", n)}"}}\n' for n in range(4000)).encode()
    packed = bytearray(gzip.compress(text))
    packed[len(packed) // 2 : len(packed) // 2 + 8] = b"\xff" * 8
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(bytes(packed))
    held = content(path)
    assert held.lost
    assert held.data[:1000] == text[:1000]
    assert len(held.data) > len(text) // 4


def test_members_of_gzip_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"n": 1}\n') + gzip.compress(b'{"n": 2}\n'))
    assert [row["n"] for row in records(path).rows] == [1, 2]


def test_lines_that_are_no_record_are_counted_and_placed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\nnot json\n[1]\n\n{"n": NaN}\n{"m": 1}', encoding="utf-8")
    held = records(path, frozenset(("n",)))
    assert held.lines == [1, 5]
    assert held.lost[0].count == 3
    assert "first line 2" in held.lost[0].where


@pytest.mark.parametrize("cut", [20, 60, 100, 140])
def test_a_document_that_is_cut_off_keeps_whole_items(cut: int, tmp_path: Path) -> None:
    value = {"version": 2, "eval": {"task": "t"}, "samples": [{"id": n, "x": [n, {"y": "}]"}]} for n in range(5)]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value)[:cut], encoding="utf-8")
    found, _, lost = document(path)
    assert found["version"] == 2
    samples = found.get("samples", [])
    assert samples == value["samples"][: len(samples)]  # type: ignore[index]
    assert "cut off" in lost[0].what


def test_salvage_of_whole_text_is_the_text() -> None:
    assert salvage(' {"a": [1, 2]}')[0] == {"a": [1, 2]}
    assert salvage("rubbish")[0] is None


def test_nan_becomes_a_float_that_scores_refuse() -> None:
    assert str(parsed(b'{"a": NaN}')["a"]) == "nan"


def test_digests_tell_values_apart_and_ignore_the_order_of_keys() -> None:
    assert digest("a", {"x": 1, "y": 2}) == digest("a", {"y": 2, "x": 1})
    assert digest("a", 1) != digest("a", "1")
    assert digest("ab") != digest("a", "b")
