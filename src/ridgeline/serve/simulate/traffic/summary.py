"""What a workload is like before it is served: rate, dispersion of arrivals, percentiles of lengths."""

from dataclasses import dataclass

import numpy as np

from ridgeline.serve.simulate.traffic.arrivals import rate_of
from ridgeline.serve.simulate.traffic.requests import Floats, Ints

BIN_S = 1.0


@dataclass(frozen=True)
class Spread:
    """Mean, median, 99th percentile and largest of a column."""

    mean: float
    p50: float
    p99: float
    largest: float

    @classmethod
    def of(cls, values: Ints | Floats) -> "Spread":
        """Of values, at least one."""
        middle, high = np.percentile(values, [50, 99])
        return cls(float(np.mean(values)), float(middle), float(high), float(np.max(values)))


@dataclass(frozen=True)
class Summary:
    """``dispersion`` is the variance of the arrivals of a second over their mean: 1 for Poisson, more in bursts."""

    count: int
    span_s: float
    rate_per_s: float
    dispersion: float
    input: Spread
    output: Spread


def summary(arrival_s: Floats, input_tokens: Ints, output_tokens: Ints) -> Summary:
    """The summary of requests, at least one, in order of arrival."""
    span = float(arrival_s[-1] - arrival_s[0])
    return Summary(
        len(arrival_s), span, rate_of(arrival_s), dispersion(arrival_s),
        Spread.of(input_tokens), Spread.of(output_tokens),
    )  # fmt: skip


def dispersion(arrival_s: Floats, bin_s: float = BIN_S) -> float:
    """The index of dispersion of counts: variance over mean of the arrivals in bins of ``bin_s``.

    Empty bins are counted and not kept: a trace may span years.
    """
    at = (arrival_s - arrival_s[0]) // bin_s
    counts, mean = np.unique(at, return_counts=True)[1].astype(np.float64), len(at) / (float(at.max()) + 1)
    return float(counts @ counts / len(at) - mean)
