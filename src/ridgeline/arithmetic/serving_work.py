"""FLOPs and bytes of serving kernels, and the sides that their measured surfaces are read with.

Plain NumPy on arrays; the fit (``scripts/fit_serving_surfaces.py``) and the lookups (`ridgeline.arithmetic.decode`)
share these functions, so that they cannot part. Bytes cross the memory bus once; queries and results have two bytes.
"""

import numpy as np

from ridgeline.arithmetic.surface_terms import ACT
from ridgeline.core.surfaces import Floats


def decode_work(
    batch: Floats, heads: Floats, kv_heads: Floats, seen: Floats, head_dim: Floats, kv_bytes: float
) -> tuple[Floats, Floats]:
    """FLOPs and bytes of one new token a sequence against ``seen`` cached keys and values: ``4*b*h*S*d``."""
    flops = 4 * batch * heads * seen * head_dim
    return flops, batch * head_dim * (2 * kv_heads * seen * kv_bytes + 2 * heads * ACT)


def latent_work(
    batch: Floats, heads: Floats, seen: Floats, rank: float, rope: float, kv_bytes: float
) -> tuple[Floats, Floats]:
    """FLOPs and bytes of one new token against ``seen`` cached latents that all heads read, projections absorbed.

    ``2*b*h*S*(2*rank + rope)`` (DeepSeek-V2, arXiv:2405.04434, section 2.1).
    """
    flops = 2 * batch * heads * seen * (2 * rank + rope)
    return flops, batch * ((rank + rope) * seen * kv_bytes + heads * (2 * rank + rope) * ACT)


def latent_prefill_work(seq: Floats, batch: Floats, heads: Floats, score: float, value: float) -> tuple[Floats, Floats]:
    """FLOPs and bytes of causal attention with scores ``score`` wide and values ``value`` wide, one key head a head."""
    pairs = seq * (seq + 1) / 2
    return 2 * batch * heads * pairs * (score + value), 2 * ACT * batch * seq * heads * (score + value)


def experts_hit(experts: Floats, top_k: Floats, tokens: Floats) -> Floats:
    """Distinct experts that ``tokens`` reach when each picks ``top_k`` at random: ``E*(1-(1-k/E)**b)``."""
    share = np.minimum(top_k / experts, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-experts * np.expm1(tokens * np.log1p(-share)), dtype=np.float64)


def expert_work(
    rows: Floats, hit: Floats, hidden: Floats, inter: Floats, weight_bytes: float, sides: float | Floats = 3.0
) -> tuple[Floats, Floats]:
    """FLOPs and bytes of ``rows`` (token, expert) pairs through the ``hit`` experts of one chip.

    An expert has ``sides`` matmuls (3 gated, 2 plain) of ``hidden x inter`` elements of ``weight_bytes``.
    """
    matrix = hidden * inter
    return 2 * sides * rows * matrix, hit * sides * matrix * weight_bytes + rows * (2 * hidden + 2 * inter) * ACT
