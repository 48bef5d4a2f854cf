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
    "bloom-176b": 176_247_271_424,
    "gpt-j-6b": 6_050_882_784,
    "llama-2-70b": 68_976_648_192,
    "llama-4-maverick": 400_711_848_960,
    "llama-4-scout": 107_769_861_120,
    "qwen3-235b-a22b": 235_093_634_560,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
}
ROUNDED = {  # as their authors print them: text part, without prediction modules
    "deepseek-v3": 671e9, "glm-5": 744e9, "gpt-oss-120b": 116.8e9, "kimi-k2.5": 1.03e12, "minimax-m2.5": 229e9,
    "qwen3.5-397b-a17b": 397e9,
}  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_parameters_of_every_name(name: str) -> None:
    spec, file = named(name)
    total = params(spec).total.value
    assert total == (TOTALS[name] if name in TOTALS else pytest.approx(ROUNDED[name], rel=0.005))
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
