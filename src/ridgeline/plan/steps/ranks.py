"""How the parallel groups of a plan lie on the cluster: sizes, and how many members share a scale-up domain.

Ranks are numbered with ``tp`` fastest, then ``cp``, ``dp`` and ``pp`` (Megatron-LM's order); experts are spread over
neighbouring ranks of ``tp*cp*dp``.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.layout import Ints, Layout


@dataclass(frozen=True)
class Group:
    """``size`` ranks of which ``near`` share a domain; one entry a plan."""

    size: Ints
    near: Ints


@dataclass(frozen=True)
class Groups:
    """The groups of every plan: ``shard`` holds ZeRO's shards, ``expert_data`` those of the same experts, ``replica``
    joins both under hybrid sharding. ``etp`` splits an expert. ``stage_is_far``: neighbouring stages are in other
    domains."""

    tp: Group
    cp: Group
    ep: Group
    etp: Group
    shard: Group
    replica: Group
    expert_data: Group
    stage_is_far: Ints


def groups(cluster: Cluster, layouts: Layout) -> Groups:
    """Every group of every plan on that cluster."""
    node, span = cluster.node_size, layouts.tp * layouts.cp * layouts.dp
    experts = layouts.ep * layouts.etp
    inside = np.maximum(layouts.tp * layouts.shard // experts, 1)
    return Groups(
        tp=_group(layouts.tp, np.ones_like(layouts.tp), node),
        cp=_group(layouts.cp, layouts.tp, node),
        ep=_group(layouts.ep, layouts.etp, node),
        etp=_group(layouts.etp, np.ones_like(layouts.etp), node),
        shard=_group(layouts.shard, layouts.tp, node),
        replica=_group(layouts.dp * layouts.cp // layouts.shard, layouts.tp * layouts.shard, node),
        expert_data=_group(inside, experts, node),
        stage_is_far=np.asarray(span * layouts.pp > node, dtype=np.int64) * (span * 2 > node),
    )


def _group(size: Ints, stride: Ints, node: int) -> Group:
    """Members ``stride`` ranks apart: as many in a domain as fit and fill it evenly."""
    return Group(size, np.gcd(size, np.clip(node // stride, 1, size)))
