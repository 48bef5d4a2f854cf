"""What three levers are worth in one formula each, before any model or traffic is known."""

from ridgeline.arithmetic.inputs import require_not_negative
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive


def prefix_saving(hit_rate: Quantity, discount: Quantity) -> Quantity:
    """``prefix.saving`` (%): of the cost of input tokens, hit rate times discount, both shares.

    The discount is what a provider takes off a cached token, or the part of its prefill that a replica does not do: all
    but the attention of later tokens to it. Raises `InputError` for a share outside 0 to 100%.
    """
    for item in (hit_rate, discount):
        require_not_negative(item)
        if float(item.base) > 1:
            raise InputError.expected("a share of at most 100%", item.value, where=item.name)
    found = derive("prefix.saving", "hit_rate*discount", "%", hit_rate=hit_rate, discount=discount)
    return found.titled("Saved on input tokens")


def pages_gain(lost: Quantity, lost_in_pages: Quantity) -> Quantity:
    """``paged.gain`` (1): requests that fit with pages over those that fit when each reserves its longest length.

    Raises `InputError` for shares outside 0 to 100%, or where everything is lost.
    """
    for item in (lost, lost_in_pages):
        require_not_negative(item)
        if float(item.base) >= 1:
            raise InputError.expected("a share below 100%", item.value, where=item.name)
    found = derive("paged.gain", "(1 - paged)/(1 - reserved)", "1", paged=lost_in_pages, reserved=lost)
    return found.titled("Requests that fit with pages over those without")


def speculative_length(chance: Quantity, drafted: Quantity) -> Quantity:
    """``speculative.length`` (token): tokens a step with ``drafted`` ones, each accepted with ``chance`` if those
    before it were, and the one that the model adds (Leviathan et al. 2023, arXiv:2211.17192, equation 1).

    Raises `InputError` for a chance outside 0 to 1 (1 excluded) or a negative count.
    """
    require_not_negative(chance, drafted)
    if float(chance.base) >= 1:
        raise InputError.expected("a chance below 1", chance.value, where=chance.name)
    found = derive("speculative.length", "(1 - a**(k + 1))/(1 - a)", "token", a=chance, k=drafted)
    return found.titled("Tokens a step with speculation")
