"""The levers, in the order in which they are applied together: what changes no token first, routing last.

Paged attention: Kwon et al. 2023 (arXiv:2309.06180). Chunked prefill: Agrawal et al. 2024 (arXiv:2403.02310).
Pools for prefill and decode: Zhong et al. 2024 (arXiv:2401.09670). Speculation: Leviathan et al. 2023
(arXiv:2211.17192). Grouped queries: Ainslie et al. 2023 (arXiv:2305.13245).
"""

from dataclasses import replace
from typing import ClassVar

from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import Attention, ModelSpec
from ridgeline.core import figures
from ridgeline.core.catalog import DATA
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers.heads import grouped, one_each, shares
from ridgeline.serve.levers.lever import EXACT, RETRAIN, SAME_DISTRIBUTION, UNKNOWN, Lever
from ridgeline.serve.levers.outcome import Setup, Site, switched, with_types


class _Switch(Lever):
    """A lever that is one field of the setup."""

    quality = EXACT
    field: ClassVar[str]

    def in_use(self, setup: Setup) -> bool:
        """Whether the field is on."""
        return bool(getattr(setup, self.field))

    def refused(self, setup: Setup, site: Site) -> str:
        """Nothing keeps a flag from being turned on."""
        return ""

    def on(self, setup: Setup) -> Setup:
        """With the field on."""
        return switched(setup, self.field, True)

    def off(self, setup: Setup) -> Setup:
        """With the field off."""
        return switched(setup, self.field, False)


class Paged(_Switch):
    """A cache in pages: no request reserves its longest length."""

    name, title, field = "paged", "Paged attention", "paged"


class Prefix(_Switch):
    """Prefixes that are in the cache are not computed again. In use at the achieved hit rate."""

    name, title, field = "prefix", "Prefix caching", "prefix"

    def in_use(self, setup: Setup) -> bool:
        return setup.prefix and setup.hit_rate > 0

    def refused(self, setup: Setup, site: Site) -> str:
        return "" if setup.traffic.achievable > 0 else "no hit rate given: `ridgeline serve hygiene` finds it"

    def on(self, setup: Setup) -> Setup:
        return replace(setup, prefix=True, hit_rate=setup.traffic.achievable)


class Hygiene(_Switch):
    """Prompts in an order that reaches the achievable hit rate."""

    name, title = "hygiene", "Prompt order for the cache"

    def in_use(self, setup: Setup) -> bool:
        return 0 < setup.traffic.achievable <= setup.hit_rate and setup.traffic.achievable_hit_rate is not None

    def refused(self, setup: Setup, site: Site) -> str:
        if setup.traffic.achievable_hit_rate is None:
            return "no achievable hit rate given: `ridgeline serve hygiene` finds it"
        return "" if setup.prefix else "prefix caching is off"

    def on(self, setup: Setup) -> Setup:
        return replace(setup, hit_rate=setup.traffic.achievable)

    def off(self, setup: Setup) -> Setup:
        return replace(setup, hit_rate=setup.traffic.hit_rate)


class Chunked(_Switch):
    """Prompts in chunks that share their steps with decoding: no long prompt stops it."""

    name, title, field = "chunked", "Chunked prefill", "chunked"


class Speculative(_Switch):
    """Drafted tokens, verified in one pass."""

    name, title, field, quality = "speculative", "Speculative decoding", "speculative", SAME_DISTRIBUTION


class Disaggregated(_Switch):
    """Replicas for prefill and replicas for decode, at the price of moving caches and of whole replicas."""

    name, title, field = "disaggregated", "Prefill and decode apart", "disaggregated"

    def refused(self, setup: Setup, site: Site) -> str:
        return "" if setup.traffic.replicas > 1 else "one replica cannot be split: needs two"


class _Types(Lever):
    """Smaller elements of the weights or the cache."""

    quality = UNKNOWN
    what: ClassVar[str]
    bits: ClassVar[int]
    names: ClassVar[tuple[str, str]]

    def in_use(self, setup: Setup) -> bool:
        return 8 * float(dtype_bytes(getattr(setup.deployment, self.what)).base) <= self.bits + 1  # and its scales

    def refused(self, setup: Setup, site: Site) -> str:
        return ""

    def on(self, setup: Setup) -> Setup:
        return self._to(setup, self._chosen(setup.deployment))

    def off(self, setup: Setup) -> Setup:
        """One size up: 8 bits for a type of 4, 16 for one of 8."""
        return self._to(setup, "fp8" if self.bits < 8 else "bf16")

    def _chosen(self, deployment: Deployment) -> str:
        """The type of this size that the chip's matrix units take, else the one that is unpacked on the way in."""
        first, other = self.names
        return first if deployment.device.peak(first) is not None else other

    def _to(self, setup: Setup, dtype: str) -> Setup:
        if self.what == "weights":
            return with_types(setup, weights=dtype)
        return with_types(setup, kv=dtype, fused=fused(setup.deployment, dtype))


class Weights8(_Types):
    """Weights of 8 bits."""

    name, title, what, bits, names = "weights8", "8-bit weights", "weights", 8, ("fp8", "int8")


class Weights4(_Types):
    """Weights of 4 bits."""

    name, title, what, bits, names = "weights4", "4-bit weights", "weights", 4, ("fp4", "int4")


class Kv8(_Types):
    """A cache of 8 bits: more requests; read faster only by a fused kernel."""

    name, title, what, bits, names = "kv8", "8-bit cache", "kv", 8, ("fp8", "int8")


class Kv4(_Types):
    """A cache of 4 bits: more requests; read faster only by a fused kernel."""

    name, title, what, bits, names = "kv4", "4-bit cache", "kv", 4, ("fp4", "int4")


class Routed(Lever):
    """Easy queries go to a cheaper model."""

    name, title, quality = "routed", "Easy queries to less compute", UNKNOWN

    def in_use(self, setup: Setup) -> bool:
        return setup.easy > 0

    def refused(self, setup: Setup, site: Site) -> str:
        return "" if setup.traffic.routing is not None else "give routing.share and routing.cost"

    def on(self, setup: Setup) -> Setup:
        routing = setup.traffic.routing
        return setup if routing is None else replace(setup, easy=routing.share, easy_cost=routing.cost)

    def off(self, setup: Setup) -> Setup:
        return replace(setup, easy=0.0, easy_cost=1.0)


class SharedHeads(Lever):
    """Key-value heads that query heads share, or a latent: a choice of the design, priced against one head each."""

    name, title, quality = "shared_heads", "GQA or MLA, not MHA", RETRAIN

    def in_use(self, setup: Setup) -> bool:
        return shares(setup.deployment.spec)

    def refused(self, setup: Setup, site: Site) -> str:
        if any(isinstance(b, Attention) for kind in setup.deployment.spec.kinds for b in kind.mixers):
            return ""
        return "no plain attention in this model"

    def on(self, setup: Setup) -> Setup:
        return _with_spec(setup, grouped(setup.deployment.spec))

    def off(self, setup: Setup) -> Setup:
        return _with_spec(setup, one_each(setup.deployment.spec))


def _with_spec(setup: Setup, spec: ModelSpec) -> Setup:
    timed = None if setup.timed is None else replace(setup.timed, spec=spec)
    return replace(setup, deployment=replace(setup.deployment, spec=spec), timed=timed)


def fused(deployment: Deployment, dtype: str) -> bool:
    """Whether the engine's attention kernel reads a cache of that type itself on that chip, as ``levers.toml`` says.

    Elsewhere the cache is unpacked first, which has made decoding slower, not faster (llama.cpp issue 28454: 2.8
    times).
    """
    known = figures.read(DATA / "levers.toml")["fused"]
    return dtype in known.get(deployment.engine or "other", ()) and deployment.device.peak(dtype) is not None


def levers() -> tuple[Lever, ...]:
    """Every lever, in order."""
    return (
        Paged(), Prefix(), Hygiene(), Chunked(), Speculative(), Disaggregated(),
        Weights8(), Weights4(), Kv8(), Kv4(), Routed(), SharedHeads(),
    )  # fmt: skip
