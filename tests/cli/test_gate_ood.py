"""``ridgeline gate ood`` from the command line: the log is added to, and not twice for the same data."""

from pathlib import Path
from typing import Any

import pytest


def rows(path: Path, n: int, every: int) -> Path:
    lines = ["id,label,decision", *(f"{path.stem}{i},0,{int(i % every == 0)}" for i in range(n)), "p,1,1"]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    return rows(tmp_path / "offline.csv", 6000, 100)


@pytest.mark.parametrize(("n", "every", "code"), [(6000, 100, 0), (6000, 20, 1), (60, 100, 4)])
def test_exit_codes(ridgeline: Any, tmp_path: Path, offline: Path, n: int, every: int, code: int) -> None:
    field = rows(tmp_path / "field.csv", n, every)
    assert ridgeline("gate", "ood", "--offline", offline, "--field", field, "-o", tmp_path / "r").code == code
    assert ridgeline("gate", "ood", "--offline", offline, "-o", tmp_path / "r").code == 4


def test_the_log_is_added_to(ridgeline: Any, tmp_path: Path, offline: Path) -> None:
    log = tmp_path / "logs" / "field.jsonl"
    common = ("gate", "ood", "--offline", offline, "--log", log, "-o", tmp_path / "r")
    first, second = rows(tmp_path / "first.csv", 6000, 100), rows(tmp_path / "second.csv", 6000, 90)
    assert ridgeline(*common, "--field", first, "--date", "2026-05-04").code == 0
    assert ridgeline(*common, "--field", first, "--date", "2026-05-05").code == 0
    assert len(log.read_text().splitlines()) == 1
    done = ridgeline(*common, "--field", second, "--date", "2026-05-06")
    assert "This is look 2 of the log" in " ".join(done.out.split())
    assert [line[:22] for line in log.read_text().splitlines()] == ['{"date": "2026-05-04",', '{"date": "2026-05-06",']
    third = rows(tmp_path / "third.csv", 6000, 80)
    done = ridgeline(*common, "--field", third, "--date", "2026-05-01")
    assert done.code == 2
    assert "a date not before the last look's" in done.err


def test_a_bad_day_is_refused(ridgeline: Any, tmp_path: Path, offline: Path) -> None:
    done = ridgeline("gate", "ood", "--offline", offline, "--field", offline, "--date", "May 4", "-o", tmp_path / "r")
    assert done.code == 2
    assert "Expected a day such as 2026-05-31, got 'May 4'" in done.err
