"""Differences of two plans add up, and are said in the field's words."""

import numpy as np
import pytest
from tests.plan.search_cases import found

from ridgeline.core.charts import ACTIVITIES
from ridgeline.plan.layouts.explain import WORDS, activity, changed, differences, exposed_communication, sentence
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.step import Steps


def steps(**terms: tuple[float, float]) -> Steps:
    arrays = {name: np.array(values) for name, values in terms.items()}
    total: np.ndarray = np.sum(list(arrays.values()), axis=0)
    return Steps(arrays, {}, total, np.ones(2))


def test_every_term_of_a_step_has_words_and_an_activity() -> None:
    assert set(found().steps.terms) == set(WORDS)
    assert {activity(name) for name in WORDS} <= set(ACTIVITIES)


@pytest.mark.parametrize("other", [1, 5])
def test_differences_add_up(other: int) -> None:
    parts = differences(found().steps, 0, other)
    gap_s = float(found().steps.step_s[other] - found().steps.step_s[0])
    assert sum(part.more_s for part in parts) == pytest.approx(gap_s, abs=1e-9)
    assert [abs(part.more_s) for part in parts] == sorted((abs(part.more_s) for part in parts), reverse=True)


def test_a_sentence_names_the_largest_terms_with_their_signs() -> None:
    pair = steps(bubble=(1.0, 1.61), tp_exposed=(0.5, 0.31), attention=(2.0, 2.0001))
    assert sentence(pair, 0, 1) == "0.420 s slower: +0.610 s pipeline bubble, -0.190 s tensor-parallel communication"
    assert sentence(pair, 1, 0).startswith("0.420 s faster: -0.610 s pipeline bubble")


def test_equal_plans() -> None:
    pair = steps(attention=(2.0, 2.0))
    assert sentence(pair, 0, 1) == "as fast, to a thousandth of the step"


def test_exposed_communication_is_a_share() -> None:
    pair = steps(forward_matmul=(3.0, 3.0), tp_exposed=(0.5, 0.0), dp_exposed=(0.5, 1.0), bubble=(1.0, 0.0))
    assert exposed_communication(pair, 0) == pytest.approx(0.2)
    assert exposed_communication(pair, 1) == pytest.approx(0.25)


def test_changed_columns() -> None:
    assert changed({"tp": 4, "pp": 2, "dp": 8}, {"tp": 4, "pp": 4, "dp": 4}) == "pp 2 to 4, dp 8 to 4"


def test_what_follows_from_other_columns_is_not_a_change() -> None:
    one, other = (Layout.of(tp=tp, dp=64 // tp).row(0) for tp in (8, 4))
    assert changed(one, other) == "tp 8 to 4, dp 8 to 16"
    spread = [Layout.of(tp=2, dp=8, ep=4, etp=etp).row(0) for etp in (1, 2)]
    assert changed(*spread) == "etp 1 to 2"
