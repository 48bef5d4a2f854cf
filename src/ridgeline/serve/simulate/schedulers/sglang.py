"""SGLang-like: prompts first, in chunks; a step with prompt tokens has no decodes."""

from ridgeline.serve.simulate.engine.policy import Scheduler

SGLANG = Scheduler(
    "sglang",
    chunked=True,
    mixed=False,
    about="prefill first, in chunks: decodes wait while prompts fit",
)
