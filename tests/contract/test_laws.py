"""The contract of a scaling-law file: it runs over whatever the catalog finds."""

import math
from collections import Counter

import pytest

from ridgeline.core import catalog
from ridgeline.core.catalog import Law
from ridgeline.core.law import CONSTANTS

LAWS = catalog.laws()


@pytest.fixture(params=LAWS)
def law(request: pytest.FixtureRequest) -> Law:
    return catalog.law(request.param)


def numbers(law: Law) -> dict[str, float]:
    found = {}
    for symbol, item in law.constants.items():
        assert isinstance(item.value, int | float)
        found[symbol] = item.value
    return found


def test_sources_names_and_convention(law: Law) -> None:
    assert law.source.title
    assert law.source.where
    assert law.source.read_on
    assert law.params  # what N counts
    assert law.note
    for symbol, item in law.constants.items():
        assert item.name == f"law.{law.slug}.{symbol.lower()}"
        assert item.source == law.source
        assert item.kind == "published"
    assert set(law.constants) >= CONSTANTS[law.kind]
    assert (law.kind in ("power", "hyperparameter")) == bool(law.predicts)


def test_a_missing_range_is_said(law: Law) -> None:
    assert law.fitted or law.kind == "ratio" or "not read" in law.note
    for key, (low, high) in law.fitted.items():
        assert low.unit == high.unit == {"params": "param", "tokens": "token", "compute": "FLOP"}[key]


def test_what_disagrees_has_a_reason(law: Law) -> None:
    for other in law.disagreements:
        assert other.reason
        assert other.value != other.chosen


@pytest.mark.parametrize("slug", [slug for slug in LAWS if {"E", "A", "B"} <= set(catalog.law(slug).constants)])
def test_loss_falls_with_size_and_data(slug: str) -> None:
    c = numbers(catalog.law(slug))
    assert 0 < c["alpha"] < 1
    assert 0 < c["beta"] < 1
    outer = c.get("gamma", 1.0)
    loss = [c["E"] + (c["A"] / n ** c["alpha"] + c["B"] / d ** c["beta"]) ** outer
            for n, d in ((1e9, 2e10), (1e10, 2e10), (1e10, 2e11))]  # fmt: skip
    assert loss == sorted(loss, reverse=True)
    assert loss[-1] > c["E"] > 0


def test_names_are_unique() -> None:
    names = [name.lower() for slug in LAWS for name in {slug, *catalog.law(slug).aliases}]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_law_h_at_the_worked_point() -> None:
    c = numbers(catalog.law("law-h"))
    capacity, data = c["A"] / 70e9 ** c["alpha"], c["B"] / 1.4e12 ** c["beta"]
    assert (round(capacity, 4), round(data, 4), round(c["E"] + capacity + data, 4)) == (0.0835, 0.1632, 1.9366)


def test_kaplan_at_ten_times_the_compute() -> None:
    c = numbers(catalog.law("kaplan"))
    assert (round(10 ** c["params"], 2), round(10 ** c["tokens"], 2)) == (5.37, 1.86)
    assert c["params"] + c["tokens"] == pytest.approx(1)


def test_powers_of_deepseek_and_llama_3() -> None:
    deepseek = numbers(catalog.law("deepseek"))
    assert deepseek["b"] + deepseek["model_flops_b"] == pytest.approx(1)
    assert deepseek["a"] * deepseek["model_flops_a"] == pytest.approx(1, rel=2e-3)  # C = M*D
    llama = numbers(catalog.law("llama3"))
    assert llama["a"] * 3.8e25 ** llama["b"] == pytest.approx(16.55e12, rel=0.1)  # the paper's own extrapolation


def test_the_joint_moe_law_becomes_its_dense_row_at_one_expert() -> None:
    c = numbers(catalog.law("joint-moe"))
    experts = 1 / (1 / (1 / (1 / c["E_start"] - 1 / c["E_max"])) + 1 / c["E_max"])
    assert experts == pytest.approx(c["E_start"])
    size = c["a"] * experts ** c["delta"], c["alpha"] + c["gamma"] * math.log(experts)
    data = c["b"] * experts ** c["omega"], c["beta"] + c["zeta"] * math.log(experts)
    assert size == pytest.approx((30.364, -0.1817), rel=2e-3)  # the study's own table at E = 1
    assert data == pytest.approx((53.984, -0.1965), rel=5e-3)
