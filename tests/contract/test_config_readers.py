"""What every config reader has to keep, the ones of plug-ins included."""

import json
from pathlib import Path

import pytest

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.configs.registry import readers
from ridgeline.core.errors import InputError

TYPES = sorted(readers())
COUNTS = Path(__file__).parents[1] / "arithmetic" / "configs"


@pytest.mark.parametrize("model_type", TYPES)
def test_a_bare_config_is_refused_by_name(model_type: str) -> None:
    """No reader invents a whole model out of its defaults."""
    with pytest.raises(InputError) as caught:
        read_config({"model_type": model_type})
    assert caught.value.where.startswith("$")


@pytest.mark.parametrize("model_type", TYPES)
def test_nonsense_is_refused(model_type: str) -> None:
    sizes = ("hidden_size", "d_model", "n_embd", "num_hidden_layers", "n_layer", "num_layers", "vocab_size")
    with pytest.raises(InputError):
        read_config({"model_type": model_type} | dict.fromkeys(sizes, -1))


@pytest.mark.parametrize("model_type", TYPES)
def test_it_says_what_it_reads(model_type: str) -> None:
    assert readers()[model_type].__doc__


def test_nearly_every_type_has_counts_from_its_model_class() -> None:
    files = ("attention_counts.jsonl", "hybrid_counts.jsonl")
    lines = [line for file in files for line in (COUNTS / file).read_text("utf-8").splitlines()]
    counted = {json.loads(line)["config"]["model_type"] for line in lines}
    own_code = {"RefinedWeb", "RefinedWebModel", "baichuan", "chatglm", "deepseek", "internlm2", "qwen"}  # no class
    own_code |= {"Yi", "aquila", "bailing_moe", "bailing_moe_v2", "deci", "internlm", "minicpm", "orion", "phi-msft"}
    own_code |= {"kimi_k3"}  # no class and no published total: see its reader
    own_code |= {"stablelm_epoch", "xverse"}  # counted in test_public.py against published totals and shapes
    # Second names of counted readers, and wrappers counted by their ground-truth files.
    aliases = {"deepseek_ref", "kimi_k2", "mimo", "minimax_m3", "nemotron-nas"}
    aliases |= {"gpt-sw3", "lfm2-vl", "minimax_m1", "minimax_text_01", "qwen3_5", "qwen3_5_moe"}
    assert set(TYPES) - counted == own_code | aliases
