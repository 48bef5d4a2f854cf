"""P211: groups that leave their domain."""

from tests.plan.reviews import facts, finding, number, verdict


def test_data_parallelism_may_cross() -> None:
    found = finding(facts(), "P211")
    assert str(found.verdict) == "pass"
    assert "data parallelism crosses" in found.sentence


def test_tensor_parallelism_may_not() -> None:
    of = facts({"tp": 16})
    found = finding(of, "P211")
    assert str(found.verdict) == "fail"
    assert number(found.cost.seconds) == number(of.terms["tp_exposed"])


def test_context_parallelism_warns() -> None:
    assert verdict(facts({"tp": 4, "cp": 4}), "P211") == "warn"


def test_one_domain_has_no_crossing() -> None:
    assert "no parallelism" in finding(facts(cluster={"chips": "8xH100"}), "P211").sentence
