"""What plans send: terms, kinds and volumes. Against compiled programs: tests/plan/verify."""

import numpy as np
import pytest

from ridgeline.arithmetic.params import counts
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.fits import held
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.machine import Software
from ridgeline.plan.steps.ranks import groups
from ridgeline.plan.steps.traffic import Sent, Widths, copied, owned, reductions, sent
from ridgeline.plan.steps.workload import workload

DENSE = model(Shape(layers=4, d_model=256, heads=8, kv_heads=4, d_ff=512, vocab=1024))
MOE = model(Shape(layers=4, d_model=256, heads=8, vocab=1024, experts=8, top_k=2, expert_ff=128))


def by_term(rows: list[Sent], plan: int = 0) -> dict[tuple[str, str], tuple[float, float]]:
    """(term, kind) -> count and bytes of one plan, what it does not send left out."""
    return {(r.term, r.kind): (r.count[plan], r.bytes[plan]) for r in rows if r.count[plan]}


def test_one_chip_sends_nothing() -> None:
    assert sent(DENSE, (4, 128), Layout.of()) == []


def test_data_parallel_reduces_every_gradient_once() -> None:
    total = sum(stored for stored, _ in counts(DENSE).values())
    found = by_term(sent(DENSE, (8, 128), Layout.of(dp=2, micro_batch=1)))
    assert found == {("gradients", "all_reduce"): (1, total * 4)}


def test_stages_of_zero_send_the_same_gradients() -> None:
    rows = sent(DENSE, (8, 128), Layout.of(dp=2, zero=[0, 1, 2, 3], micro_batch=4))
    total = sum(stored for stored, _ in counts(DENSE).values())
    assert by_term(rows, 1) == by_term(rows, 2)
    assert by_term(rows, 1) == {
        ("gradients", "reduce_scatter"): (1, total * 4),
        ("parameters", "all_gather"): (1, total * 2),
    }
    assert by_term(rows, 3) == {
        ("shards", "all_gather"): (12, 2 * total * 2),
        ("shards", "reduce_scatter"): (6, total * 4),
    }


def test_fully_sharded_layers_travel_for_every_micro_batch() -> None:
    one, four = (by_term(sent(DENSE, (8, 128), Layout.of(dp=2, zero=3, micro_batch=size))) for size in (4, 1))
    for key, (count, size_bytes) in one.items():
        assert four[key] == (4 * count, 4 * size_bytes)


def test_sequence_parallelism_sends_two_halves() -> None:
    whole, halves = (by_term(sent(DENSE, (1, 128), Layout.of(tp=2, sequence_parallel=sp))) for sp in (0, 1))
    stream = 128 * 256 * 2
    loss = {("loss_rows", "all_reduce"): (3, 3 * 128 * 4)}
    edges = [f"{edge}_stream" for edge in ("embedding", "head")]
    assert whole == {
        ("layer_stream", "all_reduce"): (16, 16 * stream),
        **{(edge, "all_reduce"): (1, stream) for edge in edges},
        **loss,
    }
    assert halves == {
        **{("layer_stream", kind): (16, 16 * stream) for kind in ("all_gather", "reduce_scatter")},
        **{(edge, kind): (1, stream) for edge in edges for kind in ("all_gather", "reduce_scatter")},
        ("copied_gradients", "all_reduce"): (9, 9 * 256 * 4),
        **loss,
    }


def test_tokens_go_to_each_of_their_experts_and_back() -> None:
    found = by_term(sent(MOE, (2, 128), Layout.of(dp=2, ep=2), Widths(stream=1)))
    assert found.pop(("gradients", "all_reduce"))[0] == 1
    assert found == {("expert_tokens", "all_to_all"): (16, 16 * 128 * 2 * 256)}  # one copy of each expert


def test_full_recompute_sends_the_forward_pass_again() -> None:
    plain, again = (by_term(sent(MOE, (2, 128), Layout.of(dp=2, ep=2, recompute=how))) for how in ("none", "full"))
    assert again["expert_tokens", "all_to_all"][0] == 1.5 * plain["expert_tokens", "all_to_all"][0]


def test_routed_experts_that_tp_does_not_split_need_no_reduction() -> None:
    (item,) = workload(MOE, 128).exchanges
    layouts = Layout.of(tp=2, dp=2, ep=[1, 4, 2], etp=[2, 1, 2])
    assert reductions(item, layouts).tolist() == [2, 1, 1]


def test_split_experts_join_every_row_as_often_as_it_was_chosen() -> None:
    whole, split = (by_term(sent(MOE, (2, 128), Layout.of(tp=2, dp=2, ep=2, etp=etp))) for etp in (1, 2))
    joined = 128 * 256 * 2 * 2  # both ranks' rows in bf16, each sent to two experts
    assert ("expert_split", "all_gather") not in whole
    for kind in ("all_gather", "reduce_scatter"):
        assert split["expert_split", kind] == (8, 8 * joined)
    assert split["expert_tokens", "all_to_all"] == whole["expert_tokens", "all_to_all"]


def test_what_a_rank_owns() -> None:
    whole = sum(copied(DENSE))
    assert whole == 9 * 256
    total = sum(stored for stored, _ in counts(DENSE).values())
    dense, experts = owned(DENSE, Layout.of(tp=[1, 2, 4]), np.ones(3))
    assert dense.tolist() == [total, (total - whole) / 2 + whole, (total - whole) / 4 + whole]
    assert experts.tolist() == [0, 0, 0]


@pytest.mark.parametrize("shard", [2, 4])
def test_hybrid_shards_are_summed_over_replicas(shard: int) -> None:
    total = sum(stored for stored, _ in counts(DENSE).values())
    found = by_term(sent(DENSE, (8, 128), Layout.of(dp=8, zero=3, shard=shard)))
    assert found["replica_gradients", "all_reduce"] == (1, total / shard * 4)


@pytest.mark.parametrize("shard", [4, 8, 16])
def test_memory_and_traffic_shard_experts_over_the_same_ranks(shard: int) -> None:
    """A shard group keeps its experts to itself: over shard/ep ranks, the rest are replicas."""
    layouts = Layout.of(dp=16, ep=4, zero=3, shard=shard)
    _, experts = owned(MOE, layouts, np.ones(1))
    kept = held(MOE, (16, 128), layouts, Software()).parts["weights"][0]
    dense, _ = owned(MOE, layouts, np.ones(1))
    inside = groups(parse("16xH100"), layouts).expert_data.size[0]
    assert inside == shard // 4
    assert kept == pytest.approx(2 * (dense[0] / shard + experts[0] / inside), rel=1e-9)
    found = by_term(sent(MOE, (16, 128), layouts))
    if shard < 16:
        assert found["replica_gradients", "all_reduce"][1] == 4 * (dense[0] / shard + experts[0] / inside)
