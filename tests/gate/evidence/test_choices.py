"""Probabilities of multiple choices."""

import math

import numpy as np
import pytest
from tests.gate.evidence.logs import choice_row, lm_eval_row

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.choices import Choices, choices


def test_the_softmax_over_choices_and_the_log_loss_of_the_target() -> None:
    found = choices(choice_row(0, [-1.0, -2.0, -3.0], target="1"), "x")
    shares = np.exp([-1.0, -2.0, -3.0]) / np.exp([-1.0, -2.0, -3.0]).sum()
    assert isinstance(found, Choices)
    assert found.scores["confidence"] == pytest.approx(shares[0])
    assert found.scores["log_loss"] == pytest.approx(-math.log(shares[1]))


def test_the_normalised_variant_divides_by_characters() -> None:
    found = choices(choice_row(0, [-1.0, -2.0, -3.0]), "x")  # lengths 1, 2 and 3
    assert isinstance(found, Choices)
    assert found.scores["confidence_norm"] == pytest.approx(1 / 3)
    assert found.scores["log_loss_norm"] == pytest.approx(math.log(3))


def test_log_probabilities_as_text_are_the_same() -> None:
    text = choices(choice_row(0, ["-1.0", "-2.0"]), "x")
    assert text == choices(choice_row(0, [-1.0, -2.0]), "x")


def test_a_target_that_is_a_choice_s_text() -> None:
    found = choices(choice_row(0, [-1.0, -2.0], target="bb"), "x")
    assert isinstance(found, Choices)
    assert found.scores["log_loss"] == pytest.approx(math.log(1 + math.e))


def test_a_target_that_is_index_and_text_is_told_by_the_accuracy() -> None:
    row = choice_row(0, [-1.0, -2.0], target="1")
    row["arguments"] = {"gen_args_0": {"arg_1": " 1"}, "gen_args_1": {"arg_1": " 2"}}
    for acc, loss in ((1.0, math.log(1 + math.exp(-1))), (0.0, math.log(1 + math.e))):
        found = choices(row | {"acc": acc}, "x")
        assert isinstance(found, Choices)
        assert found.scores["log_loss"] == pytest.approx(loss)
    assert choices(row | {"acc": None}, "x") is None


def test_the_unconditional_half_of_mutual_information_is_no_choice() -> None:
    row = choice_row(0, [-1.0, -2.0, -0.1, -0.2], metrics=["acc", "acc_mutual_info"])
    found, plain = choices(row, "x"), choices(choice_row(0, [-1.0, -2.0]), "x")
    assert isinstance(found, Choices)
    assert isinstance(plain, Choices)
    assert found.scores["log_loss"] == plain.scores["log_loss"]


@pytest.mark.parametrize("odds", [[math.nan, -1.0], ["nan", -1.0], [0.5, -1.0], [-math.inf, -1.0]])
def test_nan_logits_are_refused(odds: list[object]) -> None:
    with pytest.raises(InputError):
        choices(choice_row(0, odds), "x")


def test_a_wrong_choice_may_be_impossible() -> None:
    found = choices(choice_row(0, [-1.0, -math.inf]), "x")
    assert isinstance(found, Choices)
    assert found.scores["log_loss"] == pytest.approx(0.0)


def test_generated_answers_are_no_choices() -> None:
    assert choices(lm_eval_row(0, 1.0), "x") is False
