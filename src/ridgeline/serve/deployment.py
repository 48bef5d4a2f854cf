"""A deployment: one model on one replica of an engine, and how it is spread over the replica's chips.

A replica is ``pp`` stages; a stage is ``dp_attention`` groups of ``tp`` chips. Attention weights and caches are split
over ``tp`` and copied over ``dp_attention``; experts are split over the whole stage, ``ep`` ways by expert and the rest
inside each expert. Key-value heads are copied where ``tp`` exceeds them, and a latent (MLA) is copied to every chip.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.kv import FORMATS
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLA, Attention, ModelSpec, MoE
from ridgeline.core.device import Device
from ridgeline.core.errors import InputError, located
from ridgeline.core.quantity import Quantity, Source, leaf

DEAREST = 10_000  # dollars per chip-hour: more is an error of typing
ENGINES = ("vllm", "sglang", "trtllm")


@dataclass(frozen=True)
class Deployment:
    """``weights`` and ``kv`` are element types; ``engine`` may be empty where it does not matter.

    Raises `InputError` for sizes below one, an ``ep`` that does not divide the stage or has no experts to spread, more
    stages than layers, chips that do not divide the heads, or an unknown type or engine.
    """

    spec: ModelSpec
    device: Device
    tp: int = 1
    pp: int = 1
    dp_attention: int = 1
    ep: int = 1
    weights: str = "bf16"
    kv: str = "bf16"
    engine: str = ""

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dp_attention", "ep"):
            if getattr(self, name) < 1:
                raise InputError.expected("at least 1", getattr(self, name), where=name)
        if self.stage % self.ep:
            raise InputError.expected(f"a divisor of the {self.stage} chips of a stage", self.ep, where="ep")
        if self.pp > len(self.spec.pattern):
            raise InputError.expected(f"at most {len(self.spec.pattern)} stages, one layer each", self.pp, where="pp")
        with located("weights"):
            dtype_bytes(self.weights)
        if self.kv not in FORMATS:
            raise InputError.expected(f"one of {', '.join(FORMATS)}", self.kv, where="kv")
        if self.engine and self.engine not in ENGINES:
            raise InputError.expected(f"one of {', '.join(ENGINES)}", self.engine, where="engine")
        for heads in {b.heads for k in self.spec.kinds for b in k.mixers if isinstance(b, Attention | MLA)}:
            if heads % self.tp:
                raise InputError.expected(
                    f"a divisor of {heads} attention heads", self.tp, where="tp", hint=_tp_of(heads)
                )
        if self.ep > 1 and not self.is_moe:
            raise InputError.expected("1 for a model without experts", self.ep, where="ep", hint="leave ep out")

    @property
    def stage(self) -> int:
        """Chips of one pipeline stage."""
        return self.tp * self.dp_attention

    @property
    def chips(self) -> int:
        """Chips of the replica."""
        return self.stage * self.pp

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes to experts."""
        return any(isinstance(block, MoE) for kind in self.spec.kinds for block in kind.ffns)


def _tp_of(heads: int) -> str:
    """The sizes that divide the heads, and what to do with the other chips."""
    fit = ", ".join(str(size) for size in range(1, heads + 1) if heads % size == 0)
    return f"tp may be {fit}; more chips take stages (pp), groups (dp_attention) or a replica of their own"


def longest(spec: ModelSpec) -> Quantity | None:
    """``model.max_context`` (token), the most positions that the configuration states; None where it states none."""
    if spec.max_context is None:
        return None
    source = Source(f"model {spec.name}", "its configuration")
    found = leaf("model.max_context", spec.max_context, "token", "specified", source)
    return found.titled("Longest context of the model")
