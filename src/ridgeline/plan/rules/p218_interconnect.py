"""P218: is the interconnect known, and what if it is slower."""

from collections.abc import Iterable
from dataclasses import replace

from ridgeline.core.catalog import constant
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P218", "The interconnect is known", threshold=2, unit="%",
      why="MFU points at half the bandwidth: below them the network does not decide the step")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether the scale-out network was named or is the usual one of such chips, and what the step model loses where it
    has half of that bandwidth. A network name that nothing knows is refused when it is read.

    ## Why it matters
    Ports, rails and oversubscription differ between sites with the same chips. Gradient and pipeline traffic crosses
    that network in every step.

    ## How to confirm
    Run an all-reduce of one gigabyte over two nodes, and over all of them.

    ## What to do, cheapest first
    1. Name the network: `[cluster] network`.
    2. Measure it before the launch, with all nodes at once.

    ## Sources
    core/data/clusters.toml and core/data/links.toml.
    """
    cluster, named = facts.cluster, bool(facts.proposal.file.cluster.network)
    if cluster.chips <= cluster.node_size:
        yield this.found(Verdict.PASS, f"All {cluster.chips:,} chips are in one scale-up domain.", "")
        return
    slower = constant("review.slow_network")
    speed = given("network.bandwidth", cluster.network_bytes_per_s, "B/s/chip", cluster.network)
    speed = speed.titled("Bandwidth of a chip's port")
    half = replace(cluster, network_bytes_per_s=cluster.network_bytes_per_s * float(slower.value))
    points = derive("network.lost", "0 - change", "%", change=facts.instead("network.half", cluster=half))
    points = points.titled("MFU points lost where the network is slower")
    calm = this.holds(points)
    verdict = Verdict.PASS if named else Verdict.WARN if calm else Verdict.UNKNOWN
    what = f"{cluster.network} at {{{speed.name}}}"
    start = f"The network is {what}" if named else f"Nobody named the network; {what} is assumed"
    yield this.found(
        verdict, f"{start}. At {{{slower.name}}} of that, the design loses {{{points.name}|2}} of peak.",
        "" if named else "Name the network, and measure it with all nodes at once.",
        value=points, cost=Cost() if named or calm else facts.points(points), cites=(speed, slower),
    )  # fmt: skip
