"""Volumes and times of collectives, against counting every hop one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.collectives import Collective, Dispatch, Switch, Torus, collective, expert_dispatch, sent
from ridgeline.core.errors import InputError

KINDS: list[Collective] = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "point_to_point"]
SIZE = q(1e9, "B", "size")


def torus(side: int, axes: int = 1, directions: int = 2, latency_s: float = 1e-6) -> Torus:
    return Torus(
        q(side, "1", "side"), q(axes, "1", "axes"), q(directions, "1", "directions"),
        q(1e9, "B/s/chip", "link"), q(latency_s, "s", "hop"),
    )  # fmt: skip


def switch(chips: int) -> Switch:
    return Switch(q(chips, "chip", "chips"), q(1e9, "B/s/chip", "port"), q(1e-6, "s", "latency"))


def _busiest_link(side: int, axes: int, directions: int) -> float:
    """Route every pair of an all-to-all along each axis in turn, by the short way, and load the links.

    Where both ways round are equally long, half goes each way. Each chip holds one byte.
    """
    loads: dict[tuple[object, ...], float] = {}
    nodes = list(itertools.product(range(side), repeat=axes))
    for source, target in itertools.product(nodes, nodes):
        here = list(source)
        for axis in range(axes):
            forward = (target[axis] - here[axis]) % side
            ways = [(1, forward, 1.0)]
            if directions == 2:
                backward = side - forward
                ways = [(1, forward, 1.0)] if forward < backward else [(-1, backward, 1.0)]
                if forward == backward:
                    ways = [(1, forward, 0.5), (-1, backward, 0.5)]
            for way, hops, part in ways:
                for hop in range(hops):
                    at = [*here[:axis], (here[axis] + way * hop) % side, *here[axis + 1 :]]
                    key = (*at, axis, way)
                    loads[key] = loads.get(key, 0.0) + part / len(nodes)
            here[axis] = target[axis]
    return max(loads.values(), default=0.0)


@pytest.mark.parametrize(("side", "axes"), [(2, 1), (3, 1), (4, 1), (7, 1), (8, 1), (3, 2), (4, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize("directions", [1, 2])
def test_all_to_all_loads_the_links_as_routing_does(side: int, axes: int, directions: int) -> None:
    found = collective("all_to_all", SIZE, torus(side, axes, directions))
    assert number(found.transfer) == pytest.approx(_busiest_link(side, axes, directions))


def _ring_all_gather(side: int) -> tuple[int, float]:
    """Steps and bytes per link of passing shards round a one-way ring until everybody has all of them."""
    have = [{rank} for rank in range(side)]
    steps = 0
    while any(len(shards) < side for shards in have):
        have = [have[rank] | {(rank - 1 - steps) % side} for rank in range(side)]
        steps += 1
    return steps, steps / side


@pytest.mark.parametrize("side", [1, 2, 3, 8, 13])
def test_one_way_ring_all_gather(side: int) -> None:
    steps, share = _ring_all_gather(side)
    found = collective("all_gather", SIZE, torus(side, directions=1))
    assert number(found.latency) == pytest.approx(steps * 1e-6)
    assert number(found.transfer) == pytest.approx(share)


@given(side=st.integers(1, 64), axes=st.integers(1, 3), directions=st.integers(1, 2))
def test_all_reduce_is_a_reduce_scatter_and_an_all_gather(side: int, axes: int, directions: int) -> None:
    fabric = torus(side, axes, directions)
    parts = [collective(kind, SIZE, fabric) for kind in ("reduce_scatter", "all_gather")]
    assert number(collective("all_reduce", SIZE, fabric).total) == pytest.approx(sum(number(p.total) for p in parts))


@given(chips=st.integers(1, 10**4), kind=st.sampled_from(KINDS))
def test_volume_on_a_switch(chips: int, kind: Collective) -> None:
    found = collective(kind, SIZE, switch(chips))
    moved = number(sent(kind, SIZE, q(chips, "chip", "chips")))
    assert number(found.sent) == moved
    assert number(found.transfer) == pytest.approx(moved / 1e9)
    assert number(found.total) == pytest.approx(number(found.transfer) + number(found.latency))
    factor = {"all_reduce": 2, "point_to_point": chips / max(chips - 1, 1)}.get(kind, 1)
    assert moved == pytest.approx(1e9 if kind == "point_to_point" else factor * 1e9 * (chips - 1) / chips)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "point_to_point"])
def test_one_chip_has_nothing_to_send(kind: Collective) -> None:
    assert number(collective(kind, SIZE, switch(1)).total) == 0
    assert number(collective(kind, SIZE, torus(1, axes=3)).total) == 0


def test_large_ring_all_to_all_is_a_quarter_of_an_all_gather_of_the_same_array() -> None:
    side = 4096
    gather = collective("all_gather", SIZE, torus(side, latency_s=0))
    share = q(1e9 / side * 1, "B", "held")
    exchange = collective("all_to_all", share, torus(side, latency_s=0))
    assert number(exchange.transfer) / number(gather.transfer) == pytest.approx(1 / 4, rel=1e-3)


@pytest.mark.parametrize(("axes", "directions"), [(1, 1), (1, 2), (2, 2), (3, 2)])
def test_an_all_gather_keeps_every_link_busy(axes: int, directions: int) -> None:
    found = collective("all_gather", SIZE, torus(4, axes, directions))
    assert number(found.transfer) == pytest.approx((1 - 4.0**-axes) / (axes * directions))


def test_small_messages_are_bound_by_latency() -> None:
    found = collective("all_reduce", q(8, "B", "size"), torus(256))
    assert number(found.latency) > 1e3 * number(found.transfer)


def test_candidates_at_once() -> None:
    sides = np.array([1.0, 2.0, 5.0, 16.0])
    fabric = Torus(
        q(sides, "1", "side"), q(2, "1", "axes"), q(2, "1", "directions"), q(1e9, "B/s/chip", "link"), q(0, "s", "hop")
    )
    for kind in KINDS:
        alone = [number(collective(kind, SIZE, torus(int(s), 2, latency_s=0)).total) for s in sides]
        np.testing.assert_allclose(np.broadcast_to(collective(kind, SIZE, fabric).total.value, 4), alone)


def test_refusals() -> None:
    dead = Switch(q(8, "chip", "chips"), q(0, "B/s/chip", "bandwidth"), q(0, "s", "latency"))
    with pytest.raises(InputError, match=r"above zero.*bandwidth"):
        collective("all_gather", SIZE, dead)
    with pytest.raises(InputError, match="at least 1"):
        collective("all_gather", SIZE, switch(0))
    with pytest.raises(InputError, match="all_gather, reduce_scatter"):
        collective("broadcast", SIZE, switch(8))  # type: ignore[arg-type]


@given(top_k=st.integers(1, 16), layers=st.integers(1, 100))
def test_dispatch_grows_with_experts_per_token_and_latency_with_layers(top_k: int, layers: int) -> None:
    def run(k: int, depth: int) -> tuple[float, float]:
        work = Dispatch(q(100, "token", "t"), q(64, "1", "d"), q(depth, "1", "l"), q(k, "1", "k"), q(2, "B", "element"))
        found = expert_dispatch(work, q(1e9, "B/s", "link"), q(1e-6, "s", "latency"))
        return number(found.transfer), number(found.latency)

    transfer, latency = run(1, 1)
    assert run(top_k, layers) == pytest.approx((transfer * top_k * layers, latency * layers))
