"""G120: no window is on a retrieval path."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.gate.canary.facts import CanaryFacts, said
from ridgeline.gate.canary.serving import Kind


@rule("G120", "No window is on a retrieval path")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Serving arguments (vLLM, SGLang) and the model's config.json: sliding windows and attention chunks, which layers
    have them, and whether prompts may be longer. A window on every layer that prompts exceed fails; on some layers it
    warns; where the longest prompt or the model's own file is not given, or no canary context is longer, it is unknown.

    ## Why it matters
    A needle beyond the window of every layer is out of reach, whatever the precision. Both runs then lose it alike, and
    their difference shows nothing.

    ## How to confirm
    The place that the finding names. Ask one canary context that is longer than the window, with a needle at its start.

    ## What to do, cheapest first
    1. Cap the prompt length at the window, or route long prompts to a model with full attention.
    2. Give the model's config.json beside the server's arguments: `--serving` may be repeated.
    3. Ask the canary at lengths beyond the window, and ship on every depth.

    ## Sources
    Beltagy, Peters and Cohan, Longformer, arXiv:2004.05150; Jiang et al., Mistral 7B, arXiv:2310.06825.
    """
    return said(facts, this, Kind.WINDOW) if isinstance(facts, CanaryFacts) else []
