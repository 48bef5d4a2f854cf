"""P204: key-value heads over tensor parallelism."""

from tests.plan.reviews import facts, finding, number, verdict


def test_a_divisor_passes() -> None:
    assert verdict(facts(plan={"tp": 8}), "P204") == "pass"


def test_copies_cost_their_projections() -> None:
    of = facts(model={"kv_heads": 2}, plan={"tp": 8})
    found = finding(of, "P204")
    assert str(found.verdict) == "warn"
    assert "4 times" in found.sentence
    assert 0 < number(found.cost.seconds) < 0.05 * number(of.step)


def test_more_copies_cost_more() -> None:
    costs = [number(finding(facts(model={"kv_heads": kv}, plan={"tp": 8}), "P204").cost.seconds) for kv in (4, 2, 1)]
    # (tp/kv - 1) copies of kv heads: 4, 6 and 7 heads' worth
    assert costs == sorted(costs)


def test_neither_divisor_nor_multiple_fails() -> None:
    found = finding(facts(model={"heads": 24, "kv_heads": 6, "head_dim": 128}, plan={"tp": 4}), "P204")
    assert str(found.verdict) == "fail"
