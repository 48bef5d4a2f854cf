"""The contract of an accelerator file: it runs over whatever the catalog finds."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from ridgeline.core import catalog
from ridgeline.core.catalog import Device
from ridgeline.core.quantity import Quantity

DEVICES = catalog.devices()
UNITS = {"hbm_bytes": "B/chip", "hbm_bandwidth": "B/s/chip", "power": "W/chip", "devices_per_node": "chip"}
COLUMNS = {
    "tf_fp32": ("peak", "fp32"), "tf_tf32": ("peak", "tf32"), "tf_bf16": ("peak", "bf16"), "tf_fp16": ("peak", "fp16"),
    "tf_fp8": ("peak", "fp8"), "top_int8": ("peak", "int8"), "tf_fp4": ("peak", "fp4"),
    "mamf_bf16_tflops": ("ceiling", "bf16"), "mamf_fp8_tflops": ("ceiling", "fp8"),
}  # fmt: skip


def number(quantity: Quantity) -> float:
    assert isinstance(quantity.value, int | float)
    return quantity.value


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Device:
    return catalog.device(request.param)


def test_every_figure_is_positive_named_and_has_a_dated_source(device: Device) -> None:
    known = device.figures()
    assert known
    for item in known:
        assert number(item) > 0, item.name
        assert item.name.startswith(f"device.{device.slug}.")
        assert item.name == item.name.lower()
        assert item.kind in ("published", "measured", "assumed"), item.name
        assert item.source is not None, item.name
        assert item.source.title
        assert item.source.where, item.name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", item.source.read_on), item.name
        assert item.kind != "assumed" or item.note, f"{item.name} is assumed: say why"


def test_units(device: Device) -> None:
    for item in device.figures():
        field = item.name.removeprefix(f"device.{device.slug}.").split(".")[0]
        rate = {"peak": "FLOP/s/chip", "sparse_peak": "FLOP/s/chip", "ceiling": "FLOP/s/chip", "link": "B/s/chip"}
        assert item.unit == (rate | UNITS).get(field, "1"), item.name


def test_dense_is_below_sparse_and_above_what_was_measured(device: Device) -> None:
    for dtype, dense in device.peaks.items():
        if dtype in device.sparse:
            assert number(dense) < number(device.sparse[dtype])
        if dtype in device.ceilings:
            assert number(device.ceilings[dtype]) < number(dense)


def test_a_narrower_float_is_not_slower(device: Device) -> None:
    for order in (("fp64", "fp32", "tf32", "bf16", "fp8", "fp4"), ("bf16", "fp8"), ("fp16", "fp4")):
        rates = [number(device.peaks[dtype]) for dtype in order if dtype in device.peaks]
        assert rates == sorted(rates), order


def test_sizes_are_sane(device: Device) -> None:
    if device.hbm_bytes and device.hbm_bandwidth:  # a full sweep of memory takes 1 ms to 1 s on every part known
        assert 1e-3 < number(device.hbm_bytes) / number(device.hbm_bandwidth) < 1
    for link in device.links.values():
        assert link.technology
        if device.hbm_bandwidth:
            assert number(link.bandwidth) < number(device.hbm_bandwidth)
        if link.per_link and link.links:
            assert link.links * number(link.per_link) == pytest.approx(number(link.bandwidth))


def test_what_disagrees_has_a_source_a_reason_and_another_value(device: Device) -> None:
    for other in device.disagreements:
        assert other.source is not None, other.name
        assert other.reason
        assert other.value > 0
        assert other.value != other.chosen


def test_names_are_unique_whatever_the_case() -> None:
    found = [catalog.device(name) for name in DEVICES]
    names = [
        name
        for item in found
        for name in {key.lower().replace(" ", "-") for key in (item.name, item.slug, *item.aliases)}
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    for item in found:
        for name in (item.name, item.slug, *item.aliases):
            assert catalog.device(name) is item


@pytest.mark.data
def test_the_catalog_against_the_collected_table(data_dir: Path) -> None:
    """Every figure of the table is the chosen one or one of those that disagree; every row is here."""
    with (data_dir / "plan" / "accelerators.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    compared = 0
    for row in rows:
        item = catalog.device(re.sub(r"\s*\(.*\)", "", row["name"]))
        assert item.vendor == row["vendor"]
        for column, (group, dtype) in COLUMNS.items():
            if row[column]:
                chosen = item.peak(dtype) if group == "peak" else item.ceiling(dtype)
                compared += agrees(item, chosen, float(row[column]) * 1e12)
        for column, chosen, scale in (
            ("hbm_gb", item.hbm_bytes, 1e9), ("hbm_tbps", item.hbm_bandwidth, 1e12), ("tdp_w", item.power, 1.0),
        ):  # fmt: skip
            if row[column]:
                compared += agrees(item, chosen, float(row[column]) * scale)
        if row["scaleup_gbps_per_direction"]:
            assert item.scale_up is not None
            one = row["scaleup_scope"] == "per_link"
            link = item.scale_up.per_link if one else item.scale_up.bandwidth
            compared += agrees(item, link, float(row["scaleup_gbps_per_direction"]) * 1e9)
    assert len(rows) == 41
    assert compared > 300


def agrees(item: Device, chosen: Quantity | None, value: float) -> int:
    assert chosen is not None, (item.name, value)
    others = [other.value for other in item.disagreements if other.name == chosen.name]
    # the table prints three digits of some figures
    assert any(value == pytest.approx(kept, rel=6e-4) for kept in (number(chosen), *others)), (chosen.name, value)
    return 1
