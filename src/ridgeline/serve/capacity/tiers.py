"""The tiers of a product: how many requests of each fit at once beside one another.

A file holds one table per tier:

    [[tiers]]
    name = "chat"
    context = "8k"        # prompt tokens
    output = 1000         # answer tokens
    share = 0.8           # of the requests at once; the shares sum to 1

    [[tiers]]
    name = "agent"
    context = "64k"
    output = 4000
    concurrency = 4       # guaranteed: taken off before the shares are filled
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictStr

from ridgeline.arithmetic.kv import Share, kept
from ridgeline.arithmetic.params import Leaves
from ridgeline.core import parse
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.core.quantity import Quantity, derive, given, renamed
from ridgeline.core.specs import Spec, build, read_toml, typed
from ridgeline.serve.capacity.capacity import Capacity
from ridgeline.serve.capacity.weights import share_of

_Tokens = Annotated[int, typed(parse.context, "tokens")]


class TierSpec(Spec):
    """One tier as its file says it. ``share`` or ``concurrency``, not both."""

    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9_-]+$")]
    context: _Tokens
    output: _Tokens
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    concurrency: Annotated[int, Field(ge=1, strict=True)] | None = None

    @property
    def tokens(self) -> int:
        """The longest a request may grow."""
        return self.context + self.output


class Tiers(Spec):
    """All tiers of a product."""

    tiers: Annotated[tuple[TierSpec, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Tier:
    """One tier: bytes of a request on one chip, how many fit, and its longest request (token)."""

    spec: TierSpec
    tokens: Quantity
    per_request: Quantity
    sequences: Quantity


def read_tiers(file: Path) -> Tiers:
    """The tiers of a file. Raises `InputError` for a tier without a share or a number, or shares that miss 1."""
    found = build(Tiers, read_toml(file, what="tiers file"), where=str(file))
    check(found, where=str(file))
    return found


def check(found: Tiers, *, where: str) -> None:
    """Raise `InputError` where names repeat, a tier has not one of share and concurrency, or shares miss 1."""
    names = [tier.name for tier in found.tiers]
    for index, tier in enumerate(found.tiers):
        place = f"{where}: $.tiers[{index}]"
        if names.count(tier.name) > 1:
            raise InputError.expected("a name of its own", tier.name, where=f"{place}.name")
        if (tier.share is None) == (tier.concurrency is None):
            raise InputError.expected("either a share or a concurrency", tier.name, where=place)
    shares = [tier.share for tier in found.tiers if tier.share is not None]
    if shares and abs(sum(shares) - 1) > 1e-6:
        raise InputError.expected("shares that sum to 1", sum(shares), where=f"{where}: $.tiers")


def fill(found: Capacity, product: Tiers) -> tuple[Tier, ...]:
    """How many requests of each tier fit: guaranteed ones first, the rest in the ratio of the shares.

    Raises `InfeasibleError` where the guaranteed ones do not fit, and `InputError` for a tier above the model's limit.
    """
    each = {tier.name: _each(found, tier) for tier in product.tiers}
    left = _left(found, product, each)
    shares = {tier.name: given(f"tiers.{tier.name}.share", tier.share, "1", "the tiers file")
              for tier in product.tiers if tier.share is not None}  # fmt: skip
    result = []
    for tier in product.tiers:
        tokens, bytes_each = each[tier.name]
        name = f"tiers.{tier.name}.sequences"
        if tier.concurrency is not None:
            count = given(name, tier.concurrency, "request", "the tiers file")
        else:
            mean = _mean(shares, each)
            groups = found.sequences.inputs["groups"]
            inputs = {"groups": groups, "share": shares[tier.name], "left": left, "mean": mean}
            count = derive(name, "floor(groups*share*left/mean)", "request", **inputs)
        result.append(Tier(tier, tokens, bytes_each, count.titled(f"Requests of {tier.name} at once")))
    return tuple(result)


def _each(found: Capacity, tier: TierSpec) -> tuple[Quantity, Quantity]:
    limit = found.deployment.spec.max_context
    if limit is not None and tier.tokens > limit:
        where = f"tiers, {tier.name}"
        raise InputError.expected(f"at most the {limit:,} tokens of the model", tier.tokens, where=where)
    tokens = given(f"tiers.{tier.name}.tokens", tier.tokens, "token", "the tiers file")
    share = share_of(found.deployment, found.stage, mtp=found.settings.mtp)
    plain = found.settings.caching(found.deployment.kv)
    caching = replace(plain, page=found.page, aligned=found.settings.aligned)
    cache = kept(Leaves(found.deployment.spec), tokens, caching, Share(share.tp, share.layers))
    grown = ("chip.kv.paged",)  # what depends on the length; bytes per token are the deployment's
    one = renamed([cache.per_sequence], lambda q: f"tiers.{tier.name}.{q}" if q.startswith(grown) else q)[0]
    return tokens, one.titled(f"Cache of one request of {tier.name} on one chip")


def _left(found: Capacity, product: Tiers, each: dict[str, tuple[Quantity, Quantity]]) -> Quantity:
    """Bytes on one chip after the guaranteed requests."""
    inputs: dict[str, Quantity] = {"free": found.room.free}
    text = "free"
    for index, tier in enumerate(t for t in product.tiers if t.concurrency is not None):
        inputs |= {
            f"each{index}": each[tier.name][1],
            f"n{index}": given(f"tiers.{tier.name}.concurrency", tier.concurrency, "1", "the tiers file"),
            "groups": found.sequences.inputs["groups"],
        }
        text += f" - each{index}*ceil(n{index}/groups)"
    left = derive("tiers.left", text, "B", **inputs)
    if left.value < 0:
        raise InfeasibleError(
            f"Expected room for every tier's guaranteed requests, got {float(left.to('GB')):,.1f} GB left on one chip",
            limit="chip.free",
            nearest=f"{float(found.room.free.to('GB')):,.1f} GB for the cache on one chip",
            hint="lower a concurrency, --kv fp8, or more chips",
        )
    return left.titled("Room after the guaranteed requests")


def _mean(shares: dict[str, Quantity], each: dict[str, tuple[Quantity, Quantity]]) -> Quantity:
    """Bytes of the mean request of the tiers with shares."""
    names = list(shares)
    inputs = {f"share{i}": shares[n] for i, n in enumerate(names)} | {
        f"each{i}": each[n][1] for i, n in enumerate(names)
    }
    text = " + ".join(f"share{i}*each{i}" for i in range(len(names)))
    return derive("tiers.mean", text, "B", **inputs).titled("Cache of the mean request on one chip")
