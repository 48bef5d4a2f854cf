"""Texts kept between runs: made once, made again when damaged, done without where nothing can be written."""

from pathlib import Path

import pytest

from ridgeline.core import cache


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ridgeline"


def test_a_text_is_made_once(home: Path) -> None:
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "a\nb\n"

    assert [cache.kept("x-1.js", make) for _ in range(3)] == ["a\nb\n"] * 3
    assert len(made) == 1
    assert [path.name for path in home.iterdir()] == ["x-1.js"]


@pytest.mark.parametrize("damage", ["", "0" * 64 + "\nother", "half"])
def test_a_damaged_file_is_made_again(home: Path, damage: str) -> None:
    cache.kept("x", lambda: "good")
    (home / "x").write_text(damage)
    assert cache.kept("x", lambda: "new") == "new"
    assert cache.kept("x", lambda: "never") == "new"


def test_bytes_that_are_no_text_are_made_again(home: Path) -> None:
    home.mkdir(parents=True)
    (home / "x").write_bytes(b"\xff\xfe")
    assert cache.kept("x", lambda: "new") == "new"


def test_a_folder_that_cannot_be_made_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.kept("x", lambda: "made") == "made"


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", lambda self: (_ for _ in ()).throw(RuntimeError("no home")))
    assert cache.folder() is None
    assert cache.kept("x", lambda: "made") == "made"
