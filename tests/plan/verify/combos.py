"""The plans that are compiled once a test run, in one child process."""

from dataclasses import dataclass, field
from typing import Any

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.plan.job import Plan
from ridgeline.plan.verify.twin import Twin, twin

_WIDE = {"layers": 32, "d_model": 4096, "heads": 32, "kv_heads": 8, "vocab": 128256}
_EXPERTS = {"experts": 64, "top_k": 6, "expert_ff": 1408}
DENSE = model(Shape.model_validate(_WIDE | {"d_ff": 14336}))
TIED = model(Shape.model_validate(_WIDE | {"d_ff": 16384, "tied": True, "gated": False, "kv_heads": 32}))
MOE = model(Shape.model_validate(_WIDE | _EXPERTS))
SHARED = model(Shape.model_validate(_WIDE | _EXPERTS | {"d_ff": 8192, "dense_layers": 1, "shared_ff": 2816}))


@dataclass(frozen=True)
class Combo:
    """A plan and the model whose twin runs under it."""

    plan: dict[str, Any]
    spec: ModelSpec = field(default_factory=lambda: DENSE)
    micro_batches: int = 1

    def twin(self) -> Twin:
        """The twin."""
        return twin(self.spec, Plan.of(**self.plan), micro_batches=self.micro_batches)


COMBOS = {
    "DP": Combo({"dp": 2}),
    "ZeRO-1": Combo({"dp": 2, "zero": 1}, micro_batches=2),
    "FSDP": Combo({"dp": 2, "zero": 3}, micro_batches=2),
    "FSDP, tied table": Combo({"dp": 2, "zero": 3, "recompute": "selective"}, TIED),
    "HSDP": Combo({"dp": 4, "shard": 2, "zero": 3}),
    "TP": Combo({"tp": 2}),
    "TP+SP": Combo({"tp": 2, "sequence_parallel": 1}),
    "TP, full recompute": Combo({"tp": 2, "recompute": "full"}),
    "EP": Combo({"dp": 2, "ep": 2}, MOE),
    "EP+DP": Combo({"dp": 4, "ep": 2}, SHARED),
    "DP+TP": Combo({"dp": 2, "tp": 2}),
    "FSDP+TP+SP": Combo({"dp": 2, "zero": 3, "tp": 2, "sequence_parallel": 1}),
    "EP+FSDP+TP+SP": Combo({"dp": 4, "zero": 3, "tp": 2, "sequence_parallel": 1, "ep": 4}, MOE),
}
