"""``ridgeline devices``: the catalog, one device, unknown names."""

from typing import Any

from ridgeline.core import catalog


def test_catalog_lists_every_device(ridgeline: Any) -> None:
    done = ridgeline("devices")
    assert done.code == 0
    assert [name for name in catalog.devices() if name not in done.out] == []


def test_one_device_shows_the_source_of_each_figure(ridgeline: Any) -> None:
    device = catalog.device("H100-SXM")
    document = ridgeline("devices", "H100-SXM", "--json").json
    peak = document["quantities"][f"device.{device.slug}.peak.bf16"]
    assert peak["value"] == device.peaks["bf16"].value
    assert peak["source"]["title"]
    assert len(document["tables"]["devices.figures"]["rows"]) == len(device.figures())


def test_an_unknown_device_shows_close_ones(ridgeline: Any) -> None:
    done = ridgeline("devices", "H10")
    assert (done.code, done.out) == (2, "")
    assert "H100" in done.err.splitlines()[1]


def test_an_unknown_figure_is_said_in_words(ridgeline: Any) -> None:
    assert "unknown" in ridgeline("devices").out
