"""T156: a group that fits into one node and runs over the network."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l1 import Row
from ridgeline.trace.losses import Told, listed, lost, no_collectives, no_trace, seconds

SLOW_HOP = 0.25  # of the link inside the node: no library is that far below it with a large message
LARGE_BYTES = 2**22  # sent per chip: large enough for bandwidth to show


@rule("T156", "Groups that fit into a node stay in it", threshold=0.5, unit="%",
      why="a hop over the network is never needed there")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Collectives of groups that are no larger than a node (or island) of the device: their ranks lie on several nodes, or
    they move large messages at less than a quarter of the link inside the node.

    ## Why it matters
    The network is several times slower than the links of a node. A wrong order of mesh axes puts the busiest group
    on it.

    ## How to confirm
    Print the host of every rank of the group; run the library's benchmark inside one node.

    ## What to do, cheapest first
    1. Put the axis that communicates most innermost in the mesh, so that its ranks share a node.
    2. Check that peer access works (topology of the host, container settings) and that all links are up.

    ## Sources
    `design.devices_per_node` and `link.scale_up` of the device's file; ranks counted node by node.
    """
    if not facts.l0:
        yield no_trace(this)
        return
    if facts.l1 is None:
        yield no_collectives(this)
        return
    device = facts.context.device
    if device is None or device.devices_per_node is None or device.scale_up is None:
        yield this.found(
            Verdict.UNKNOWN, "How many chips share a node, and by which link, is not known.",
            "Name the chips in run.toml (`[machine]`).",
        )  # fmt: skip
        return
    node, link = int(device.devices_per_node.base), float(device.scale_up.bandwidth.base)
    rows = [row for row in facts.l1.rows if slow_hop(row, node, link)]
    total_s = sum(row.per_step_s for row in rows)
    total = seconds("lost.comm_slow_hop", total_s, "Exposed collectives over a slow hop", "groups of a node's size")
    told = Told(
        "Collectives that could stay inside a node but do not run exposed for",
        "Reorder the mesh so that the group shares a node; check peer access and links.",
        listed(facts, rows),
    )
    yield lost(facts, this, total, told)


def slow_hop(row: Row, node: int, link_bytes_per_s: float) -> bool:
    """Whether a group of at most ``node`` ranks leaves its node, or is as slow as if it did."""
    if not row.key.group_size or row.key.group_size > node:
        return False
    if any(len({rank // node for rank in group}) > 1 for group in row.groups):
        return True
    rate = row.bus_bytes_per_s
    large = row.sent_bytes is not None and row.sent_bytes >= LARGE_BYTES
    return large and row.matched > 0 and rate is not None and rate < SLOW_HOP * link_bytes_per_s
