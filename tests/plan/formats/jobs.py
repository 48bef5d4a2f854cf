"""Jobs that several tests share, and what a file can hold of one."""

from dataclasses import replace
from typing import Any

from tests.arithmetic.models import shaped

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.plan.described import described
from ridgeline.plan.formats._common import Known
from ridgeline.plan.job import Job, Plan

LLAMA70 = shaped(
    name="llama-3-70b", layers=80, d_model=8192, d_ff=28672, heads=64, kv_heads=8, vocab=128256, context=8192
)
MIXTRAL = shaped(
    name="mixtral", layers=32, d_model=4096, heads=32, kv_heads=8, vocab=32000, experts=8, top_k=2, expert_ff=14336
)
MIXED = shaped(
    name="mixed", layers=24, d_model=2048, d_ff=8192, heads=16, kv_heads=4, vocab=64000, tied=True, qk_norm=True,
    qkv_bias=True, experts=64, top_k=6, expert_ff=1024, shared_ff=2048, dense_layers=2, window=1024, full_every=4,
)  # fmt: skip
GPT3 = read_config(
    {"model_type": "gpt2", "n_embd": 12288, "n_layer": 96, "n_head": 96, "vocab_size": 50257, "n_positions": 2048},
    name="gpt3",
)


def job(model: ModelSpec | None = LLAMA70, *, sequences: int = 512, seq: int = 8192, **columns: Any) -> Job:
    """A job of those columns of a plan; fields of the job may be among them."""
    own = {name: columns.pop(name) for name in ("steps", "dtype", "gradients", "optimizer") if name in columns}
    return Job(Plan.of(**columns), sequences, seq, model=model, device="H100-SXM-80GB", node_size=8, **own)


def beside(made: Job) -> Known:
    """What a user says beside a file: the chips and the model."""
    return Known(chips=made.plan.chips, model=made.model, device=made.device, node_size=made.node_size)


def same(found: Job, wanted: Job) -> bool:
    """Whether two jobs are equal; models are compared by what they compute."""
    return _bare(found) == _bare(wanted)


def _bare(made: Job) -> tuple[Job, Any]:
    known = None if made.model is None else described(made.model)
    model: Any = made.model
    if known is not None:
        model = (known[0].model_copy(update={"name": "", "context": None}), known[1])
    return replace(made, model=None), model
