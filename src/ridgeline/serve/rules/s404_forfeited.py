"""S404: how much of the prefix cache the prompts forfeit."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.serve.levers.facts import LeverFacts


@rule("S404", "The prefix cache is not forfeited", threshold=5, unit="%",
      why="a twentieth of the input tokens: below it the order of the prompt is not worth a change")  # fmt: skip
def check(facts: LeverFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The hit rate that the prompts allow less the one that is achieved.

    ## Why it matters
    What precedes the first differing byte can be cached, what follows cannot. One timestamp near the top forfeits all
    of it: saving = hit rate x discount.

    ## How to confirm
    `ridgeline serve hygiene requests.jsonl` names the byte, and the hit rate without it.

    ## What to do, cheapest first
    1. Move what changes (time, session, user) behind what does not.
    2. Sort keys and tools.
    3. Route requests of one prefix to one replica.

    ## Sources
    joshuadavidthomas/opencode-agent-memory, issue 29: 8% hit, $26.59 where $2 to $3 were due.
    """
    traffic = facts.ledger.setup.traffic
    if traffic.achievable_hit_rate is None:
        yield this.found(
            Verdict.UNKNOWN, "Nobody has said which hit rate the prompts allow.",
            "Run `ridgeline serve hygiene` on a request log and give achievable_hit_rate.",
        )  # fmt: skip
        return
    lost = derive(
        "levers.hygiene.lost", "achievable - achieved", "%",
        achievable=given("hit_rate.achievable", 100 * traffic.achievable, "%", "traffic, achievable_hit_rate"),
        achieved=given("hit_rate.achieved", 100 * facts.ledger.setup.hit_rate, "%", "traffic, hit_rate"),
    ).titled("Share of the input tokens that could be cached and is not")  # fmt: skip
    saved = facts.alone(facts.ledger.row("hygiene"))
    holds = this.holds(lost)
    worth = "" if saved is None else f", worth {{{saved.name}}}"
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{{{lost.name}}} of the input tokens could be found in the cache and are not{worth}.",
        "" if holds else "Run `ridgeline serve hygiene` on the log and move what changes to the end.",
        value=lost, cites=() if saved is None else (saved,),
    )  # fmt: skip
