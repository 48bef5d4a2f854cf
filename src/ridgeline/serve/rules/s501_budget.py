"""S501: does any configuration meet the serving budget."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Source, leaf
from ridgeline.serve.codesign.evaluate import NAMES
from ridgeline.serve.codesign.facts import Designed
from ridgeline.serve.codesign.measured import shares


@rule("S501", "A configuration meets the serving budget", threshold=100.0, unit="%",
      why="a limit that is used up beyond 100% is missed")  # fmt: skip
def check(facts: Designed, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The limit that the best configuration uses up most: turn, TTFT, TPOT, price or memory. Where none keeps all of them,
    the one that misses by least.

    ## Why it matters
    Shape and size are fixed before training. A model that misses its latency cannot be a product, whatever its loss.

    ## How to confirm
    `ridgeline serve latency` of the configuration, and a load test of a random-weight model of that shape.

    ## What to do, cheapest first
    1. Relax the limit that binds, or shorten the prompt.
    2. 8-bit weights and cache, once a gate has passed them.
    3. More chips a replica, or faster ones.
    4. A smaller model: see the front.

    ## Sources
    The roofline and step model of `ridgeline serve latency`.
    """
    seen = facts.walk.measured
    used = (seen.stress if seen else facts.winner.stress) if facts.winner else facts.nearest
    worst = max(used, key=lambda name: used[name])
    name, source = "codesign.used", Source("step model" if not facts.blind else "roofline", "the limit that is nearest")
    value = leaf(name, min(1e6, 100 * used[worst]), "%", "measured", source).titled("Largest share of a limit used up")
    if facts.winner is None:
        others = shares(used, NAMES)
        text = f"No configuration meets the budget. Nearest is {facts.nearest_one.label}: {others}."
        fix = f"Relax {NAMES[worst]}, use more chips, or widen the grid."
        yield this.found(Verdict.FAIL, text, fix, value=value)
        return
    if facts.blind:
        text = f"By the roofline alone {facts.winner.label} meets the budget; no measured operation says so."
        fix = "Give the device's missing figures in a TOML file."
        yield this.found(Verdict.UNKNOWN, text, fix, value=value)
        return
    text = f"{facts.winner.label} keeps every limit; {NAMES[worst]} is nearest, with {{{name}}} used up."
    yield this.found(Verdict.PASS, text, "", value=value)
