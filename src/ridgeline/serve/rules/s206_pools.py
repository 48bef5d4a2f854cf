"""S206: do prefill and decode workers work as hard as each other."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.serve.simulate.facts import Simulated


@rule("S206", "Prefill and decode workers are balanced", threshold=2.5, unit="1",
      why="whole workers cannot always be split evenly; above 2.5 one fewer would do")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of the time in which the busier pool's workers run steps, over that of the other pool. Disaggregated
    pools only; a pool without a worker is refused before the run.

    ## Why it matters
    The idle pool is rented too. Its chips would serve more in the other.

    ## How to confirm
    Move one worker from one pool to the other and compare the goodput of both runs.

    ## What to do, cheapest first
    1. Change the split of workers under [engine.pools].
    2. Serve both on the same workers with chunked prefill where the split cannot be made even.
    3. Use chips of another kind for the pool that is bound by memory.

    ## Sources
    Zhong et al., DistServe (OSDI 2024): placement by goodput per chip.
    """
    pools = facts.study.engine.pools
    if pools is None:
        return
    seconds = facts.result.totals.busy_s / max(facts.result.makespan_s, 1e-9)
    shares = {
        "prefill": 100 * float(seconds[: pools.prefill].mean()),
        "decode": 100 * float(seconds[pools.prefill :].mean()),
    }
    busy = {name: facts.measured(f"simulate.busy.{name}", share, "%", f"{name.title()} workers in steps")
            for name, share in shares.items()}  # fmt: skip
    low, high = sorted(busy.values(), key=lambda item: float(item.value))
    if not float(low.value) > 0:
        return
    ratio = derive("simulate.pool_ratio", "high/low", "1", high=high, low=low).titled("Busier pool over the other")
    good = this.holds(ratio)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        "Prefill workers run steps {simulate.busy.prefill} of the time, decode workers {simulate.busy.decode}.",
        "" if good else "Move a worker to the busier pool and compare goodput.",
        value=ratio, cites=tuple(busy.values()),
    )  # fmt: skip
