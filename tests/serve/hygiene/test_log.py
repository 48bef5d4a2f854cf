"""Lines of a log: compressed, damaged, mixed, out of order."""

import gzip
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene import envelope
from ridgeline.serve.hygiene.ledger import Ledger
from ridgeline.serve.hygiene.lines import lines
from ridgeline.serve.hygiene.log import requests
from ridgeline.serve.hygiene.request import Request


def prompt(text: str, **fields: Any) -> str:
    return json.dumps({"prompt": text, **fields})


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def read(path: Path, **options: Any) -> tuple[list[Request], Ledger]:
    ledger = Ledger()
    return list(requests(path, ledger, **options)), ledger


def test_unreadable_lines_are_listed_with_their_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log",
        prompt("one"),
        '{"prompt": "two',
        "",
        "hello",
        '{"other": 1}',
        '{"prompt": ""}',
        prompt("three"),
    )
    found, ledger = read(path)
    assert [request.line for request in found] == [1, 6, 7]
    assert [line for line, _ in ledger.listed] == [2, 4, 5]
    assert ledger.unread == 3
    assert ledger.lost()[0] == "1 line holds no readable request, JSON that is cut off or malformed: line 2"


def test_a_conversation_without_messages_is_an_empty_prompt(tmp_path: Path) -> None:
    found, ledger = read(write(tmp_path / "log", '{"messages": []}'))
    assert found == []
    assert ledger.listed == [(1, "an empty prompt")]


def test_gzip_whole_in_members_and_cut(tmp_path: Path) -> None:
    text = "\n".join(prompt(f"request {i}") for i in range(500)).encode()
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(text + b"\n") + gzip.compress(text))
    found, ledger = read(path)
    assert len(found) == 1000
    assert ledger.lost() == []
    path.write_bytes(gzip.compress(text)[:-200])
    found, ledger = read(path)
    assert 0 < len(found) < 500
    assert "cut off" in " ".join(ledger.lost())
    path.write_bytes(gzip.compress(text)[:60] + b"\0" * 300)
    assert "damaged" in " ".join(read(path)[1].lost())


def test_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "log.zst"
    path.write_bytes(zstandard.compress((prompt("one") + "\n" + prompt("two")).encode()))
    assert len(read(path)[0]) == 2
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match="without the package zstandard") as caught:
        read(path)
    assert "pip install zstandard" in caught.value.hint


def test_a_huge_line_is_skipped_not_held(tmp_path: Path) -> None:
    path = write(tmp_path / "log", prompt("one"), prompt("x" * (3 << 20)), prompt("three"))
    ledger = Ledger()
    assert [number for number, _ in lines(path, ledger, limit_bytes=1 << 20)] == [1, 3]
    assert ledger.listed == [(2, "a line of more than 1 MiB")]
    assert len(read(path)[0]) == 3


def test_order_of_time_where_the_log_has_one(tmp_path: Path) -> None:
    path = write(tmp_path / "log", prompt("b", time=2.0), prompt("c", time=3.0), prompt("a", time=1.0), prompt("d"))
    found, ledger = read(path)
    assert [request.parts[0].text for request in found] == [b"a", b"b", b"c", b"d"]
    assert ledger.lost() == ["request logged out of order of time"]
    far, ledger = read(path, sort_bytes=1)
    assert [request.parts[0].text for request in far] == [b"b", b"a", b"c", b"d"]
    assert "request too far out of order to be moved to its time" in ledger.lost()


def test_an_array_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a JSON array") as caught:
        read(write(tmp_path / "log", f"[{prompt('one')}]"))
    assert "jq -c" in caught.value.hint


def test_lines_of_a_vllm_server(tmp_path: Path) -> None:
    start = "INFO 11-02 09:12:03 logger.py:37] Received request cmpl-0: prompt: "
    path = write(
        tmp_path / "log",
        start + r"'It\'s \n one', params: SamplingParams(n=1), prompt_token_ids: None, lora_request: None.",
        start + "'two', params: SamplingParams(n=1), prompt_token_ids: [1, 22, 333], lora_request: None.",
        "INFO 11-02 09:12:04 metrics.py:10] Avg prompt throughput: 4 tokens/s",
    )
    found, ledger = read(path)
    assert found[0].parts[0].text == b"It's \n one"
    assert found[1].ids is not None
    assert found[1].ids.tolist() == [1, 22, 333]
    assert ledger.listed == [(3, "neither JSON nor a line of a known server")]


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [(1790000000, 1.79e9), (1790000000123, 1790000000.123), (1790000000123456, 1790000000.123456),
     ("1790000000.5", 1790000000.5),
     ("2026-09-21T13:33:20Z", 1789997600.0), ("2026-09-21 13:33:20", 1789997600.0), (12.5, 12.5)],
)  # fmt: skip
def test_times(stamp: object, seconds: float) -> None:
    assert envelope.time_s({"timestamp": stamp}) == pytest.approx(seconds, abs=1e-3)


@pytest.mark.parametrize("stamp", ["yesterday", None, True, [], "9999999-01-01", "nan"])
def test_a_time_that_is_none(stamp: object) -> None:
    assert math.isnan(envelope.time_s({"timestamp": stamp}))


def test_images_count_by_their_digest() -> None:
    block = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}
    (part,) = envelope.blocks("user", [block], "$")
    assert len(part.text) < 200
    other = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "B" * 5000}}
    assert list(envelope.blocks("user", [other], "$")) != [part]
