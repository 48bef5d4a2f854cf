"""Training state: ZeRO, parallel groups, optimizers and precisions."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as forall
from hypothesis import strategies as st
from tests.arithmetic.models import PUBLISHED, gpt, shaped, with_mtp
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.memory import state_of_count, training_state
from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.sharding import (
    FP8_STATES,
    FP32,
    MIXED,
    MIXED_FP32_GRADS,
    PURE_BF16,
    Precision,
    Sharding,
    dtype_bytes,
    state_elements,
)
from ridgeline.arithmetic.spec import Part
from ridgeline.core.case import Case
from ridgeline.core.errors import InputError

N = q(1e9, "param", "N")


@pytest.mark.parametrize(
    ("optimizer", "precision", "per_param"),
    [
        pytest.param("adam", MIXED, 16, id="mixed bf16 Adam"),
        pytest.param("adam", MIXED_FP32_GRADS, 18, id="Megatron-LM: gradients accumulate in fp32"),
        pytest.param("adam", FP32, 16, id="fp32 Adam, no master copy"),
        pytest.param("adam", PURE_BF16, 8, id="bf16 throughout"),
        pytest.param("adam", FP8_STATES, 10, id="fp8 states"),
        pytest.param("adam-8bit", MIXED, 10 + 2 * 4 / 2048, id="8-bit Adam and its block scales"),
        pytest.param("sgd-momentum", MIXED, 12, id="SGD with momentum"),
        pytest.param("muon", MIXED, 12, id="Muon on hidden matrices"),
    ],
)
def test_bytes_per_parameter(optimizer: str, precision: Precision, per_param: float) -> None:
    found = state_of_count(N, Sharding.of(), optimizer=optimizer, precision=precision)
    assert number(found.total) == pytest.approx(per_param * 1e9, rel=1e-12)


def test_optimizers_by_kind_of_parameter() -> None:
    spec = PUBLISHED["llama3-8b"]()
    sizes = {part: number(item) for part, item in params(spec).parts.items()}
    tables, vectors = sizes[Part.EMBEDDING] + sizes[Part.HEAD], sizes[Part.NORM]
    hidden = number(params(spec).total) - tables - vectors
    pure = Precision("bf16", "bf16", "", "fp32")
    muon = training_state(spec, Sharding.of(), optimizer="muon", precision=pure)
    assert number(muon.optimizer) == 4 * (hidden + 2 * tables + 2 * vectors)
    adafactor = training_state(spec, Sharding.of(), optimizer="adafactor", precision=pure)
    matrices = 2 * (128256 + 4096) + 32 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))
    assert number(adafactor.optimizer) == 4 * (matrices + vectors)


@pytest.mark.data
def test_korthikanti_figure_1_states(data_dir: Path) -> None:
    """12 L h^2 x 18 B / (t p), from the figure's own models: all four exact."""
    sizes = {"megatron-22B": (6144, 48, 64), "gpt3-175B": (12288, 96, 96),
             "turing-530B": (20480, 105, 128), "megatron-1T": (25600, 128, 160)}  # fmt: skip
    found = 0
    with (data_dir / "plan" / "memory_vectors.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["id"].endswith("par_opt"):
                continue
            model, tp, pp = re.match(r"(\S+) TP(\d+) PP(\d+)", row["what"]).groups()  # type: ignore[union-attr]
            parts = params(gpt(*sizes[model])).parts
            hidden = number(parts[Part.ATTENTION]) + number(parts[Part.MLP])
            sharding = Sharding.of(tp=int(tp), pp=int(pp))
            state = state_of_count(q(hidden, "param"), sharding, precision=MIXED_FP32_GRADS)
            assert number(state.total) / 2**30 == float(row["value"])
            found += 1
    assert found == 4


@forall(st.integers(0, 2), st.sampled_from([1, 2, 8, 64]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_more_sharding_never_takes_more(zero: int, dp: int, tp: int, pp: int) -> None:
    spec = PUBLISHED["qwen3-30b"]()
    base = number(training_state(spec, Sharding.of(zero=zero, dp=dp, tp=tp, pp=pp)).total)
    for more in ({"zero": zero + 1}, {"dp": 2 * dp}, {"tp": 2 * tp}, {"pp": 2 * pp}, {"ep": dp}):
        sizes = {"zero": zero, "dp": dp, "tp": tp, "pp": pp} | more
        assert number(training_state(spec, Sharding.of(**sizes)).total) <= base * (1 + 1e-12)


def test_expert_parallelism_splits_experts_only() -> None:
    spec = PUBLISHED["mixtral-8x7b"]()
    experts = number(params(spec).parts[Part.EXPERTS])
    rest = number(params(spec).total) - experts
    found = training_state(spec, Sharding.of(zero=1, dp=16, ep=8))
    assert number(found.weights) == pytest.approx(2 * (rest + experts / 8), rel=1e-12)
    assert number(found.optimizer) == pytest.approx(12 * (rest / 16 + experts / 8 / 2), rel=1e-12)


def test_a_pipeline_puts_table_and_head_on_different_stages() -> None:
    spec = shaped(layers=8, d_model=64, d_ff=128, heads=4, vocab=5000)
    sizes = {part: number(item) for part, item in params(spec).parts.items()}
    one, two = (number(training_state(spec, Sharding.of(pp=pp)).weights) / 2 for pp in (1, 2))
    assert one == number(params(spec).total)
    layers = number(params(spec).total) - sizes[Part.EMBEDDING] - sizes[Part.HEAD] - 64
    assert two == layers / 2 + 64 + sizes[Part.HEAD]


def test_multi_token_prediction_is_trained() -> None:
    spec = with_mtp(PUBLISHED["llama3-8b"]())
    found = number(training_state(spec, Sharding.of()).weights)
    assert found == 2 * (number(params(spec).total) + number(params(spec).mtp))


def test_a_search_over_plans_is_one_array() -> None:
    zero, dp = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 64.0, 64.0, 64.0])
    one = Sharding.of()
    plans = Sharding(q(zero, "1"), q(dp, "1"), one.tp, one.pp, one.ep, one.cp, one.sequence_parallel, one.chunks,
                     one.micro_batches)  # fmt: skip
    found = number(state_of_count(q(70e9, "param"), plans).total)
    expected = [number(state_of_count(q(70e9, "param"), Sharding.of(zero=int(z), dp=int(d))).total)
                for z, d in zip(zero, dp, strict=True)]  # fmt: skip
    assert found.tolist() == expected


@pytest.mark.parametrize("sizes", [{"zero": 4}, {"dp": 0}, {"tp": -1}, {"dp": 8, "ep": 3}, {"ddp": 8}])
def test_refused_plans(sizes: dict[str, int]) -> None:
    with pytest.raises(InputError, match="plan"):
        Sharding.of(**sizes)


def test_refused_names() -> None:
    with pytest.raises(InputError, match="did you mean adam"):
        state_elements("adma")
    with pytest.raises(InputError, match="known element type"):
        dtype_bytes("bf61")
    with pytest.raises(InputError, match="model spec"):
        state_of_count(N, Sharding.of(), optimizer="adafactor")


def test_everything_goes_into_one_case() -> None:
    case = Case("test", "memory")
    found = training_state(with_mtp(PUBLISHED["deepseek2-16b"]()), Sharding.of(zero=3, dp=8, ep=8, pp=2))
    case.add(*found.all)
    assert {"memory.state", "memory.weights", "memory.gradients", "memory.optimizer"} <= set(case.quantities)
    assert case.dumps()
