"""Models and clusters that the tests of the step model share."""

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec

GPT_22B = {"layers": 48, "d_model": 6144, "heads": 64}
GPT_175B = {"layers": 96, "d_model": 12288, "heads": 96}
GPT_530B = {"layers": 105, "d_model": 20480, "heads": 128}
GPT_1T = {"layers": 128, "d_model": 25600, "heads": 160}


def gpt(layers: int, d_model: int, heads: int) -> ModelSpec:
    """A GPT with 4h wide layers and one table, as in Korthikanti et al."""
    shape = {"layers": layers, "d_model": d_model, "heads": heads, "d_ff": 4 * d_model, "vocab": 51200}
    return model(Shape.model_validate(shape | {"gated": False, "tied": True}))


def llama_70b(**changes: int) -> ModelSpec:
    """Llama 3 70B, or with other sizes."""
    shape = {"layers": 80, "d_model": 8192, "d_ff": 28672, "heads": 64, "kv_heads": 8, "vocab": 128256}
    return model(Shape.model_validate(shape | changes))


def mixture() -> ModelSpec:
    """Thirty billion parameters in 128 experts of which a token uses eight."""
    shape = {"layers": 48, "d_model": 2048, "heads": 32, "kv_heads": 4, "head_dim": 128, "vocab": 151936}
    return model(Shape.model_validate(shape | {"experts": 128, "top_k": 8, "expert_ff": 768}))
