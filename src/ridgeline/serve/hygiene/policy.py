"""How a cache counts: the named policies of ``core/data``, and what a user changes of them."""

import math

from ridgeline.core import catalog
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.serve.hygiene.audit import Cache

DEFAULT = "vllm"


def policies() -> list[str]:
    """The named policies."""
    return sorted({name.split(".")[2] for name in catalog.constants("hygiene") if name.startswith("hygiene.policy.")})


def cache(
    policy: str = DEFAULT, *, block: int | None = None, capacity_tokens: float = math.inf, ttl_s: float | None = None
) -> Cache:
    """A cache by policy, with another block, a capacity or a lifetime where given.

    Raises `InputError` for an unknown policy, a block that is odd or below 2, or a capacity below one block.
    """
    if policy not in policies():
        hint = did_you_mean(policy, policies(), ", ".join(policies()))
        raise InputError.expected("a known policy", policy, where="--policy", hint=hint)
    key = f"hygiene.policy.{policy}"
    size = block if block is not None else int(_figure(f"{key}.block", 0))
    made = Cache(
        block_tokens=size,
        minimum_tokens=_figure(f"{key}.minimum", 0.0),
        ttl_s=ttl_s if ttl_s is not None else _figure(f"{key}.ttl", math.inf),
        capacity_tokens=capacity_tokens,
    )
    if made.capacity_tokens < size:
        raise InputError.expected(f"a capacity of at least one block, {size} tokens", capacity_tokens,
                                  where="--capacity")  # fmt: skip
    return made


def _figure(name: str, otherwise: float) -> float:
    found = catalog.constant(name, missing_ok=True)
    return otherwise if found is None else float(found.value)
