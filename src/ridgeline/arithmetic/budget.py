"""Compute as a budget: what chips deliver in a time, and what a model costs over its life.

The convention is 6 FLOPs per parameter and token in training and 2 in inference; attention scores are left out
(about a seventh at 8k context for a 70B model). Kaplan et al., 2020, section 2.1; Hoffmann et al., 2022.
"""

from ridgeline.arithmetic.inputs import require_fraction, require_not_negative, require_positive, under
from ridgeline.core.quantity import Quantity, derive


def compute_budget(chips: Quantity, peak: Quantity, mfu: Quantity, time: Quantity, prefix: str = "") -> Quantity:
    """``compute`` (FLOP): chips * peak * MFU * time. ``peak`` in FLOP/s/chip; an ``mfu`` above 100% is refused.

    ``mfu`` is over the whole ``time``: with an MFU of steps that run, multiply the time by goodput first.
    """
    require_positive(chips, peak, time)
    require_fraction(mfu)
    text = "chips*peak*mfu*time"
    found = derive(under(prefix, "compute"), text, "FLOP", chips=chips, peak=peak, mfu=mfu, time=time)
    return found.titled("Training compute, C")


def params_at_ratio(compute: Quantity, ratio: Quantity, prefix: str = "") -> Quantity:
    """``ratio.params`` (param): the N that spends ``compute`` at ``ratio`` (token/param): sqrt(C/(6*ratio))."""
    require_positive(compute, ratio)
    name, text = under(prefix, "ratio.params"), "sqrt(C/(6*ratio))"
    return derive(name, text, "param", C=compute, ratio=ratio).titled("Parameters at that ratio")


def tokens_for(compute: Quantity, params: Quantity, prefix: str = "") -> Quantity:
    """``budget.tokens`` (token): the D that spends ``compute`` on N parameters, C/(6N)."""
    require_positive(compute, params)
    name = under(prefix, "budget.tokens")
    return derive(name, "C/(6*N)", "token", C=compute, N=params).titled("Tokens that the budget buys")


def training_time(compute: Quantity, chips: Quantity, peak: Quantity, mfu: Quantity, prefix: str = "") -> Quantity:
    """``training.time`` (day): C/(chips*peak*MFU), the inverse of `compute_budget`."""
    require_positive(compute, chips, peak)
    require_fraction(mfu)
    text = "C/(chips*peak*mfu)"
    found = derive(under(prefix, "training.time"), text, "day", C=compute, chips=chips, peak=peak, mfu=mfu)
    return found.titled("Time to train")


def lifetime_compute(params: Quantity, trained: Quantity, served: Quantity, prefix: str = "") -> Quantity:
    """``lifetime.compute`` (FLOP): 6N per trained token plus 2N per served token, ``params`` active per token.

    Served tokens are prefilled and decoded ones alike. FLOPs, not dollars: decoding reaches a far lower share of peak.
    """
    require_positive(params, trained)
    require_not_negative(served)
    name, text = under(prefix, "lifetime.compute"), "6*N*trained + 2*N*served"
    found = derive(name, text, "FLOP", N=params, trained=trained, served=served)
    return found.titled("Compute over the model's life")
