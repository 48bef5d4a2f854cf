"""Deployments that the tests of this folder share."""

from typing import Any

from tests.arithmetic.models import shaped

from ridgeline.arithmetic.mixers import GatedDeltaNet
from ridgeline.arithmetic.named import find_model
from ridgeline.arithmetic.spec import MLA, Attention, Layer, ModelSpec
from ridgeline.core.catalog import device
from ridgeline.serve.capacity.capacity import Capacity, capacity
from ridgeline.serve.capacity.settings import Settings
from ridgeline.serve.deployment import Deployment

SMALL: dict[str, Any] = {"layers": 8, "d_model": 512, "d_ff": 2048, "heads": 8, "kv_heads": 4, "vocab": 32_000}


def mixed(*mixers: Any) -> ModelSpec:
    """Eight layers with the given mixers in turn."""
    base = shaped(**SMALL)
    layer = base.kinds[0]
    kinds = tuple(Layer(mixers=(mixer,), ffns=layer.ffns, norms=layer.norms) for mixer in mixers)
    return base.model_copy(update={"kinds": kinds, "pattern": tuple(i % len(kinds) for i in range(8))})


def attention(**other: Any) -> Attention:
    """Grouped-query attention of the small model."""
    sizes = {"d_model": 512, "heads": 8, "kv_heads": 4, "head_dim": 64, "v_head_dim": 64}
    return Attention.model_validate(sizes | other)


SPECS: dict[str, ModelSpec] = {
    "full": mixed(attention()),
    "windows": mixed(attention(window=1000), attention()),
    "only windows": mixed(attention(window=1000)),
    "states": mixed(GatedDeltaNet(512, 4, 8, 64, 64, 4).mixer(), attention()),
    "latents": mixed(MLA(d_model=512, heads=8, kv_rank=128, qk_nope=32, qk_rope=16, v_head_dim=32)),
}


def small(name: str = "full", context: int = 4096, settings: Settings | None = None, **sizes: Any) -> Capacity:
    """The capacity of one of the small models on H100s."""
    return capacity(Deployment(SPECS[name], device("H100"), **sizes), context, settings)


def llama(context: int = 8192, settings: Settings | None = None, **sizes: Any) -> Capacity:
    """Llama 3 70B on eight H100s, tensor parallel unless said otherwise."""
    made = Deployment(find_model("llama-3-70b")[0], device("H100"), **({"tp": 8} | sizes))
    return capacity(made, context, settings)
