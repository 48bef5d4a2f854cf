"""Many ranks on one clock; `tests/trace/test_read.py` has the cases of a few."""

import time

import numpy as np

from ridgeline.trace.align import aligned
from ridgeline.trace.events import Category, Info, Kind, events

DAY = 1_700_000_000_000_000_000


def test_many_ranks_are_aligned_in_a_moment() -> None:
    """Groups of eight, chained by groups across them: most ranks share no collective with the first."""
    ranks = []
    order = np.arange(40)
    for rank in range(256):
        base = DAY + 7 * rank
        columns = {
            "ts": order * 10_000_000 + 1000 * rank,
            "dur": np.full(40, 5_000),
            "name": order % 2,
            "kind": np.full(40, Kind.COMM),
            "category": np.full(40, Category.KERNEL),
        }
        names = f"all_gather {rank // 8}", f"all_reduce {rank % 8}"
        ranks.append(events(columns, names, (), Info("kineto", f"{rank}", rank=rank, base_ns=base)))
    begun = time.process_time()
    run = aligned(ranks)
    assert time.process_time() - begun < 1  # cubic in the ranks it took a minute
    assert list(run.offset_ns) == [-1000 * rank for rank in range(256)]
    assert run.spread_ns == 0


def test_a_rank_is_compared_with_the_one_that_it_shares_most_with() -> None:
    """Rank 2 shares one call with rank 0, which ended apart there, and five with rank 1."""
    plan = {0: [("all", 0)], 1: [("all", 300)] + [("pair", 100)] * 5, 2: [("all", 900)] + [("pair", 100)] * 5}
    ranks = []
    for rank, calls in plan.items():
        names = ("all_reduce all", "all_reduce pair")
        columns = {
            "ts": np.arange(len(calls)) * 1000 + np.array([late for _, late in calls]),
            "dur": np.full(len(calls), 50),
            "name": np.array([which == "pair" for which, _ in calls], np.int64),
            "kind": np.full(len(calls), Kind.COMM),
            "category": np.full(len(calls), Category.KERNEL),
        }
        ranks.append(events(columns, names, (), Info("kineto", f"{rank}", rank=rank)))
    assert aligned(ranks).offset_ns == (0, -300, -300)
