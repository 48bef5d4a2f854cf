"""The catalog's front door: names, aliases, files of one's own, constants, public runs and data sets."""

import hashlib
import time
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ridgeline.core import catalog, units
from ridgeline.core.errors import InputError, UnknownDeviceError
from ridgeline.core.quantity import Quantity, derive, given


def value(quantity: Quantity | None) -> float:
    assert quantity is not None
    assert isinstance(quantity.value, int | float)
    return quantity.value


@pytest.mark.parametrize("name", ["H100", "h100", "H100-SXM", "h100-80gb", "h100-sxm-80gb", "H100_SXM 80GB", " H100 "])
def test_names_that_mean_the_h100_sxm(name: str) -> None:
    assert catalog.device(name).name == "H100-SXM-80GB"


@pytest.mark.parametrize(
    ("name", "slug"),
    [("A100", "a100-sxm-80gb"), ("v5e", "tpu-v5e"), ("Trillium", "tpu-v6e"), ("TPU v5p", "tpu-v5p"),
     ("ironwood", "tpu7x"), ("Trn2", "trainium2"), ("rtx 4090", "rtx-4090"), ("GB200", "gb200")],
)  # fmt: skip
def test_common_names(name: str, slug: str) -> None:
    assert catalog.device(name).slug == slug


def test_the_h100_has_the_figures_of_its_data_sheet() -> None:
    h100 = catalog.device("H100")
    assert value(h100.peak("bf16")) == 989.4e12
    assert value(h100.peak("bfloat16")) == 989.4e12
    assert (value(h100.hbm_bytes), value(h100.hbm_bandwidth), value(h100.power)) == (80e9, 3.35e12, 700)
    assert h100.scale_up is not None
    assert value(h100.scale_up.bandwidth) == 450e9
    assert h100.dtypes == ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")
    assert h100.peak("bf16").name == "device.h100-sxm-80gb.peak.bf16"  # type: ignore[union-attr]


def test_the_default_peak_is_dense_and_the_sparse_one_is_apart() -> None:
    h100 = catalog.device("H100")
    assert value(h100.sparse_peak("bf16")) == 2 * value(h100.peak("bf16")) + 0.1e12
    assert value(h100.ceiling("bf16")) == 794.5e12
    assert value(h100.ceiling("bf16")) < value(h100.peak("bf16"))


def test_the_chosen_peak_keeps_what_others_say() -> None:
    others = [item for item in catalog.device("H100").disagreements if item.name.endswith("peak.bf16")]
    assert {item.value for item in others} == {989e12, 990e12, 1000e12}
    assert all(item.reason and item.source and item.chosen == 989.4e12 for item in others)


def test_a_thousand_h100_for_thirty_days() -> None:
    peak = catalog.device("H100").peak("bf16")
    assert peak is not None
    compute = derive(
        "compute", "chips*peak*mfu*time", "FLOP",
        chips=given("chips", 1000, "chip"), peak=peak, mfu=catalog.constant("planning.mfu"), time=given("t", 30, "day"),
    )  # fmt: skip
    assert f"{value(compute):.3e}" == "1.026e+24"


def test_an_unknown_figure_is_none() -> None:
    assert catalog.device("v5e").power is None
    assert catalog.device("H800").peak("bf16") is None
    assert catalog.device("H200-NVL").scale_up is None


@pytest.mark.parametrize(
    ("name", "hint"),
    [("H10O", "H100"), ("V100", "V100-SXM2-32GB"), ("GH200", "GH200-SXM-96GB"), ("h1000", "H100"), ("", "?")],
)
def test_unknown_devices_show_the_close_matches(name: str, hint: str) -> None:
    with pytest.raises(UnknownDeviceError) as error:
        catalog.device(name)
    assert hint in error.value.hint
    assert repr(name) in str(error.value)


def test_a_data_type_that_is_none() -> None:
    with pytest.raises(InputError, match="Expected a data type, got 'bf17'"):
        catalog.device("H100").peak("bf17")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match="Expected a readable TOML file"):
        catalog.device("./nowhere.toml")


def test_an_installed_folder_of_devices_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "extra-1.toml").write_text(
        'name = "Extra One"\n[sources.s]\ntitle = "sheet"\n'
        '[peak.bf16]\nvalue = 5e14\nkind = "published"\nsource = "s"\n'
    )
    folder = EntryPoint("extra", "extra:FOLDER", "ridgeline.accelerator")
    monkeypatch.setattr(EntryPoint, "load", lambda self: str(tmp_path))
    monkeypatch.setattr(catalog, "entry_points", lambda group: [folder] if group == folder.group else [])
    catalog._index.cache_clear()
    try:
        assert value(catalog.device("extra one").peak("bf16")) == 5e14
        assert "Extra One" in catalog.devices()
    finally:
        catalog._index.cache_clear()


def test_one_device_is_fast() -> None:
    units.parse("FLOP/s/chip")  # the units registry loads once per process and is not what is timed here
    catalog._index.cache_clear()
    catalog._device.cache_clear()
    start = time.perf_counter()
    catalog.device("H100")
    assert time.perf_counter() - start < 0.1  # measured: 6 ms with the index of aliases


def test_constants() -> None:
    assert (catalog.constant("prices.electricity").value, catalog.constant("energy.pue").value) == (0.12, 1.2)
    assert catalog.constant("energy.dram_per_bit").to("J/bit") == pytest.approx(20e-12)
    assert catalog.constant("prices.chip_hour.h100-sxm-80gb").unit == "USD/(chip*h)"
    assert catalog.constant("links.infiniband_ndr").value == 50e9
    assert catalog.constant("prices.chip_hour.tpu-v3", missing_ok=True) is None
    assert catalog.constant("nothing.here", missing_ok=True) is None


@pytest.mark.parametrize("name", ["prices.elektricity", "prices", "nothing.here", "../prices.x", "laws.x", ""])
def test_unknown_constants(name: str) -> None:
    with pytest.raises(InputError, match="Expected a known constant"):
        catalog.constant(name)


def test_the_hint_of_an_unknown_constant() -> None:
    with pytest.raises(InputError, match=r"did you mean prices\.electricity"):
        catalog.constant("prices.elektricity")


def test_a_dram_read_costs_twenty_thousand_int8_adds() -> None:
    ratio = value(catalog.constant("energy.dram_32bit")) / value(catalog.constant("energy.add_int8"))
    assert ratio == pytest.approx(20_000, rel=0.1)


def test_laws_are_found_by_any_name(tmp_path: Path) -> None:
    assert catalog.law("chinchilla") is catalog.law("Hoffmann-2022")
    assert catalog.law("law_h").constants["A"].value == 406.4
    with pytest.raises(InputError, match=r"Expected a known scaling law, got 'chinchila'.*\nhint: did you mean chin"):
        catalog.law("chinchila")
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\nkind = "ratio"\nparams = "total"\n[source]\ntitle = "x"\n[constants]\nratio = 30\n')
    assert catalog.law(str(path)).constants["ratio"].unit == "token/param"


def test_public_runs_reproduce_their_compute() -> None:
    for slug, expected in (
        ("gpt-3", 3.15e23),
        ("chinchilla", 5.88e23),
        ("llama-3-70b", 6.30e24),
        ("llama-3-8b", 7.20e23),
    ):
        run = catalog.published_run(slug)
        compute = derive("c", "6*N*D", "FLOP", N=run.active, D=run.tokens)
        assert value(compute) == pytest.approx(expected, rel=5e-4)
    with pytest.raises(InputError, match="did you mean gpt-3"):
        catalog.published_run("gpt3")


def test_billed_hours_give_the_goodput_range() -> None:
    """The range in goodput.toml is what the model cards imply: 6ND over peak times billed chip-hours."""
    shares = {}
    for slug in ("llama-2-7b", "llama-31-8b", "llama-31-70b", "llama-31-405b", "llama-4-scout", "llama-4-maverick"):
        run = catalog.published_run(slug)
        assert run.device is not None
        peak = catalog.device(run.device).peak("bf16")
        assert peak is not None
        assert run.chip_hours is not None
        shares[slug] = value(
            derive("s", "6*N*D/(peak*hours)", "1", N=run.active, D=run.tokens, peak=peak, hours=run.chip_hours)
        )
    expected = {"llama-2-7b": 0.391, "llama-31-8b": 0.139, "llama-31-70b": 0.255, "llama-31-405b": 0.346,
                "llama-4-scout": 0.232, "llama-4-maverick": 0.268}  # fmt: skip
    assert shares == pytest.approx(expected, rel=0.02)
    assert value(catalog.constant("goodput.billed_mfu.low")) == pytest.approx(min(shares.values()), abs=0.005)
    assert value(catalog.constant("goodput.billed_mfu.high")) == pytest.approx(max(shares.values()), abs=0.005)


@pytest.mark.data
def test_data_sets_have_the_bytes_they_name(data_dir: Path) -> None:
    found = catalog.datasets()
    assert len(found) >= 10
    for item in found.values():
        content = (data_dir / item.path).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (item.size_bytes, item.sha256)
        assert item.url.startswith("https://")
        assert item.licence
        assert item.citation
