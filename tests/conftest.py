"""Fixtures for every test. See tests/README.md for where a test goes."""

import os
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]

# A shared machine is slow at times: a deadline would make honest tests flaky. The same examples each time, so that a
# change is judged by what it changes; RIDGELINE_FUZZ=1 looks for new ones.
hypothesis.settings.register_profile("house", deadline=None, derandomize=not os.environ.get("RIDGELINE_FUZZ"))
hypothesis.settings.load_profile("house")


def _data_dir() -> Path:
    return Path(os.environ.get("RIDGELINE_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets; a test that uses it is marked ``data``."""
    folder = _data_dir()
    if not folder.is_dir():
        pytest.skip(f"needs the public data sets: {folder} is not there (set RIDGELINE_DATA)")
    return folder


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: what they hold may differ between workers (gzip stores the second it ran in)."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked ``data`` where the data is absent; insist on the mark where ``data_dir`` is used."""
    absent = not _data_dir().is_dir()
    skip = pytest.mark.skip(reason=f"needs the public data sets: {_data_dir()} is not there (set RIDGELINE_DATA)")
    for item in items:
        marked = item.get_closest_marker("data") is not None
        if "data_dir" in getattr(item, "fixturenames", ()) and not marked:
            raise pytest.UsageError(f"{item.nodeid} uses data_dir and is not marked data")
        if marked and absent:
            item.add_marker(skip)
