"""P206: the rate of the matmuls."""

from tests.plan.reviews import facts, finding, number, verdict


def test_wide_matmuls_pass() -> None:
    found = finding(facts(), "P206")
    assert str(found.verdict) == "pass"
    assert number(found.value) > 85


def test_few_rows_and_narrow_shards_do_not() -> None:
    of = facts(plan={"tp": 8, "cp": 8}, model={"d_model": 2048, "d_ff": 5632, "heads": 16}, seq=4096)
    found = finding(of, "P206")
    assert str(found.verdict) == "warn"
    assert "512 x" in found.sentence
    assert number(found.cost.seconds) > 0


def test_the_threshold_moves_the_verdict() -> None:
    value = number(finding(facts(), "P206").value)
    assert verdict(facts(), "P206", value * 1.01) == "warn"
