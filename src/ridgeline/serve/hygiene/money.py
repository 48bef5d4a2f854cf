"""What a prompt token costs that was computed again: its price less the price of a cached one."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.core import catalog
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import Quantity, given

_FILE = "hygiene"
_UNIT = "USD/Mtoken"


@dataclass(frozen=True)
class Price:
    """Dollars per million prompt tokens, computed and from the cache."""

    input: Quantity
    cached: Quantity


def named_prices() -> list[str]:
    """The models whose prices are in ``core/data``."""
    return sorted(name.split(".")[2] for name in catalog.constants(_FILE) if name.endswith(".input"))


def price(text: str) -> Price:
    """``2.50/0.25`` (dollars per million tokens: prompt, cached) or the name of a model with a known price.

    Raises `InputError` for anything else, for a price that is not finite and positive, or a cached price above it.
    """
    where = "--price"
    if re.match(r"^\s*[\d.+-]|^\s*nan|^\s*inf", text, re.IGNORECASE):
        first, slash, second = text.partition("/")
        values = [_dollars(part, text) for part in (first, second)] if slash else []
        if not values or not 0 <= values[1] <= values[0] or values[0] <= 0:
            raise InputError.expected("two prices, the cached one not above the other, such as 2.50/0.25", text,
                                      where=where, hint="dollars per million tokens: prompt, cached")  # fmt: skip
        return Price(
            given("hygiene.price.input", values[0], _UNIT, where).titled("Price of a prompt token"),
            given("hygiene.price.cached", values[1], _UNIT, where).titled("Price of a cached token"),
        )
    found = price_of_model(text)
    if found is None:
        hint = did_you_mean(_slug(text), named_prices(), "known: " + ", ".join(named_prices()))
        raise InputError.expected(
            "prices such as 2.50/0.25, or a model with a known price", text, where=where, hint=hint
        )
    return found


def _dollars(text: str, whole: str) -> float:
    try:
        value = float(text.strip().lstrip("$"))
    except ValueError as error:
        raise InputError.expected("prices such as 2.50/0.25", whole, where="--price") from error
    if not math.isfinite(value):
        raise InputError.expected("prices that are finite", whole, where="--price")
    return value


def price_of_model(name: str) -> Price | None:
    """The published price of a model as a log names it (``anthropic/claude-sonnet-4-5-20250929``); None if unknown."""
    slug = _slug(name.rpartition("/")[2])
    known = [item for item in named_prices() if slug == item or re.fullmatch(re.escape(item) + r"-\d{8}|" +
             re.escape(item) + r"-\d{4}-\d{2}-\d{2}|" + re.escape(item) + "-latest", slug)]  # fmt: skip
    if not known:
        return None
    return Price(*(catalog.constant(f"{_FILE}.prices.{known[0]}.{kind}") for kind in ("input", "cached")))


def price_of_log(models: Mapping[str, float]) -> Price | None:
    """The published price where one model makes up the log."""
    return price_of_model(next(iter(models))) if len(models) == 1 else None


def _slug(name: str) -> str:
    return re.sub(r"[\s._]+", "-", name.strip().lower())
