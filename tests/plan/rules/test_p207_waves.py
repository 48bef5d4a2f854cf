"""P207: the last wave."""

from tests.plan.reviews import facts, finding, findings, incident, number


def test_large_matmuls_have_many_waves() -> None:
    found = finding(facts(), "P207")
    assert str(found.verdict) == "pass"
    assert number(found.value) < 2


def test_few_tiles_leave_a_tail() -> None:
    few = facts(plan={"tp": 8, "cp": 8}, model={"d_model": 2048, "d_ff": 5632, "heads": 16})
    assert number(finding(few, "P207").value) > number(finding(facts(), "P207").value)
    assert str(finding(few, "P207", 0.1).verdict) == "warn"


def test_a_chip_that_works_on_one_tile_has_no_waves() -> None:
    assert findings(incident(), "P207") == []
