"""S303: are the tools in the same order every time."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, rule
from ridgeline.serve.hygiene.facts import Hygiene, judge


@rule("S303", "Tools keep their order", threshold=5, unit="%",
      why="one prompt token in twenty computed again for one line of code is worth a release")  # fmt: skip
def check(facts: Hygiene, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Requests whose tools are the same set in another order.

    ## Why it matters
    Tools stand first in the prompt, so one exchanged pair leaves nothing to find. Maps without an order of their
    own (a hash map of servers, tools that register as they answer) do this on every start.

    ## How to confirm
    Log the names of the tools of two requests, in order.

    ## What to do, cheapest first
    1. Sort the tools by name before sending.
    2. Register them in a fixed order.

    ## Sources
    openai/codex 2611: tools out of a hash map, hit rates below 1%.
    """
    yield from judge(facts, this, ("tool_order",), "Sort the tools by name before sending.")
