"""A pilot keeps one chip's work and shrinks the rest."""

import pytest
from tests.plan.reviews import MOE, facts, number

from ridgeline.plan.prelaunch.pilot import Pilot, pilot
from ridgeline.plan.prelaunch.review_facts import TITLES, ReviewFacts
from ridgeline.plan.prelaunch.review_shapes import matmul_rows


def piloted(of: ReviewFacts) -> Pilot:
    found = pilot(of)
    assert found is not None
    return found


def test_the_shapes_of_one_chip_are_the_same() -> None:
    of = facts({"pp": 4, "zero": 0})
    small = piloted(of)
    assert int(small.facts.chips.value) == 16
    assert small.facts.axis("pp") == 2
    assert small.facts.axis("tp") == 2
    sides = [[(row.name, row.m, row.n, row.k) for row in matmul_rows(item)] for item in (of, small.facts)]
    assert sides[0] == sides[1]


def test_terms_of_a_micro_batch_scale_with_layers_and_micro_batches() -> None:
    of = facts()
    small = piloted(of)
    for name in ("forward_matmul", "attention"):
        each = [number(item.terms[name]) / item.spec.layers / micro_batches(item) for item in (of, small.facts)]
        assert each[0] == pytest.approx(each[1])


def micro_batches(of: ReviewFacts) -> int:
    return int(of.proposal.layouts.micro_batches(of.proposal.sequences)[0])


def test_lines_are_ordered_and_sorted_by_risk() -> None:
    small = piloted(facts())
    for line in small.lines:
        assert number(line.low) <= number(line.expected) <= number(line.passes) <= number(line.stops)
    risks = [number(line.risk) for line in small.lines]
    assert risks == sorted(risks, reverse=True)
    assert risks[0] > 0


def test_fewer_layers_where_state_is_sharded_over_fewer_chips() -> None:
    wide = {"layers": 96, "d_model": 16384, "d_ff": 53248, "heads": 128}
    big = facts(model=wide, plan={"tp": 8, "zero": 3}, cluster={"chips": "512xH100"}, sequences=64)
    small = piloted(big)
    assert small.facts.spec.layers < big.spec.layers
    assert float(small.facts.held.headroom_bytes(small.facts.cluster)[0]) >= 0


def test_experts_shrink_with_their_group() -> None:
    of = facts(
        {"tp": 1, "ep": 64, "sequence_parallel": 0},
        base={
            "sequences": 256,
            "seq": 4096,
            "cluster": {"chips": "64xH100"},
            "model": {k: v for k, v in MOE.items() if v},
        },
    )
    small = piloted(of)
    assert small.facts.axis("ep") == 16
    moe = small.facts.spec.kinds[0].ffns[0]
    assert getattr(moe, "experts", None) == 16


def test_what_it_cannot_tell_is_named() -> None:
    of = facts({"pp": 2, "cp": 2})
    small = piloted(of)
    left = [TITLES[name].lower() for name in of.terms if name not in small.facts.terms]
    assert list(small.untested) == left
    assert len(small.lines) == len(of.terms) - len(left)


def test_no_pilot_of_a_design_as_small() -> None:
    assert pilot(facts(cluster={"chips": "16xH100"})) is None
    assert pilot(facts(cluster={"chips": "8xH100"})) is None


def test_cost() -> None:
    small = piloted(facts(price={"dollars_per_chip_hour": 2.0}))
    hours = 16 * (200 * number(small.step) + 3600) / 3600
    assert number(small.hours) == pytest.approx(hours)
    assert number(small.dollars) == pytest.approx(2 * hours)
