"""P102: epochs over the unique tokens."""

import pytest
from tests.plan.studies import finding, number, plan


@pytest.mark.parametrize(
    ("unique", "verdict", "said"),
    [
        ("15T", "pass", "epochs."),
        ("1.9T", "pass", "epochs."),
        ("1T", "warn", "within the"),
        ("0.4T", "fail", "beyond the"),
    ],
)
def test_verdicts(unique: str, verdict: str, said: str) -> None:
    made = plan({"unique_tokens": unique})
    found = finding(made, "P102")
    assert str(found.verdict) == verdict
    assert said in found.sentence
    assert number(found.value) == pytest.approx(number(made.choice.tokens) / number(made.unique_tokens))


def test_four_epochs_are_the_limit_of_a_warning() -> None:
    tokens = number(plan().choice.tokens)
    assert str(finding(plan({"unique_tokens": tokens / 3.99}), "P102").verdict) == "warn"
    assert str(finding(plan({"unique_tokens": tokens / 4.01}), "P102").verdict) == "fail"


def test_the_threshold_moves_the_verdict() -> None:
    made = plan({"unique_tokens": "1T"})
    assert str(finding(made, "P102", 2).verdict) == "pass"
    assert str(finding(plan(), "P102", 0.01).verdict) == "warn"


def test_a_smaller_model_needs_more_tokens() -> None:
    assert str(finding(plan({"unique_tokens": "2T"}), "P102").verdict) == "pass"
    assert str(finding(plan({"unique_tokens": "2T"}, choice="30B"), "P102").verdict) == "warn"
