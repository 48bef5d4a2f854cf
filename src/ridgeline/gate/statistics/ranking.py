"""Scores of a ranked list as the field computes them, and Wilson's interval of a rate.

``ranked`` is the list of retrieved items, best first, ``gold`` the relevant ones. An item that is retrieved twice
counts at its first place. Formulas: Manning, Raghavan and Schuetze 2008, chapter 8; nDCG with binary gains and
log2(rank + 1) (Jarvelin and Kekalainen 2002). The mean of each over questions is the figure of a leaderboard.
"""

from collections.abc import Collection, Hashable, Sequence
from math import log2

from ridgeline.core.errors import InputError
from ridgeline.gate.statistics.interval import Interval

Items = Sequence[Hashable]


def _found(ranked: Items, gold: Collection[Hashable], k: int | None) -> tuple[list[int], set[Hashable]]:
    """Ranks from one of the relevant items among the first ``k`` places, and the set of relevant items."""
    wanted = set(gold)
    if not wanted:
        raise InputError.expected("at least one relevant item", 0, where="gold")
    if k is not None and k < 1:
        raise InputError.expected("k of at least 1", k, where="k")
    seen: set[Hashable] = set()
    ranks = []
    for rank, item in enumerate(ranked[:k], 1):
        if item in wanted and item not in seen:
            ranks.append(rank)
            seen.add(item)
    return ranks, wanted


def any_at(ranked: Items, gold: Collection[Hashable], k: int) -> bool:
    """Whether at least one relevant item is among the first ``k``: what benchmarks call Hits@k."""
    return bool(_found(ranked, gold, k)[0])


def all_at(ranked: Items, gold: Collection[Hashable], k: int) -> bool:
    """Whether every relevant item is among the first ``k``: what an answer over several hops needs."""
    ranks, wanted = _found(ranked, gold, k)
    return len(ranks) == len(wanted)


def recall_at(ranked: Items, gold: Collection[Hashable], k: int) -> float:
    """The share of relevant items among the first ``k``."""
    ranks, wanted = _found(ranked, gold, k)
    return len(ranks) / len(wanted)


def reciprocal_rank(ranked: Items, gold: Collection[Hashable], k: int | None = None) -> float:
    """One over the rank of the first relevant item, zero where there is none; its mean is the MRR."""
    ranks, _ = _found(ranked, gold, k)
    return 1 / ranks[0] if ranks else 0.0


def average_precision(ranked: Items, gold: Collection[Hashable], k: int | None = None) -> float:
    """Precision at the rank of each relevant item, over the number of relevant items; its mean is the MAP."""
    ranks, wanted = _found(ranked, gold, k)
    return sum(count / rank for count, rank in enumerate(ranks, 1)) / len(wanted)


def ndcg_at(ranked: Items, gold: Collection[Hashable], k: int) -> float:
    """Discounted cumulative gain of the first ``k``, over that of the best order."""
    ranks, wanted = _found(ranked, gold, k)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return sum(1 / log2(rank + 1) for rank in ranks) / best


def wilson(events: int, n: int, alpha: float) -> Interval:
    """Wilson's score interval of a rate, each end one-sided at ``1 - alpha``; none seen of none is no evidence."""
    from statsmodels.stats.proportion import proportion_confint

    if not 0 <= events <= n:
        raise InputError.expected(f"between 0 and {n} events", events, where="the events of a rate")
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0, alpha, "Wilson", degenerate="no examples")
    low, high = proportion_confint(events, n, alpha=2 * alpha, method="wilson")
    return Interval(events / n, float(low), float(high), n, alpha, "Wilson")
