"""What the rules G120 to G126 look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from ridgeline.core.finding import Finding, Rule
from ridgeline.core.format import parenthesised, printable
from ridgeline.gate.canary.eviction import Window
from ridgeline.gate.canary.needles import Unplaced
from ridgeline.gate.canary.results import Counted
from ridgeline.gate.canary.serving import Kind, Remark

CODES = "G12"
SPREAD = 1.5  # longest over shortest, below which lengths tell nothing about what was cut


@dataclass(frozen=True)
class CanaryFacts:
    """``audits`` are the windows tried for each run, ``counted`` what the server said of each context, by run.

    ``placed`` counts needles with a position.
    """

    remarks: tuple[Remark, ...] = ()
    audits: Mapping[str, Sequence[Window]] = field(default_factory=dict)
    unplaced: tuple[Unplaced, ...] = ()
    placed: int = 0
    counted: Mapping[str, Mapping[str, Counted]] = field(default_factory=dict)


def plain(text: str) -> str:
    """Words from files, safe in a sentence."""
    return parenthesised(printable(text))


def said(facts: CanaryFacts, this: Rule, kind: Kind) -> list[Finding]:
    """A finding for every remark of a kind, with its place."""
    return [
        this.found(item.verdict, plain(f"{item.place}: {item.said}."), item.fix)
        for item in facts.remarks
        if item.kind is kind
    ]


@dataclass(frozen=True)
class Arrived:
    """The server's tokens over the estimate, median of the shortest and of the longest tenth of the contexts."""

    short: float
    long: float
    n: int

    @property
    def share(self) -> float:
        """What arrived of long prompts beside short ones; one where nothing was cut."""
        return self.long / self.short


def arrived(counted: Mapping[str, Counted]) -> Arrived | None:
    """None where the server counted no tokens, or all prompts are about as long."""
    known = sorted((item.length, item.tokens) for item in counted.values() if item.tokens and item.length)
    if not known or known[-1][0] < SPREAD * known[0][0]:
        return None
    tenth = max(1, len(known) // 10)
    shorter, longer = (median(tokens / length for length, tokens in part) for part in (known[:tenth], known[-tenth:]))
    return Arrived(shorter, longer, len(known))
