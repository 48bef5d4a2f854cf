"""The quantiles of the tests, one-sided: what a statistic passes with probability alpha.

scipy.special holds the same values as the distributions of scipy.stats and loads in half the time, which every gate
command would pay; it loads where it is used.
"""


def normal(alpha: float) -> float:
    """The upper quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return -float(ndtri(alpha))


def student(alpha: float, freedom: float) -> float:
    """The upper quantile of Student's distribution; not a number without a degree of freedom."""
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, alpha))
