"""P210: the fullest stage."""

from tests.plan.reviews import facts, finding, number, verdict


def test_room_passes() -> None:
    of = facts()
    found = finding(of, "P210")
    assert str(found.verdict) == "pass"
    assert number(found.value) == 100 * (1 - number(of.memory) / 80e9) or number(found.value) > 8


def test_a_plan_above_the_memory_fails_and_names_the_stage() -> None:
    of = facts({"tp": 1, "sequence_parallel": 0, "zero": 0}, model={"layers": 64, "d_model": 8192, "d_ff": 28672,
               "heads": 64})  # fmt: skip
    found = finding(of, "P210")
    assert str(found.verdict) == "fail"
    assert number(found.value) < 0
    assert "the only pipeline stage" in found.sentence


def test_little_room_warns() -> None:
    of = facts()
    free = number(finding(of, "P210").value)
    assert verdict(of, "P210", free + 1) == "warn"
