"""The catalog as a case: unknown stays unknown, every figure with its source."""

import pytest

from ridgeline.core import catalog
from ridgeline.core.device_case import CATALOG, DISAGREEMENTS, FIGURES, catalog_case, device_case
from ridgeline.core.errors import UnknownDeviceError


def test_one_row_per_device() -> None:
    rows = catalog_case().tables[CATALOG].rows
    assert [row[0] for row in rows] == catalog.devices()


def test_an_unknown_figure_is_none() -> None:
    rows = {row[0]: row for row in catalog_case().tables[CATALOG].rows}
    for name, row in rows.items():
        assert (row[1] is None) == (catalog.device(name).peak("bf16") is None)


@pytest.mark.parametrize("name", catalog.devices())
def test_every_device_makes_a_document(name: str) -> None:
    document = device_case(name).to_json()
    rows = document["tables"][FIGURES]["rows"]
    assert rows
    assert [row[0] for row in rows if not row[3]] == []
    assert (DISAGREEMENTS in document["tables"]) == bool(catalog.device(name).disagreements)


def test_unknown_device() -> None:
    with pytest.raises(UnknownDeviceError, match="nope"):
        device_case("nope")
