"""Small jobs that the tests of the search share."""

from functools import lru_cache
from typing import Any

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.plan.layouts.search import Found, Request, search
from ridgeline.plan.layouts.space import Space
from ridgeline.plan.steps import cluster


def dense(**keys: Any) -> ModelSpec:
    """A decoder of 7B parameters, or what ``keys`` make of it."""
    base = {"layers": 32, "d_model": 4096, "d_ff": 11008, "heads": 32, "kv_heads": 8, "vocab": 32000}
    return model(Shape(**{"name": "dense", **base, **keys}))


def mixture() -> ModelSpec:
    """Eight experts of which a token uses two."""
    shape = Shape(
        name="moe", layers=16, d_model=2048, heads=16, kv_heads=8, vocab=32000, experts=8, top_k=2, expert_ff=4096
    )
    return model(shape)


def request(chips: str = "64xH100", batch: tuple[int, int] = (256, 4096), **more: Any) -> Request:
    """A search for the dense model, or for ``spec``."""
    spec = more.pop("spec", None) or dense()
    fixed = more.pop("fixed", {})
    return Request(spec, cluster.parse(chips), batch, space=more.pop("space", Space(fixed=fixed)), **more)


@lru_cache(maxsize=1)
def found() -> Found:
    """The plans of the dense model on 64 chips."""
    return search(request())
