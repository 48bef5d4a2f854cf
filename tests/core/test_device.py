"""A device file that people write: figures as bare numbers or tables, and what is refused where."""

from pathlib import Path

import pytest

from ridgeline.core.catalog import device
from ridgeline.core.device import dtype_name
from ridgeline.core.errors import InputError

OWN = """
name = "My Chip"
peak.bf16 = 1.0e15
[hbm]
bytes = 64e9
bandwidth = {bandwidth}
[power.tdp]
value = 500
kind = "measured"
source = "bench"
[sources.bench]
title = "our bench"
"""


def own_file(folder: Path, text: str) -> str:
    path = folder / "my-chip.toml"
    path.write_text(text)
    return str(path)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    mine = device(own_file(tmp_path, OWN.format(bandwidth=2e12)))
    assert (mine.name, mine.slug) == ("My Chip", "my-chip")
    peak = mine.peak("bf16")
    assert peak is not None
    assert (peak.value, peak.unit, peak.kind) == (1e15, "FLOP/s/chip", "specified")
    assert peak.source is not None
    assert peak.source.where.endswith("my-chip.toml")
    assert mine.power is not None
    assert mine.power.kind == "measured"


@pytest.mark.parametrize("bandwidth", ["0", "-1", "nan", "inf", "1e400", "9" * 400, '"fast"', "true"])
def test_a_bandwidth_that_cannot_be(tmp_path: Path, bandwidth: str) -> None:
    with pytest.raises(InputError, match=r"Expected a positive number, got .*my-chip\.toml: \$\.hbm\.bandwidth"):
        device(own_file(tmp_path, OWN.format(bandwidth=bandwidth)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("peak.bf16 = ", "Expected valid TOML"),
        ("hbm.bandwith = 1", r"Expected a known key, got 'bandwith', at .*\$\.hbm\.bandwith\nhint: did you mean bandw"),
        ("peak.bf17 = 1e15", r"\$\.peak\.bf17"),
        ("colour = 'red'", r"\$\.colour"),
        ("hbm = 3", r"Expected a table, got 3, at .*\$\.hbm"),
        ("[peak.bf16]\nvalue = 1e15\nunit = 'TFLOP/s'", r"Expected the unit FLOP/s/chip, got 'TFLOP/s'"),
        ("[peak.bf16]\nvalue = 1e15\nsource = 'x'", r"Expected a source of this file, got 'x', at .*\$\.peak\.bf16"),
        ("[peak.bf16]\nvalue = 1e15\nkind = 'guess'", r"Expected one of specified, .*got 'guess'"),
        ("[peak.bf16]\nvalue = 1e15\ndisagree = [{value = 2e15}]", r"\$\.peak\.bf16\.reason"),
        ("aliases = 'x'", r"Expected a list of texts, got 'x', at .*\$\.aliases"),
        ("link.scale_up = 0", r"\$\.link\.scale_up"),
        ("[link.scale_up]\nvalue = 1e9\nper_link = -1", r"\$\.link\.scale_up\.per_link"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        device(own_file(tmp_path, text))


@pytest.mark.parametrize(("given", "name"), [("BF16", "bf16"), ("float8", "fp8"), ("half", "fp16"), ("nvfp4", "fp4")])
def test_data_types_by_other_names(given: str, name: str) -> None:
    assert dtype_name(given) == name


def test_what_a_device_offers(tmp_path: Path) -> None:
    text = (
        OWN.format(bandwidth=2e12) + "[sparse]\nfp8 = 4e15\n[link.scale_up]\nvalue = 4e11\nlinks = 4\nper_link = 1e11\n"
    )
    mine = device(own_file(tmp_path, text))
    assert mine.dtypes == ("bf16",)
    assert mine.peak("fp8") is None
    assert mine.sparse_peak("fp8") is not None
    assert mine.ceiling("bf16") is None
    assert mine.scale_up is not None
    assert (mine.scale_up.links, mine.scale_up.per_link is not None) == (4, True)
    assert len(mine.figures()) == 7
