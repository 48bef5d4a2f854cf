"""P214: tokens against the supply."""

import pytest
from tests.plan.reviews import facts, finding, number


@pytest.mark.parametrize(("unique", "expected"), [("2T", "pass"), ("0.5T", "warn"), ("0.1T", "fail")])
def test_epochs(unique: str, expected: str) -> None:
    found = finding(facts(data={"unique_tokens": unique}), "P214")
    assert str(found.verdict) == expected
    assert number(found.value) == pytest.approx(1 / float(unique[:-1]))


def test_unknown_without_either() -> None:
    assert str(finding(facts(), "P214").verdict) == "unknown"
    of = facts(base={"sequences": 256, "seq": 4096, "cluster": {"chips": "64xH100"}}, data={"unique_tokens": "1T"})
    assert "run's tokens" in finding(of, "P214").sentence
