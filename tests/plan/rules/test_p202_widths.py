"""P202: widths against the tile."""

from dataclasses import replace

from tests.plan.reviews import facts, finding, findings, number, verdict


def test_aligned_widths_pass() -> None:
    assert verdict(facts(), "P202") == "pass"


def test_a_width_that_is_odd_after_tensor_parallelism_costs_points() -> None:
    found = finding(facts(model={"d_ff": 14338}, plan={"tp": 2}), "P202")
    assert str(found.verdict) == "warn"
    assert number(found.value) > 1  # rows of 7,169 elements do not start on 16 bytes
    assert "14,592" in found.fix


def test_the_price_is_that_of_the_next_multiple() -> None:
    of = facts(model={"d_ff": 14338}, plan={"tp": 2})
    better = facts(model={"d_ff": 14592}, plan={"tp": 2})
    assert abs(number(finding(of, "P202").value) - (number(better.mfu) - number(of.mfu))) < 1e-6


def test_every_width_has_its_finding() -> None:
    found = findings(facts(model={"d_ff": 14338, "d_model": 4104, "head_dim": 128}, plan={"tp": 2}), "P202")
    assert [item.sentence.split()[0] for item in found if str(item.verdict) == "warn"] == ["d_ff", "d_model"]


def test_unknown_without_a_tile() -> None:
    of = facts()
    bare = replace(of.cluster, device=replace(of.cluster.device, tile=None))
    of = replace(of, proposal=replace(of.proposal, cluster=bare))
    assert verdict(of, "P202") == "unknown"
    assert verdict(of, "P203") == "unknown"
    assert verdict(of, "P201") == "unknown"
