"""P216: the claim against the matmul ceiling."""

from tests.plan.reviews import facts, finding, findings, number


def test_above_the_ceiling_fails_with_the_number() -> None:
    found = finding(facts(claim={"mfu": "90%"}), "P216")
    assert str(found.verdict) == "fail"
    assert "above what large matmuls" in found.sentence
    assert number(found.value) > 100


def test_just_below_warns_and_half_passes() -> None:
    ceiling = number(facts().ceiling) / 100
    assert str(finding(facts(claim={"mfu": 0.95 * ceiling}), "P216").verdict) == "warn"
    assert str(finding(facts(claim={"mfu": 0.5 * ceiling}), "P216").verdict) == "pass"


def test_nothing_without_a_claim() -> None:
    assert findings(facts(), "P216") == []
