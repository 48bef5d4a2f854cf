"""Damaged files: what can be read is read, what is lost is said, and nothing hangs or explodes."""

import contextlib
import gzip
import json
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.trace import salvage
from ridgeline.trace.read import read_trace


def event(i: int, **more: object) -> dict[str, object]:
    base = {"ph": "X", "cat": "kernel", "name": f"gemm_{i}", "pid": 0, "tid": 7, "ts": 100 + 10 * i, "dur": 5}
    return base | {"args": {"stream": 7, "device": 0, "correlation": i}} | more


def text(events: list[str] | None = None, n: int = 20, head: str = '"schemaVersion": 1') -> str:
    parts = events if events is not None else [json.dumps(event(i)) for i in range(n)]
    return '{%s, "traceEvents": [\n%s\n], "traceName": "x"}' % (head, ",\n".join(parts))  # noqa: UP031


def save(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lost(path: Path) -> dict[str, int]:
    return {loss.what: loss.count for loss in read_trace(path).info.lost}


def one_bad(bad: str, at: int = 7, n: int = 20) -> str:
    parts = [json.dumps(event(i)) for i in range(n)]
    parts[at] = bad
    return text(parts)


BAD = json.dumps(event(7))
REPAIRABLE = {
    "key without a value": BAD.replace('"stream": 7', '"Process Group Description": , "stream": 7'),
    "control character in a name": BAD.replace("gemm_7", "gemm\x01\n_7"),
    "backslash that escapes nothing": BAD.replace("gemm_7", "C:\\Users\\gemm"),
    "NaN": BAD.replace('"stream": 7', '"occupancy": NaN, "stream": 7'),
    "Infinity": BAD.replace('"stream": 7', '"GB/s": -Infinity, "stream": 7'),
    "inf": BAD.replace('"stream": 7', '"GB/s": inf, "stream": 7'),
    "rank list cut with dots": BAD.replace('"stream": 7', '"Process Group Ranks": [0, 1, 2, ...], "stream": 7'),
    "comma too many": BAD.replace('"stream": 7', '"grid": [1, 1, 1,], "stream": 7,').replace(",, ", ", "),
    "comma missing between members": BAD.replace('"dur": 5,', '"dur": 5'),
}


@pytest.mark.parametrize("bad", REPAIRABLE.values(), ids=REPAIRABLE.keys())
def test_a_broken_event_is_repaired_and_its_neighbours_are_untouched(tmp_path: Path, bad: str) -> None:
    found = read_trace(save(tmp_path / "t.json", one_bad(bad)))
    assert found.ts.tolist() == [10_000 * i for i in range(20)]
    assert found.corr.tolist() == list(range(20))
    assert {x.what: x.count for x in found.info.lost} == {"events with broken JSON: repaired": 1}


@pytest.mark.parametrize("at", [0, 7, 19])
def test_a_missing_comma_between_events_loses_nothing(tmp_path: Path, at: int) -> None:
    parts = [json.dumps(event(i)) for i in range(20)]
    joined = ",\n".join(parts[: at + 1]) + "\n" + ",\n".join(parts[at + 1 :])
    found = read_trace(save(tmp_path / "t.json", '{"traceEvents": [' + joined + "]}"))
    assert len(found) == 20


@pytest.mark.parametrize("at", [0, 7, 19])
def test_what_no_repair_helps_is_dropped_and_counted(tmp_path: Path, at: int) -> None:
    path = save(tmp_path / "t.json", one_bad('{"ph": "X", "cat": "kernel", "name": "x" : : }', at))
    assert len(read_trace(path)) == 19
    assert lost(path) == {"events with broken JSON: dropped": 1}


def test_many_faults_are_each_found(tmp_path: Path) -> None:
    parts = [json.dumps(event(i)) for i in range(3000)]
    for i in range(0, 3000, 3):
        parts[i] = parts[i].replace('"stream": 7', '"GB/s": NaN, "stream": 7')
    path = save(tmp_path / "t.json", text(parts))
    assert len(read_trace(path)) == 3000
    assert lost(path) == {"events with broken JSON: repaired": 1000}


def test_brackets_and_braces_in_names_are_text(tmp_path: Path) -> None:
    names = ['a]}, {"ph": "X"', "],", "}, {", '\\"traceEvents\\": [', "[[[{{{", "\\\\", '"'] * 5
    parts = [json.dumps(event(i, name=name)) for i, name in enumerate(names)]
    found = read_trace(save(tmp_path / "t.json", text(parts)))
    assert [found.name_of(i) for i in range(len(found))] == names
    assert found.info.lost == ()


def test_trace_name_with_a_bracket_after_the_list(tmp_path: Path) -> None:
    path = save(tmp_path / "t.json", text().replace('"traceName": "x"', '"traceName": "a]b.json"'))
    assert read_trace(path).info.extra["traceName"] == "a]b.json"


def test_latin_1_bytes_are_marked(tmp_path: Path) -> None:
    path = save(tmp_path / "t.json", one_bad(BAD.replace("gemm_7", "gemm_é")).encode("latin-1"))
    found = read_trace(path)
    assert len(found) == 20
    assert "gemm_\ufffd" in found.names
    assert len(found.info.lost) == 1


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    path = save(tmp_path / "t.json", one_bad(BAD.replace("gemm_7", "gemm_\\ud83d")))
    assert len(read_trace(path)) == 20
    assert len(lost(path)) == 1


@pytest.mark.parametrize("packed", [False, True])
def test_truncation_at_every_place(tmp_path: Path, packed: bool) -> None:
    whole = text().encode()
    start, end = whole.index(b"[") + 1, whole.rindex(b"]")
    for cut in range(whole.index(b"}", start) + 3, end, 7):
        data = whole[:cut]
        path = save(tmp_path / "t.json", gzip.compress(data) if packed else data)
        events = data.count(b'"ph"')
        found = read_trace(path)
        complete = sum(1 for i in range(20) if f'"correlation": {i}}}}}'.encode() in data)
        assert len(found) == complete
        said = {x.what.split(":")[0]: x.count for x in found.info.lost}
        assert "list of events not closed" in said
        assert said.get("events cut off in the middle", 0) >= events - complete


def test_truncated_gzip_gives_what_was_written(tmp_path: Path) -> None:
    draw = random.Random(1)
    parts = [json.dumps(event(i, name=f"k{draw.random()}")) for i in range(5000)]
    packed = gzip.compress(text(parts).encode())
    path = save(tmp_path / "t.json.gz", packed[: len(packed) // 2])
    found = read_trace(path)
    assert 1500 < len(found) < 3500
    assert any("gzip file cut off" in loss.what for loss in found.info.lost)


def test_damaged_gzip_gives_what_comes_before(tmp_path: Path) -> None:
    draw = random.Random(1)
    parts = [json.dumps(event(i, name=f"k{draw.random()}")) for i in range(5000)]
    packed = bytearray(gzip.compress(text(parts).encode()))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    path = save(tmp_path / "t.json.gz", bytes(packed))
    assert len(read_trace(path)) > 500
    assert lost(path)


def test_gzip_in_members_and_with_rubbish_after_it(tmp_path: Path) -> None:
    whole = text().encode()
    packed = gzip.compress(whole[:500]) + gzip.compress(whole[500:])
    assert len(read_trace(save(tmp_path / "a.json.gz", packed))) == 20
    assert lost(save(tmp_path / "b.json.gz", packed + b"rubbish")) == {"bytes after the end of the gzip data": 7}


def test_two_documents_in_one_file(tmp_path: Path) -> None:
    path = save(tmp_path / "t.json", text() + "\n" + text([json.dumps(event(i)) for i in range(30, 40)]))
    assert len(read_trace(path)) == 30
    assert lost(path) == {"further documents in the same file: read as one trace": 1}


def test_times_as_text_negative_and_missing(tmp_path: Path) -> None:
    parts = [
        json.dumps(event(0, ts="1700000000000000.125", dur="2.5")),
        json.dumps(event(1, ts="1700000000000001.250", dur=-3)),
        json.dumps(event(2, ts=None)),
        json.dumps(event(3, ts="soon")),
        json.dumps(event(4, ts=1700000000000002, dur=None)),
        json.dumps(event(5, ts={"s": 1})),
    ]
    path = save(tmp_path / "t.json", text(parts))
    found = read_trace(path)
    assert found.ts.tolist() == [0, 1125, 1875]
    assert found.dur.tolist() == [2500, 0, 0]
    assert lost(path) == {
        "events without a readable time: dropped": 3,
        "events without a readable duration: counted as instants": 1,
        "events of negative duration: counted as instants": 1,
    }


def test_entries_that_are_no_events(tmp_path: Path) -> None:
    parts = [json.dumps(event(0)), "3", '"text"', "[1]", "null", json.dumps(event(1, args=[1])), json.dumps(event(2))]
    path = save(tmp_path / "t.json", text(parts))
    assert len(read_trace(path)) == 3
    assert lost(path) == {"entries of the list that are no events": 4}


def test_long_unclosed_string_does_not_swallow_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvage, "BLOCK_BYTES", 4096)
    parts = [json.dumps(event(i)) for i in range(2000)]
    parts[100] = '{"ph": "X", "cat": "kernel", "name": "open'
    found = read_trace(save(tmp_path / "t.json", text(parts)))
    assert len(found) >= 1990
    assert found.info.lost


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"   \n", "an empty file"),
        (b"{}", "JSON without keys"),
        (b'{"loss": [1, 2]}', "JSON with the keys loss"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "a trace with metadata only"),
        (b'{"traceEvents": [{"ph": "M", "name": "process_name", "args": {"name": "python"}}]}', "metadata only"),
        (b'{"schemaVersion": 1}', "JSON without a list of events"),
        (b'{"traceEvents": null}', "JSON without a list of events"),
        (b"[]", "JSON without keys"),
        (b"%PDF-1.7", "a PDF document"),
        (b"<!DOCTYPE html><html>", "an HTML or XML page"),
        (b"\x89PNG\r\n", "an image"),
        (b"\x28\xb5\x2f\xfd1234", "a Zstandard file"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        (b"step:1 loss:2", "text that starts"),
        (b"\x00\x01\x02\x03\x00\x00\x09", "a binary file"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    path = save(tmp_path / "thing.json", content)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert said in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.message.count("\n") == 0


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="readable file"):
        read_trace(tmp_path / "absent.json")
    with pytest.raises(InputError, match="one trace file"):
        read_trace(tmp_path)


def test_zip_with_one_member_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.json", text())
    assert len(read_trace(path)) == 20


@pytest.mark.parametrize(
    ("members", "said"), [([], "got '0'"), (["a.json", "b.json"], "got '2'"), (["m/data.pkl", "m/x"], "checkpoint")]
)
def test_other_zip_archives_are_refused(tmp_path: Path, members: list[str], said: str) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, text())
    with pytest.raises(InputError, match=said):
        read_trace(path)


def test_truncated_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.json", text())
    save(path, path.read_bytes()[:-30])
    with pytest.raises(InputError, match="a whole zip archive"):
        read_trace(path)


@pytest.mark.parametrize("kind", ["gzip", "zip"])
def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(salvage, "RATIO_FROM_BYTES", 1 << 20)
    path = tmp_path / "bomb"
    content = text() + " " * (32 << 20)
    if kind == "gzip":
        save(path, gzip.compress(content.encode()))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("t.json", content)
    with pytest.raises(InputError, match="500 times"):
        read_trace(path)


def test_the_size_limit_holds_for_honest_ratios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvage, "LIMIT_BYTES", 1000)
    with pytest.raises(InputError, match="an archive that holds more"):
        read_trace(save(tmp_path / "t.json.gz", gzip.compress(text().encode())))


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_repair_leaves_valid_json_as_it_is(value: object) -> None:
    valid = json.dumps({"a": value, "b": [value, {"c": value}]})
    assert json.loads(salvage.repair(valid.encode())) == json.loads(valid)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    path = tmp_path_factory.mktemp("r") / "t.json"
    for content in (rubbish, b'{"traceEvents": [' + rubbish, text().encode()[:700] + rubbish + text().encode()[700:]):
        save(path, content)
        with contextlib.suppress(InputError):  # any other exception fails the test
            assert len(read_trace(path)) > 0
