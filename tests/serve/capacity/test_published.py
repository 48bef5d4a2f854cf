"""The cache of published models against an independent count, and against what engines and users reported."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.serve.capacity.recount import recount

from ridgeline.arithmetic.kv import Caching, kept, kv_cache
from ridgeline.arithmetic.named import find_model
from ridgeline.arithmetic.params import Leaves
from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.shape import Shape
from ridgeline.arithmetic.shape import model as shaped
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.catalog import Device, device
from ridgeline.core.quantity import given
from ridgeline.serve.capacity.capacity import Capacity, capacity
from ridgeline.serve.capacity.settings import Settings
from ridgeline.serve.deployment import Deployment

pytestmark = pytest.mark.data

GIB = 2**30
# The naive product of the table against the truth, bytes per token in bf16 before any window is full.
TRUTH = {
    "Qwen/Qwen3.5-397B-A17B": 30_720,
    "deepseek-ai/DeepSeek-V3": 70_272,
    "meta-llama/Meta-Llama-3.1-8B": 131_072,
    "Qwen/Qwen3-235B-A22B-FP8": 192_512,
    "meta-llama/Meta-Llama-3.1-70B": 327_680,
    "meta-llama/Meta-Llama-3.1-405B": 516_096,
    "mistralai/Mixtral-8x22B-v0.1": 229_376,
    "nvidia/Qwen3.6-27B-NVFP4": 65_536,
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": 6_144,
}


def _file(data_dir: Path, model: str) -> Path | None:
    name = model.replace("/", "--") + "_config.json"
    return next(iter((data_dir / "plan" / "hf_configs").glob(f"*/{name}")), None)


def _spec(data_dir: Path, model: str) -> ModelSpec:
    found = _file(data_dir, model)
    assert found is not None, model
    return read_model(found)[0]


def _tokens(count: int) -> Any:
    return given("context", count, "token", "the test")


def test_every_configuration_is_counted_exactly(data_dir: Path) -> None:
    rows = json.loads((data_dir / "serve" / "kv_configs.json").read_text(encoding="utf-8"))
    whole = {row["model"]: file for row in rows if (file := _file(data_dir, row["model"]))}
    assert len(rows) == 89
    assert len(whole) >= 68
    for model, file in whole.items():
        spec = read_model(file)[0]
        for tokens in (1, 4096, 131_072):
            found = kv_cache(spec, _tokens(tokens))
            raw = recount(json.loads(file.read_text(encoding="utf-8")), tokens)
            assert found.per_token.value == 2 * raw.per_token, model
            growing = float(found.per_sequence.value) - float(found.state.value)
            assert growing == pytest.approx(2 * raw.per_request, rel=1e-12), (model, tokens)


def test_the_naive_product_agrees_where_every_layer_is_full(data_dir: Path) -> None:
    rows = json.loads((data_dir / "serve" / "kv_configs.json").read_text(encoding="utf-8"))
    wrong = set()
    for row in rows:
        file = _file(data_dir, row["model"])
        if file is None or row["naive_kB"] is None:
            continue
        found = kv_cache(read_model(file)[0], _tokens(131_072))
        if found.per_sequence.value != pytest.approx(row["naive_kB"] * 1000 * 131_072):
            wrong.add(row["arch"])
    assert wrong == {
        "DeepseekV32ForCausalLM", "DeepseekV4ForCausalLM", "Gemma4ForConditionalGeneration", "GlmMoeDsaForCausalLM",
        "GptOssForCausalLM", "KimiK3ForConditionalGeneration",
        "Llama4ForConditionalGeneration", "MiMoV2FlashForCausalLM", "MiniMaxM3ForCausalLM",
        "MiniMaxM3SparseForConditionalGeneration", "NemotronHForCausalLM", "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration", "Step3p7FlashForCausalLM",
    }  # fmt: skip


@pytest.mark.parametrize(("model", "expected"), TRUTH.items())
def test_published_bytes_per_token(data_dir: Path, model: str, expected: int) -> None:
    assert kv_cache(_spec(data_dir, model), _tokens(1)).per_token.value == expected


def _bytes(data_dir: Path, model: str, tokens: int, **caching: Any) -> float:
    return float(kept(Leaves(_spec(data_dir, model)), _tokens(tokens), Caching(**caching)).per_sequence.value)


def test_gemma_4_31b_windows(data_dir: Path) -> None:
    model = "nvidia/Gemma-4-31B-IT-NVFP4"  # vllm-metal 505: 220.0 GiB with every layer full
    assert _bytes(data_dir, model, 262_144, windows=False) / GIB == pytest.approx(220.0, abs=0.05)
    assert _bytes(data_dir, model, 262_144) / GIB == pytest.approx(20.8, abs=0.05)


def test_gemma_4_26b_windows(data_dir: Path) -> None:
    assert _bytes(data_dir, "google/gemma-4-26B-A4B", 131_072) / 1e9 == pytest.approx(2.89, abs=0.005)
    assert _bytes(data_dir, "google/gemma-4-26B-A4B", 131_072, windows=False) / 1e9 == pytest.approx(29.53, abs=0.005)


def test_qwen3_6_27b_attention_layers(data_dir: Path) -> None:
    found = kv_cache(_spec(data_dir, "nvidia/Qwen3.6-27B-NVFP4"), _tokens(262_144))
    assert float(found.per_sequence.value) - float(found.state.value) == 16_384 * 2**20


def test_deepseek_layouts(data_dir: Path) -> None:
    v3, v32 = (Leaves(_spec(data_dir, f"deepseek-ai/DeepSeek-{name}")) for name in ("V3", "V3.2"))
    one = _tokens(1)
    assert kept(v3, one, Caching(mtp=True)).per_token.value == 71_424
    assert kept(v3, one, Caching("fp8_ds_mla")).per_token.value == 61 * 656 == 40_016
    assert kept(v32, one, Caching("fp8_ds_mla")).per_token.value == 40_016 + 61 * 132
    assert kept(v32, one, Caching(index="scaled")).per_token.value == 70_272 + 8_052


def test_vllm_fit_reports(data_dir: Path) -> None:
    """vllm-fit 2 and 14: 131,072 and 524,288 bytes a token."""
    assert kv_cache(_spec(data_dir, "meta-llama/Meta-Llama-3.1-8B"), _tokens(1)).per_token.value == 131_072
    sizes = {"layers": 32, "d_model": 4096, "d_ff": 11008, "heads": 32, "kv_heads": 32, "vocab": 32_000}
    assert kv_cache(shaped(Shape.model_validate(sizes)), _tokens(1)).per_token.value == 524_288


def _with_log(data_dir: Path, model: str, chip: Device, **terms: Any) -> Capacity:
    chips = terms.pop("tp", 1)
    deployment = Deployment(_spec(data_dir, model), chip, tp=chips)
    return capacity(deployment, 8192, Settings(**terms))


@pytest.mark.parametrize(("activations", "free", "tokens"), [(1.72, 3.81, 31_232), (2.64, 2.89, 23_648)])
def test_the_log_of_an_rtx_3090(data_dir: Path, activations: float, free: float, tokens: int) -> None:
    """vllm 10517: every term of the log but the weights is stated, and the weights are worked out.

    The terms of that log add up to its cache only with the memory outside the framework taken off twice.
    """
    found = _with_log(
        data_dir, "meta-llama/Meta-Llama-3.1-8B", device("RTX 4090"), utilisation=0.9, memory=23.58 * GIB,
        activations=activations * GIB, outside=2 * 0.35 * GIB, graphs=1.0,
    )  # fmt: skip
    assert float(found.room.weights.value) / GIB == pytest.approx(14.9888, rel=0.003)
    assert found.free_bytes / GIB == pytest.approx(free, rel=0.03)
    assert found.free_bytes / 131_072 == pytest.approx(tokens, rel=0.03)


def test_activations_of_that_log(data_dir: Path) -> None:
    spec = _spec(data_dir, "meta-llama/Meta-Llama-3.1-8B")
    for chunk, peak in ((20_000, 1.72), (29_000, 2.64)):
        found = capacity(Deployment(spec, device("H100")), 8192, Settings(chunk=chunk))
        assert float(found.room.activations.value) / GIB == pytest.approx(peak, rel=0.05)


@pytest.mark.parametrize(("outside", "free"), [(2.10, 10.77), (1.82, 11.06)])
def test_the_log_of_qwen3_235b_on_eight_chips(data_dir: Path, outside: float, free: float) -> None:
    """vllm 18446: weights of one chip to a tenth of a percent, key-value heads copied twice among them."""
    found = _with_log(
        data_dir, "nvidia/Qwen3-235B-A22B-NVFP4", device("H100"), tp=8, utilisation=0.9, memory=79.15 * GIB,
        activations=3.44 * GIB, outside=outside * GIB, graphs=1.0,
    )  # fmt: skip
    assert float(found.room.weights.value) / GIB == pytest.approx(54.92, rel=0.001)
    assert found.free_bytes / GIB == pytest.approx(free, rel=0.01)


def test_the_log_of_an_rtx_4090() -> None:
    """2,588 pages of 16 tokens in 5.055 GiB."""
    each = kv_cache(find_model("llama-3-8b")[0], _tokens(1)).per_token
    assert 5.055 * GIB / float(each.value) == pytest.approx(2588 * 16, rel=0.001)


def test_the_log_of_a_7b_on_two_chips() -> None:
    """vllm 11251: 3,852 pages of 16 tokens; a 7B with 32 layers of 8 key-value heads, like the 8B used here."""
    made = Deployment(find_model("llama-3-8b")[0], device("L4"), tp=2)
    terms = {"memory": 15.77, "model": 7.51, "activations": 2.53, "outside": 0.39}
    told = {name: gib * GIB for name, gib in terms.items()}
    found = capacity(made, 8192, Settings(utilisation=0.9, graphs=1.0, **told))
    assert found.free_bytes / GIB == pytest.approx(3.76, abs=0.01)
    assert found.free_bytes / found.kinds[0].bytes_per_token == pytest.approx(3852 * 16, rel=0.003)


def test_hybrid_pages_of_qwen3_5_27b(data_dir: Path) -> None:
    """vllm 40691: 290,864 tokens in the log and 33.04 requests of 32,768, which is 3.72 times as many tokens."""
    spec = _spec(data_dir, "Qwen/Qwen3.5-27B")
    found = capacity(Deployment(spec, device("H200")), 32_768)
    page = found.page_tokens
    assert page == 784
    assert 290_864 % page == 0
    assert capacity(Deployment(spec, device("H200")), 32_768, Settings(drafts=1)).page_tokens == 800  # vllm 54076
    growing = next(float(kind.bytes_per_token) for kind in found.kinds if kind.bytes_per_token)
    fixed = sum(kind.fixed_bytes for kind in found.kinds)
    pages = -(-32_768 // page)
    # the log divides the pages by the groups of layers as if each group kept every token
    groups = spec.layers // sum(
        1 for kind in spec.pattern if spec.kinds[kind].mixers[0].__class__.__name__ == "Attention"
    )
    assert fixed == pytest.approx((groups - 1) * page * growing, rel=1e-9)
    ratio = groups * pages * page * growing / (pages * page * growing + fixed)
    assert ratio == pytest.approx(1_082_655 / 290_864, rel=0.01)


def test_latents_are_not_divided(data_dir: Path) -> None:
    """tt-xla 5861, vllm 51454: eight groups hold 7.7 times the tokens of one group of eight chips."""
    spec = _spec(data_dir, "deepseek-ai/DeepSeek-V4-Flash")
    tokens = {}
    for tp, groups in ((8, 1), (1, 8)):
        made = Deployment(spec, device("B200"), tp=tp, dp_attention=groups, ep=8, weights="fp4", kv="fp8")
        found = capacity(made, 65_536)
        tokens[groups] = float(found.sequences.value) * 65_536
    assert tokens[8] / tokens[1] == pytest.approx(164.6 / 21.4, rel=0.03)
