"""T0: conventions, denominators, lenses; and the published MFU tables recomputed."""

from pathlib import Path

import numpy as np
import pytest
from tests.trace.runs import context, facts, finding, number

from ridgeline.arithmetic.conventions import evaluate, find
from ridgeline.arithmetic.mfu import mfu
from ridgeline.arithmetic.napkin import Shape6ND, attention_per_token, flops_per_token
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.core.specs import build
from ridgeline.trace.audit import Audit, audit
from ridgeline.trace.context import RunContext, read_context
from ridgeline.trace.logs import DeviceSamples


def incident(repo: Path, **reported: object) -> RunContext:
    """The example, with another table ``[mfu]``."""
    found = read_context(repo / "examples" / "incident")
    file = found.file.model_copy(update={"mfu": found.file.mfu.model_copy(update=reported)})
    return RunContext(file, found.path, found.spec, found.device)


def lens(found: Audit, name: str) -> float:
    return number(next(item for item in found.lenses if item.name == name).implied)


def test_nothing_known_nothing_said() -> None:
    found = audit(RunContext())
    assert (found.readings, found.lenses, found.geometry, found.denominator) == ((), (), None, None)
    assert found.agreement(10) == "unknown"


@pytest.mark.parametrize("name", ["6n", "palm", "megatron-lm", "maxtext-full", "llm-foundry-hfu"])
def test_the_matching_convention_is_found(repo: Path, name: str) -> None:
    base = incident(repo)
    assert base.spec is not None
    assert base.batch is not None
    flops = number(evaluate(find(name), base.spec, base.batch).sequence)
    of = incident(repo, reported=flops / (256 * 918e12 * 15))
    near = audit(of).matches(within=0.01)
    assert name in [reading.convention for reading in near]
    assert {reading.hardware for reading in near} == {find(name).layer_passes > 1}


def test_readings_are_sorted_by_distance(repo: Path) -> None:
    off = [abs(number(reading.off)) for reading in audit(incident(repo)).readings]
    assert off == sorted(off)
    assert len(off) >= 15


def test_a_plain_number_of_parameters_has_two_readings() -> None:
    found = audit(context(mfu={"peak": None}))
    assert {reading.convention for reading in found.readings} == {"6n", "8n"}
    assert number(found.readings[0].mfu) == pytest.approx(number(context().mfu))


@pytest.mark.parametrize(
    ("peak", "kind"),
    [
        (989e12, "dense"),
        (989.4e12, "dense"),
        (1979e12, "sparse"),
        (67e12, "other dtype"),
        (3958e12, "sparse"),
        (500e12, "none of the device's"),
    ],
)
def test_denominators_of_an_h100(peak: float, kind: str) -> None:
    assert audit(context(machine={"chips": "256xH100"}, mfu={"peak": peak})).denominator == kind


def test_without_a_stated_peak_dense_and_sparse_are_tried() -> None:
    found = audit(context(machine={"chips": "256xH100"}, mfu={"peak": None}))
    assert found.denominator is None
    assert {reading.denominator for reading in found.readings} == {"dense", "sparse"}


def test_lenses_agree_on_the_incident() -> None:
    found = audit(context())
    assert lens(found, "step") == pytest.approx(25.0, abs=0.05)
    assert lens(found, "comparable") == pytest.approx(50 * 546.13 / 1100, rel=1e-4)
    assert found.agreement(10) == "agree"


def test_a_wrong_chip_count_moves_one_lens_only() -> None:
    halved = audit(context(batch={"sequences": 128}, comparable={"tokens_per_second_per_chip": 1100.0}))
    wrong_flops = audit(context(model={"params": "35B"}))
    assert halved.agreement(10) == "agree"  # both lenses count tokens: a wrong batch is not seen here
    assert wrong_flops.agreement(10) == "disagree"


def test_a_comparable_of_another_size_is_scaled() -> None:
    found = audit(context(comparable={"tokens_per_second_per_chip": 2200.0, "params": "35B"}))
    assert lens(found, "comparable") == pytest.approx(lens(audit(context()), "comparable"))


def test_mfu_cannot_exceed_the_activity_of_the_matrix_units() -> None:
    low = audit(context(counters={"tensor_active": 0.20}))
    assert number(low.excess) == pytest.approx(100 * (number(context().mfu) / 20 - 1))
    assert low.agreement(10) == "disagree"
    assert audit(context(counters={"tensor_active": 0.31})).agreement(10) == "agree"
    alone = context(without=("comparable",), counters={"tensor_active": 0.31})
    assert audit(alone).agreement(10) == "agree"
    assert audit(context(without=("comparable",))).agreement(10) == "unknown"


def test_perturbation() -> None:
    assert number(audit(context()).perturbation) == pytest.approx(100 * 0.2 / 15)
    assert audit(context(observed={"profiled": None})).perturbation is None


def test_recompute_is_counted_apart(repo: Path) -> None:
    share = number(audit(incident(repo)).recompute)
    assert 31 < share < 33.4  # a third, less the head


# Published tables. N, layers, width and sequence as published; MFU over 312, 989 or 275e12 as the authors did.
PALM_FORMULA = [
    ("MPT-7B", 6_658_859_008, 32, 4096, 2048, 10_643, 989e12, 46.44),
    ("MPT-70B", 64_862_437_376, 80, 8192, 2048, 1_007, 989e12, 41.25),
    ("MPT-13B 16k", 12_927_354_880, 40, 5120, 16_384, 2_985, 989e12, 35.55),
    ("MPT-7B 64k", 6_918_905_856, 32, 4096, 65_536, 1_956, 989e12, 28.59),
    ("PaLM 540B", 540.35e9, 118, 48 * 256, 2048, 238_300 / 6144, 275e12, 46.2),
]


def reached(per_token: Quantity, rate: float, peak: float) -> float:
    """MFU of one chip that does ``rate`` tokens a second."""
    one, second = given("one.chip", 1, "chip"), given("one.second", 1, "s")
    tokens = given("rate", rate, "token")
    flops = derive("flops", "per_token*tokens", "FLOP", per_token=per_token, tokens=tokens)
    return number(mfu(flops, one, given("peak", peak, "FLOP/s/chip"), second))


@pytest.mark.parametrize(
    ("n", "layers", "width", "seq", "rate", "peak", "published"), [row[1:] for row in PALM_FORMULA],
    ids=[row[0] for row in PALM_FORMULA],
)  # fmt: skip
def test_published_mfu_is_recomputed(
    n: float, layers: int, width: int, seq: int, rate: float, peak: float, published: float
) -> None:
    shape = Shape6ND(
        given("n", n, "param"), given("layers", layers, "1"), given("width", width, "1"), given("seq", seq, "token")
    )
    weights = flops_per_token(shape.n, given("recomputed", 0, "1"))
    inputs = {"weights": weights, "attention": attention_per_token(shape)}
    per_token = derive("per_token", "weights + attention", "FLOP/token", **inputs)
    assert reached(per_token, rate, peak) == pytest.approx(published, abs=0.1)


LLAMA_8B = {"layers": 32, "d_model": 4096, "d_ff": 14336, "heads": 32, "kv_heads": 8, "vocab": 128256}
LLAMA_70B = {"layers": 80, "d_model": 8192, "d_ff": 28672, "heads": 64, "kv_heads": 8, "vocab": 128256}


@pytest.mark.parametrize(
    ("shape", "rate", "published"),
    [
        (LLAMA_8B, 5762, 33.74),
        (LLAMA_8B, 6667, 39.04),
        (LLAMA_8B, 5605, 32.82),
        (LLAMA_8B, 6514, 38.14),
        (LLAMA_70B, 597.3, 29.08),
        (LLAMA_70B, 652.4, 31.76),
    ],
)
def test_torchtitan_rows(shape: dict[str, int], rate: float, published: float) -> None:
    counted = evaluate(find("torchtitan"), model(build(Shape, shape)), Batch.of(8192))
    assert reached(counted.per_token, rate, 989e12) == pytest.approx(published, abs=0.1)


@pytest.mark.parametrize(("rate", "halved"), [(5762, 29.99), (6667, 34.70)])
def test_torchtitan_rows_with_a_halved_mask(rate: float, halved: float) -> None:
    counted = evaluate(find("maxtext"), model(build(Shape, LLAMA_8B)), Batch.of(8192))
    assert reached(counted.per_token, rate, 989e12) == pytest.approx(halved, abs=0.1)


@pytest.mark.parametrize(
    ("tflops", "peak", "published"),
    [(328, 459, 71.47), (254, 459, 55.35), (430, 989, 43.5), (400, 989, 40.4), (380, 989, 38.4), (120, 197, 60.9)],
)
def test_published_rates_over_their_peaks(tflops: float, peak: float, published: float) -> None:
    per_token = given("per_token", tflops * 1e12, "FLOP/token")
    assert reached(per_token, 1, peak * 1e12) == pytest.approx(published, abs=0.1)


def dcgm(*rows: tuple[float, float, float]) -> DeviceSamples:
    """Samples of (sm, tensor, dram) activity."""
    columns = np.array(rows).T
    n = len(rows)
    values = dict(zip(("sm_active", "tensor_active", "dram_active"), columns, strict=True))
    return DeviceSamples("dcgm", "dcgm.txt", np.zeros(n, np.int64), np.arange(n), values)


def test_counters_come_from_samples_under_load() -> None:
    samples = (dcgm((0.9, 0.30, 0.5), (0.9, 0.20, 0.3), (0.01, 0.0, 0.0)), dcgm((0.9, 0.4, 0.4)))
    found = audit(context(), samples)
    assert lens(found, "counters") == pytest.approx(30)
    assert number(found.hbm_active) == pytest.approx(40)
    stated = audit(context(counters={"tensor_active": 0.27}), samples)
    assert lens(stated, "counters") == pytest.approx(27)


def test_samples_without_the_column_say_nothing() -> None:
    plain = DeviceSamples("dmon", "dmon.log", np.zeros(1, np.int64), np.zeros(1, np.int64), {"sm_pct": np.ones(1)})
    assert audit(context(), (plain,)).hbm_active is None


def test_braces_in_a_name_do_not_reach_a_sentence() -> None:
    found = finding(facts(context(comparable={"name": "{evil.name}"})), "T004")
    assert "(evil.name)" in found.sentence
