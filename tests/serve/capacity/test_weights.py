"""Weights on one chip."""

import pytest
from tests.arithmetic.models import deepseek2_16b, shaped
from tests.serve.capacity.asked import SMALL, SPECS

from ridgeline.arithmetic.named import find_model
from ridgeline.arithmetic.params import counts, params
from ridgeline.arithmetic.spec import ModelSpec, Part
from ridgeline.core.catalog import device
from ridgeline.serve.capacity.weights import chip_weights, share_of, stages
from ridgeline.serve.deployment import Deployment


def _bytes(spec: ModelSpec, stage: int = 0, **sizes: object) -> float:
    made = Deployment(spec, device("H100"), **sizes)  # type: ignore[arg-type]
    return float(chip_weights(made, share_of(made, stage), stage).value)


@pytest.mark.parametrize("name", SPECS)
def test_one_chip_holds_everything(name: str) -> None:
    spec = SPECS[name]
    assert _bytes(spec) == 2 * float(params(spec).total.value)


@pytest.mark.parametrize("pp", [1, 2, 3, 8])
def test_stages_hold_every_layer_once(pp: int) -> None:
    spec = shaped(**SMALL, tied=False)
    assert sum(sum(stage.values()) for stage in stages(spec, pp)) == spec.layers
    total = sum(_bytes(spec, stage, pp=pp) for stage in range(pp))
    assert total == 2 * float(params(spec).total.value)


def test_a_tied_table_is_on_the_first_and_the_last_stage() -> None:
    spec = shaped(**SMALL, tied=True)
    total = sum(_bytes(spec, stage, pp=2) for stage in range(2))
    assert total == 2 * (float(params(spec).total.value) + 32_000 * 512)


def test_tensor_parallelism_copies_norms_and_key_value_heads() -> None:
    spec = shaped(**SMALL)
    of = counts(spec)
    norms = of[Part.NORM][0]
    kv = 8 * 2 * 512 * 4 * 64
    rest = float(params(spec).total.value) - norms - kv
    assert _bytes(spec, tp=4) == 2 * (norms + (rest + kv) / 4)
    assert _bytes(spec, tp=8) == 2 * (norms + rest / 8 + kv / 4)


def test_latents_are_projected_whole_on_every_chip() -> None:
    spec = SPECS["latents"]
    down, norms = 8 * 512 * (128 + 16), counts(spec)[Part.NORM][0]
    rest = float(params(spec).total.value) - down - norms
    assert _bytes(spec, tp=8) == 2 * (down + norms + rest / 8)


def test_experts_are_split_over_the_stage() -> None:
    spec = deepseek2_16b()
    of = counts(spec)
    experts, everything = of[Part.EXPERTS][0], sum(stored for stored, _ in of.values())
    one = _bytes(spec, dp_attention=8, ep=8)
    assert one == 2 * (everything - experts + experts / 8)


@pytest.mark.parametrize(("dtype", "low", "high"), [("fp8", 0.5, 0.53), ("int4", 0.25, 0.3), ("fp4", 0.28, 0.32)])
def test_fewer_bits(dtype: str, low: float, high: float) -> None:
    """Tables, norms and the router stay in 16 bits, and scales are paid for."""
    spec = find_model("llama-3-70b")[0]
    share = _bytes(spec, weights=dtype) / _bytes(spec)
    assert low < share < high
