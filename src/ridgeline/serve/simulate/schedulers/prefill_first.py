"""vLLM before V1: prompts first and whole; a step with prompts has no decodes."""

from ridgeline.serve.simulate.engine.policy import Scheduler

PREFILL_FIRST = Scheduler(
    "prefill-first",
    chunked=False,
    mixed=False,
    about="whole prompts first: decodes wait while prompts fit",
)
