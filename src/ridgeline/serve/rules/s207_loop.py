"""S207: is the load sent as users send it."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.simulate.facts import Simulated

_BENCHMARK = "vLLM benchmark"


@rule("S207", "The load arrives as users send it")
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether arrivals depend on answers: a closed loop (`concurrency`), or start times of a benchmark's result, which
    follow its answers where the client had a limit on concurrency.

    ## Why it matters
    Clients that wait send less when the engine is slow. Overload then shows as fewer requests, not as longer waits,
    and the latencies look good at any load. They may not be compared with those of an open loop at a rate.

    ## How to confirm
    Send the throughput of the closed loop as a rate (`--rate`): the waits are those that users would see.

    ## What to do, cheapest first
    1. Quote closed-loop figures as throughput at a concurrency, open-loop ones as latency at a rate.
    2. Take a rate or a concurrency in a benchmark, not a rate with a low limit on concurrency.

    ## Sources
    vllm-project/vllm 45502: a limit on concurrency releases bursts above the rate that was asked for.
    """
    read = facts.study.made.requests
    if facts.result.workload.closed:
        clients = facts.measured("simulate.clients", facts.result.workload.concurrency, "1", "Clients")
        rate = facts.rates["requests_per_s"]
        yield this.found(
            Verdict.WARN,
            "{simulate.clients} clients wait for their answers and so send {simulate.requests_per_s}: the latencies "
            "hold at this concurrency, not at a rate.",
            "Compare with --rate at the same throughput before promising a latency.",
            cites=(clients, rate),
        )
    elif read is not None and read.format == _BENCHMARK:
        yield this.found(
            Verdict.WARN,
            "The arrivals are the start times of a benchmark: with a limit on concurrency they follow its answers.",
            "Run the benchmark without a limit on concurrency, or give --rate.",
        )
    else:
        yield this.found(Verdict.PASS, "Requests are sent whatever the engine does.", "")
