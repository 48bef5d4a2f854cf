"""S007: does the cache's type come with a fast kernel."""

from collections.abc import Iterable

from ridgeline.arithmetic.kv import DS_MLA
from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.capacity.facts import CapacityFacts


@rule("S007", "The cache's type has a fast kernel")
def check(facts: CapacityFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether the element type of the cache is one that the device's matmul units read (8-bit float), or one that decode
    kernels must unpack first (4 bits, 8-bit integers).

    ## Why it matters
    Fewer bits always hold more requests; they speed decoding up only where the attention kernel reads them directly.
    Without such a kernel decoding has been measured to become 2.8 times slower, and long answers to go wrong.

    ## How to confirm
    Time a decode step at a long context with both types, and score an evaluation with long answers.

    ## What to do, cheapest first
    1. Measure before the change is made: speed at the context, and quality.
    2. Use fp8, which most engines have kernels for.
    3. Keep 16 bits, and get the room from 8-bit weights.

    ## Sources
    ggml-org/llama.cpp, issue 28454; vllm-project/vllm, issue 13133.
    """
    dtype, device = facts.capacity.deployment.kv, facts.capacity.deployment.device
    if dtype in ("bf16", "fp16", "fp32"):
        yield this.found(Verdict.PASS, f"The cache is kept in {dtype}, which every kernel reads.", "")
    elif dtype in ("fp8", DS_MLA) and device.peak("fp8") is not None:
        text = f"{device.name} computes in fp8, so a kernel may read the cache as it is; quality is not checked here."
        yield this.found(Verdict.PASS, text, "")
    else:
        yield this.found(
            Verdict.WARN, f"A cache in {dtype} is unpacked before {device.name} computes: more room, not more speed.",
            "Time a decode step and score long answers before relying on it.",
        )  # fmt: skip
