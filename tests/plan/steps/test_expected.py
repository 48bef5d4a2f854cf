"""The expectation: constants by class, intervals from held-out runs, MFU in a named convention."""

from dataclasses import fields

import numpy as np
import pytest
from tests.plan.specs import llama_70b, mixture

from ridgeline.core.errors import InputError
from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.expected import (
    Calibration,
    apply,
    expect,
    families,
    fitted,
    keys,
    known,
    residuals,
    sites,
)
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.machine import Software
from ridgeline.plan.steps.step import Constants

H100 = parse("512xH100")
PLAN = Layout.of(tp=[8, 4], pp=[4, 8], dp=16, zero=1, sequence_parallel=1)
BATCH = (512, 8192)


def test_every_constant_is_fitted_and_named() -> None:
    found = fitted(llama_70b(), H100, Software())
    assert all(np.isfinite(getattr(found, field.name)) for field in fields(Constants))
    assert 0 < found.hidden < 1
    assert 0 < found.beside < 1


def test_classes_of_a_job() -> None:
    assert keys(mixture(), H100, Software("fp8", framework="nemo"), "dgxc-recipes") == {
        "family": "megatron-core", "framework": "nemo", "chip": "h100/fp8", "generation": "megatron-core/h100",
        "plan": "moe/many", "site": "dgxc-recipes",
    }  # fmt: skip
    assert keys(llama_70b(), parse("8xA100"), Software(framework="fsdp"))["plan"] == "dense/one"


def test_a_factor_of_a_share_multiplies_its_odds() -> None:
    assert apply("matmul", 1.2, 1.5) == pytest.approx(1.8)
    assert apply("hidden", 0.5, 3.0) == pytest.approx(0.75)
    assert 0 < apply("beside", 0.99, 1e6) < 1


@pytest.mark.parametrize("name", sorted(families()))
def test_every_framework_predicts(name: str) -> None:
    found = expect(llama_70b(), H100, BATCH, PLAN, Software(framework=name))
    mfu = found.steps.mfu(6 * 70e9 * 512 * 8192)
    assert ((mfu > 0.1) & (mfu < 0.75)).all()


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="a known framework"):
        fitted(llama_70b(), H100, Software(framework="megatron-core-2"))
    with pytest.raises(InputError, match="a published site"):
        expect(llama_70b(), H100, BATCH, PLAN, site="vtrain")
    with pytest.raises(InputError, match="level of 0"):
        expect(llama_70b(), H100, BATCH, PLAN).interval(0.9)


def test_intervals_hold_the_prediction_and_grow_with_the_level() -> None:
    found = expect(llama_70b(), H100, BATCH, PLAN)
    (low80, high80), (low95, high95) = found.interval(0.80), found.interval(0.95)
    assert (low95 < low80).all()
    assert (low80 < found.steps.step_s).all()
    assert (found.steps.step_s < high80).all()
    assert (high80 < high95).all()


@pytest.mark.parametrize("spec", [llama_70b(), mixture()], ids=["dense", "moe"])
def test_what_was_never_seen_is_less_certain(spec: object) -> None:
    unseen, seen = residuals(spec), known(spec)  # type: ignore[arg-type]
    assert unseen.name.startswith("unseen/")
    assert seen.name.startswith("known/")
    assert unseen.spread > seen.spread > 0
    assert min(unseen.groups, seen.groups) > 50


def test_a_site_with_many_configurations_has_its_own_residuals() -> None:
    assert residuals(llama_70b(), "dgxc-recipes").name == "site/dgxc-recipes"
    assert residuals(llama_70b(), "bloom").name == "known/dense"
    assert {"bloom", "dgxc-recipes"} <= set(sites())


def test_quantities_open_to_flops_and_peak_and_convert() -> None:
    found = expect(llama_70b(), H100, BATCH, PLAN)
    half, full = (found.at(0, name) for name in ("megatron-lm", "palm"))
    assert set(half) == {
        "step", "step.low80", "step.high80", "step.low95", "step.high95",
        "mfu", "mfu.low80", "mfu.high80", "mfu.low95", "mfu.high95",
    }  # fmt: skip
    assert half["mfu"].name == "expected.mfu"
    assert half["mfu"].label == "Expected MFU as Megatron-LM counts it"
    assert half["mfu"].value < full["mfu"].value
    assert half["mfu.low80"].value < half["mfu"].value < half["mfu.high80"].value
    chips, peak = half["mfu"].inputs["chips"], half["mfu"].inputs["peak"]
    assert (chips.value, peak.name) == (512, "device.h100-sxm-80gb.peak.bf16")
    with pytest.raises(InputError, match="FLOP convention"):
        found.at(0, "my-own")


def test_a_calibration_scales_every_second_and_narrows() -> None:
    plain = expect(llama_70b(), H100, BATCH, PLAN)
    told = expect(llama_70b(), H100, BATCH, PLAN, calibration=Calibration(1.1, 0.6, 3))
    assert np.allclose(told.steps.step_s, 1.1 * plain.steps.step_s)
    assert np.allclose(sum(told.steps.terms.values()), told.steps.step_s)
    width = [np.log(high / low) for low, high in (plain.interval(), told.interval())]
    assert np.allclose(width[1], 0.6 * width[0])
