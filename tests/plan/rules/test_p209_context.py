"""P209: the sequence over context parallelism."""

from tests.plan.reviews import facts, finding, number, verdict


def test_a_whole_sequence_passes() -> None:
    assert verdict(facts(), "P209") == "pass"


def test_a_short_sequence_over_nodes_exposes_the_ring() -> None:
    of = facts({"tp": 1, "cp": 16, "sequence_parallel": 0}, seq=4096)
    found = finding(of, "P209", 0.01)
    assert str(found.verdict) == "warn"
    assert number(found.cost.seconds) == number(of.terms["cp_exposed"])


def test_a_long_sequence_hides_it() -> None:
    of = facts({"tp": 2, "cp": 4}, seq=131072, sequences=8)
    assert verdict(of, "P209") == "pass"
