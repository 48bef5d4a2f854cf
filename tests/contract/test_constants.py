"""The contract of every other data file: each figure has a unit that parses, a kind, and a source or a reason."""

import pytest

from ridgeline.core import catalog, units

FILES = sorted(path.stem for path in catalog.DATA.glob("*.toml") if path.stem not in ("datasets", "published_runs"))


@pytest.mark.parametrize("file", FILES)
def test_every_constant(file: str) -> None:
    found = catalog.constants(file)
    assert found
    for name, (item, others) in found.items():
        assert item.name == name == name.lower()
        units.parse(item.unit)
        assert catalog.constant(name) is item
        assert item.kind in ("published", "measured", "assumed")
        assert item.note if item.kind == "assumed" else item.source, name
        assert all(other.reason and other.source and other.value != other.chosen for other in others), name


def test_every_public_run_has_a_source() -> None:
    for slug in catalog.published_runs():
        run = catalog.published_run(slug)
        for item in (run.params, run.active, run.tokens, run.chip_hours):
            if item is not None:
                assert item.source is not None
                assert item.source.where
                assert item.source.read_on
        assert run.active.base <= run.params.base
        assert (run.device is None) == (run.chip_hours is None)
        assert run.device is None or catalog.device(run.device).slug == run.device
