"""Models by name: the published counts, and names that are not there."""

from pathlib import Path

import pytest

from ridgeline.arithmetic.named import find_model, named, names
from ridgeline.arithmetic.params import params
from ridgeline.core.errors import InputError

TOTALS = {  # of the released checkpoints; GPT-3's biases and positions are those of GPT-2
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
    "gpt-3-175b": 174_604_259_328,
}


@pytest.mark.parametrize("name", names())
def test_parameters_of_every_name(name: str) -> None:
    spec, file = named(name)
    assert params(spec).total.value == TOTALS[name]
    assert file.path == f"models/{name}.toml"
    assert spec.name == name


def test_a_name_in_any_case_is_found() -> None:
    assert find_model(" Llama-3-70B ")[0] == named("llama-3-70b")[0]


def test_a_path_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text("layers = 2\nd_model = 64\nd_ff = 128\nheads = 4\nvocab = 100\n")
    assert find_model(str(file))[0].layers == 2


def test_an_unknown_name_lists_the_close_ones() -> None:
    with pytest.raises(InputError, match="did you mean llama-3-70b"):
        find_model("llama-3-70")
