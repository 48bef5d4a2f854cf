"""Level 0 of a rank without a trace behind it: steps of one length, all compute but what is said."""

import numpy as np

from ridgeline.trace.levels.l0 import BUCKETS, Parts, RankBuckets
from ridgeline.trace.steps import Steps

S = 10**9


def steady_rank(
    step_s: float, *, label: str = "rank0", status: tuple[str, ...] = ("steady",) * 3, source: str = "markers",
    **seconds: float,
) -> RankBuckets:  # fmt: skip
    """``len(status)`` steps of ``step_s`` each; ``seconds`` per bucket, the rest is compute."""
    n = len(status)
    span = np.full(n, round(step_s * S), dtype=np.int64)
    columns = {name: np.full(n, round(seconds.get(name, 0) * S), dtype=np.int64) for name in BUCKETS}
    columns["compute"] = span - sum(value for name, value in columns.items() if name != "compute")
    columns |= {name: np.zeros(n, dtype=np.int64) for name in ("comm", "copy", "overlap", "unclassified")}
    start = np.r_[0, np.cumsum(span)[:-1]]
    steps = Steps(np.arange(n), start, start + span, start, start + span, status, source)
    whole = {name: np.array([value.sum()]) for name, value in columns.items()}
    return RankBuckets(
        **columns, span=span, whole=Parts(**whole, span=np.array([span.sum()])), label=label, path=f"{label}.json",
        window="all", steps=steps, linked=0, events=0,
    )  # fmt: skip
