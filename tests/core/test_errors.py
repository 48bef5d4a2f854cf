"""The error tree: wording, places, hints and exit codes."""

import pytest

from ridgeline.core.errors import (
    InfeasibleError,
    InputError,
    MissingExtraError,
    NotEnoughDataError,
    RidgelineError,
    UnknownDeviceError,
    did_you_mean,
    located,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("bad"), 2),
        (UnknownDeviceError("H10", ["H100"]), 2),
        (MissingExtraError("ray", "cluster"), 2),
        (InfeasibleError("nothing fits", limit="memory"), 1),
        (NotEnoughDataError("three points"), 1),
    ],
)
def test_exit_codes(error: RidgelineError, code: int) -> None:
    assert error.exit_code == code
    assert isinstance(error, RidgelineError)


def test_house_sentence() -> None:
    error = InputError.expected("a count", "many", where="$.layers[3].d_ff", hint="write 4096")
    assert str(error) == "Expected a count, got 'many', at $.layers[3].d_ff\nhint: write 4096"
    assert error.where == "$.layers[3].d_ff"


def test_long_values_are_cut() -> None:
    assert len(InputError.expected("a count", "x" * 10_000, where="N").message) < 130


def test_a_long_path_keeps_its_end() -> None:
    message = InputError.expected("a log", "/somewhere" * 20 + "/run/steps.csv", where="$.log").message
    assert "/run/steps.csv'" in message


def test_unknown_device_shows_close_matches() -> None:
    assert "H100-SXM" in str(UnknownDeviceError("h100", ["H100-SXM", "A100"]))
    assert "ridgeline devices" in str(UnknownDeviceError("zzz", ["H100-SXM"]))


def test_missing_extra_prints_the_install_line() -> None:
    assert 'pip install "ridgeline[cluster]"' in str(MissingExtraError("ray", "cluster"))


def test_infeasible_names_limit_and_nearest_miss() -> None:
    text = str(InfeasibleError("no plan fits", limit="80 GB of HBM", nearest="91 GB at tp=8", hint="use tp=16"))
    assert text.splitlines() == [
        "no plan fits",
        "binding limit: 80 GB of HBM",
        "nearest miss: 91 GB at tp=8",
        "hint: use tp=16",
    ]


def test_not_enough_data_carries_the_estimate() -> None:
    assert NotEnoughDataError("three points", estimate=0.34).estimate == 0.34


def test_did_you_mean() -> None:
    assert did_you_mean("vocabb", ["vocab", "layers"]) == "did you mean vocab?"
    assert did_you_mean("q", ["vocab"], "see the list") == "see the list"


def test_located_adds_the_file_once() -> None:
    with pytest.raises(InputError) as caught, located("model.toml"), located("model.toml"):
        raise InputError.expected("a count", 0, where="$.layers", hint="above zero")
    assert caught.value.where == "model.toml: $.layers"
    assert str(caught.value).count("model.toml") == 1
    assert caught.value.hint == "above zero"
