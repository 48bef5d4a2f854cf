"""Groups on the cluster: tp inside a node, dp across."""

from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.ranks import groups


def test_tensor_parallel_groups_stay_inside_a_node() -> None:
    found = groups(parse("512xH100"), Layout.of(tp=[1, 8, 16], dp=[64, 8, 8], pp=[8, 8, 4]))
    assert found.tp.near.tolist() == [1, 8, 8]
    assert found.shard.near.tolist() == [8, 1, 1]
    assert found.stage_is_far.tolist() == [1, 1, 1]


def test_a_rack_keeps_experts_inside() -> None:
    plan = Layout.of(dp=64, ep=64)
    assert groups(parse("64xGB200"), plan).ep.near.tolist() == [64]
    assert groups(parse("64xB200"), plan).ep.near.tolist() == [8]


def test_stages_of_one_node_are_near() -> None:
    assert groups(parse("8xH100"), Layout.of(tp=2, pp=4)).stage_is_far.tolist() == [0]


def test_hybrid_sharding_joins_its_shards() -> None:
    found = groups(parse("64xH100"), Layout.of(dp=64, shard=8, zero=3))
    assert (found.shard.size.tolist(), found.replica.size.tolist(), found.replica.near.tolist()) == ([8], [8], [1])
