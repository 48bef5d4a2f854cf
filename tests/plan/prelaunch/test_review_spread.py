"""How sure each term is."""

import pytest
from tests.plan.reviews import facts, incident, number

from ridgeline.plan.prelaunch.review_spread import spread


@pytest.mark.parametrize("term", ["forward_matmul", "attention", "tp_exposed", "dp_exposed", "vector", "head"])
def test_the_interval_holds_the_prediction(term: str) -> None:
    found = spread(facts(), term)
    assert found.low <= 1 <= found.high
    assert found.low < found.high
    assert found.origin


def test_measured_kernels_are_surer_than_stand_ins() -> None:
    own, other = spread(facts(), "forward_matmul"), spread(incident(), "forward_matmul")
    assert own.origin == "measured matmuls"
    assert own.high / own.low < other.high / other.low


def test_what_no_table_holds_takes_the_interval_of_the_step() -> None:
    of = facts()
    found = spread(of, "optimizer")
    assert found.high == pytest.approx(number(of.expected.step_high) / number(of.step))


def test_full_recomputation_is_as_sure_as_its_matmuls() -> None:
    assert spread(facts({"recompute": "full"}), "recompute").origin == "measured matmuls"
    assert "attention" in spread(facts({"recompute": "selective"}), "recompute").origin
