"""What every trace reader has to keep, the ones of plug-ins included."""

from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.read import HEAD_BYTES, Reader, readers
from ridgeline.trace.salvage import head

RUBBISH = {
    "nothing": b"",
    "blank": b" \n",
    "text": b"step 1 loss 3.2\nstep 2 loss 3.1\n",
    "html": b"<!DOCTYPE html><html><body>login</body></html>",
    "other json": b'{"loss": [3.2, 3.1]}',
    "zeros": bytes(4096),
    "all bytes": bytes(range(256)) * 16,
}


@pytest.mark.parametrize("reader", readers(), ids=lambda r: r.name)
@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH.keys())
def test_rubbish_is_not_claimed_and_reading_it_refuses(reader: Reader, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)
    assert reader.sniff(content[:HEAD_BYTES], path) is False
    with pytest.raises(InputError) as caught:
        reader.read(path)
    assert caught.value.message.count("\n") == 0


@pytest.mark.parametrize("reader", readers(), ids=lambda r: r.name)
def test_the_extension_alone_decides_nothing(reader: Reader, tmp_path: Path) -> None:
    for name in ("trace.json", "trace.json.gz", "host.xplane.pb", "report.sqlite", "results.csv", "module.txt"):
        assert reader.sniff(b"", tmp_path / name) is False


def test_names_differ() -> None:
    names = [reader.name for reader in readers()]
    assert len(set(names)) == len(names)
    assert "kineto" in names


@pytest.mark.data
def test_one_reader_a_public_trace(data_dir: Path) -> None:
    """Two readers of the same priority never claim one file."""
    files = [p for p in (data_dir / "trace").rglob("*") if p.name.endswith((".json.gz", ".sqlite", ".pb"))]
    assert len(files) > 40
    for path in files:
        start = head(path, HEAD_BYTES)
        claims = [reader.priority for reader in readers() if reader.sniff(start, path)]
        assert claims, path
        assert claims.count(max(claims)) == 1, path
