"""Memory of plans: the closed forms to the digit, every stage, and measured peaks."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scripts.published_rows import layout_of, row_of
from tests.plan.specs import GPT_1T, GPT_22B, GPT_175B, GPT_530B, gpt, llama_70b

from ridgeline.core.errors import InfeasibleError
from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.fits import capacity_bytes, held, require, which_fit
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.machine import Software

GIB = 2**30
OLD = Software(attention="unfused", dropout=True, gradients="fp32")


@pytest.mark.parametrize(
    ("shape", "plan", "none", "selective"),
    [
        (GPT_22B, {"tp": 8, "micro_batch": 4}, 59.25, 9.5625),
        (GPT_175B, {"tp": 8, "pp": 8, "chunks": 3}, 66.84375, 12.3515625),
        (GPT_530B, {"tp": 8, "pp": 35, "chunks": 3}, 114.0234375, 23.076171875),
        (GPT_1T, {"tp": 8, "pp": 64}, 131.25, 26.5625),
    ],
)
def test_activations_of_korthikanti_to_the_digit(
    shape: dict[str, int], plan: dict[str, int], none: float, selective: float
) -> None:
    """Figure 1 of arXiv:2205.05198, in GiB."""
    spec, sequences = gpt(**shape), 2 * plan.get("pp", 1) * plan.get("micro_batch", 1)
    plans = Layout.of(**plan, recompute=["none", "selective"], sequence_parallel=[0, 1])
    found = held(spec, (sequences, 2048), plans, OLD).parts["activations"] / GIB
    assert found.tolist() == pytest.approx([none, selective], rel=1e-14)


@pytest.mark.parametrize(
    ("shape", "plan", "state"),
    [
        (GPT_22B, {"tp": 8}, 45.5625), (GPT_175B, {"tp": 8, "pp": 8}, 45.5625),
        (GPT_530B, {"tp": 8, "pp": 35}, 31.640625), (GPT_1T, {"tp": 8, "pp": 64}, 32.958984375),
    ],
)  # fmt: skip
def test_state_of_korthikanti_beside_the_tables(shape: dict[str, int], plan: dict[str, int], state: float) -> None:
    """12 L h^2 at 18 B is the paper's; biases, norms and the token table, which it leaves out, come on top."""
    spec = gpt(**shape)
    found = held(spec, (128, 2048), Layout.of(**plan), OLD).parts
    total = (found["weights"] + found["gradients"] + found["optimizer"])[0]
    table = spec.vocab * spec.d_model * 18 / plan["tp"]
    norms = (2 * spec.layers / plan.get("pp", 1)) * spec.d_model * 18 / plan["tp"]
    assert (total - table - norms) / GIB == pytest.approx(state, rel=1e-4)


def test_in_flight_by_schedule() -> None:
    plans = Layout.of(pp=8, schedule=["1f1b", "gpipe", "zb-h1", "dualpipe"])
    acts = held(llama_70b(), (32, 8192), plans, Software()).parts["activations"]
    assert (acts / acts[0]).tolist() == pytest.approx([1.0, 4.0, 1.0, 9 / 8])


def test_selective_keeps_half_where_the_framework_goes_by_operation() -> None:
    plans = Layout.of(dp=8, zero=3, micro_batch=2, recompute=["none", "selective", "full"])
    core, half = (
        held(llama_70b(), (16, 8192), plans, Software(framework=name)).parts["activations"]
        for name in ("megatron-core", "torchtitan")
    )
    assert half[1] == pytest.approx((half[0] + half[2]) / 2)
    assert core[1] > 0.9 * core[0]


def test_parts_add_up_and_the_last_stage_can_bind() -> None:
    found = held(llama_70b(vocab=1_024_000), (64, 8192), Layout.of(pp=[1, 8], recompute="full"), Software())
    assert np.allclose(sum(found.parts.values()), found.total_bytes)
    assert (found.stage(0), found.stage(1)) == ("the only pipeline stage", "pipeline stage 8 of 8")


def test_sharding_keeps_a_layer_whole_and_a_pipeline_its_stage() -> None:
    plans = Layout.of(dp=64, pp=[1, 4], zero=[3, 3])
    gathered = held(llama_70b(), (64, 8192), plans, Software()).parts["gathered"]
    layer = 8192 * (2 * 8192 + 2 * 1024 + 3 * 28672)
    assert gathered[0] == pytest.approx(8 * max(layer, 8192 * 128256), rel=0.01)
    assert gathered[1] == pytest.approx(6 * (20 * layer + 8192 * 128256), rel=0.01)


@pytest.mark.parametrize(("name", "smaller"), [("zero", [0, 1, 2, 3]), ("tp", [1, 2, 4, 8]), ("ep", [1, 2, 4])])
def test_more_splitting_never_holds_more_state(name: str, smaller: list[int]) -> None:
    from tests.plan.specs import mixture

    found = held(mixture(), (64, 4096), Layout.of(**{"dp": 8, name: smaller}), Software()).parts
    state = found["weights"] + found["gradients"] + found["optimizer"]
    assert (np.diff(state) < 0).all()


def test_a_plan_above_the_chip_names_its_stage_and_largest_part() -> None:
    found, cluster = held(llama_70b(), (64, 8192), Layout.of(dp=64), Software()), parse("64xH100")
    assert not which_fit(found, cluster).any()
    assert capacity_bytes(cluster) == 80e9
    with pytest.raises(InfeasibleError) as caught:
        require(found, cluster)
    assert caught.value.limit == "device memory, optimizer first"
    assert "at the only pipeline stage" in str(caught.value)
    require(held(llama_70b(), (64, 8192), Layout.of(tp=8, dp=8, zero=3, recompute="full"), Software()), cluster)


@pytest.mark.data
def test_fully_recomputed_peaks_of_torchtitan(data_dir: Path) -> None:
    """Llama 3.1 8B on 8 H100, sequences of 32k to 256k: measured 83.9 to 84.5 GiB."""
    with (data_dir / "plan" / "published_runs.csv").open(encoding="utf-8") as file:
        records = {record["row_id"]: record for record in csv.DictReader(file)}
    for row_id, peak_gib in {"R0698": 83.9, "R0699": 84.2, "R0700": 84.0, "R0701": 84.5}.items():
        row = row_of(records[row_id])
        assert row is not None
        found = held(row.spec, row.batch, layout_of(row), row.software).total_bytes[0]
        assert found / GIB == pytest.approx(peak_gib, rel=0.15)
