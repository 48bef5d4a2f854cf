"""vLLM V1: one token budget per step; running requests first, then the queue; prompts are cut to what is left."""

from ridgeline.serve.simulate.engine.policy import Scheduler

VLLM = Scheduler(
    "vllm",
    chunked=True,
    mixed=True,
    about="chunked prefill: prompts fill what the decodes leave of the token budget",
)
