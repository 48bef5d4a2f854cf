"""P213: does a checkpoint fit its cadence."""

from collections.abc import Iterable

from ridgeline.arithmetic.memory import training_state
from ridgeline.arithmetic.sharding import Sharding
from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive, given, renamed
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P213", "Checkpoints cost little of their cadence", threshold=2, unit="%",
      why="of the time between two: a blocking write of more is worth making asynchronous")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Bytes of a checkpoint (weights and optimizer state of the whole model) over the bandwidth of all writers, against
    the time between two. Without a bandwidth: the bandwidth that the cadence needs.

    ## Why it matters
    A blocking write is time in which every chip waits. One that is not blocking must still end before the next begins,
    or the queue grows until the host's memory is full.

    ## How to confirm
    Write one checkpoint of the pilot's shards from all its hosts at once and read the slowest.

    ## What to do, cheapest first
    1. Copy to host memory and write from there while training goes on.
    2. Fewer replicas that write; each shard once.
    3. A longer cadence, weighed against the work that a crash loses.

    ## Sources
    Mohan et al. 2021, CheckFreq (USENIX FAST); the worked numbers of running the run.
    """
    table = facts.proposal.file.checkpoint
    size = _size(facts)
    if table is None:
        yield this.found(
            Verdict.UNKNOWN, f"A checkpoint is {{{size.name}}}; its cadence and the store's bandwidth are not given.",
            "Give checkpoint.every and checkpoint.bandwidth.", cites=(size,),
        )  # fmt: skip
        return
    every = given("checkpoint.every", table.every, "s", "checkpoint.every").titled("Time between checkpoints")
    if table.bandwidth is None:
        assert this.threshold is not None
        inputs = {"bytes": size, "every": every, "share": this.threshold}
        needed = derive("checkpoint.needed", "bytes/(every*share)", "B/s", **inputs)
        needed = needed.titled("Bandwidth that the cadence needs")
        yield this.found(
            Verdict.UNKNOWN,
            f"A checkpoint of {{{size.name}}} every {{{every.name}}} needs {{{needed.name}}} from all writers.",
            "Ask for the store's write bandwidth from all hosts at once.", cites=(size, every, needed),
        )  # fmt: skip
        return
    rate = given("checkpoint.bandwidth", table.bandwidth, "B/s", "checkpoint.bandwidth").titled("Write bandwidth")
    write = derive("checkpoint.write", "bytes/rate", "s", bytes=size, rate=rate).titled("Time to write a checkpoint")
    share = derive("checkpoint.share", "write/every", "%", write=write, every=every).titled("Writing over the cadence")
    yield _verdict(facts, this, (size, rate, write, every), share)


def _verdict(facts: ReviewFacts, this: Rule, cites: tuple[Quantity, ...], share: Quantity) -> Finding:
    size, _, write, every = cites
    said = f"A checkpoint of {{{size.name}}} takes {{{write.name}}} to write every {{{every.name}}}: {{{share.name}|2}}"
    table = facts.proposal.file.checkpoint
    assert table is not None
    if float(share.value) >= 100:
        return this.found(
            Verdict.FAIL, f"{said}; the next begins before it ends.", "Write less often, or to a faster store.",
            value=share, cites=cites,
        )  # fmt: skip
    if not table.blocking:
        return this.found(Verdict.PASS, f"{said} of the time, beside training.", "", value=share, cites=cites)
    if this.holds(share):
        return this.found(Verdict.PASS, f"{said} of the time, while training waits.", "", value=share, cites=cites)
    inputs = {"step": facts.step, "write": write, "every": every}
    lost = derive("checkpoint.lost", "step*write/every", "s", **inputs).titled("Checkpoint writing, a step's share")
    fix = "Copy the state to host memory and write it while training goes on."
    return this.found(
        Verdict.WARN, f"{said} of the time, while training waits.", fix, value=share, cost=facts.lost(lost), cites=cites
    )  # fmt: skip


def _size(facts: ReviewFacts) -> Quantity:
    whole = training_state(facts.spec, Sharding.of(), optimizer=facts.proposal.file.optimizer)
    found = derive("state", "weights + optimizer", "B", weights=whole.weights, optimizer=whole.optimizer)
    (renamed_,) = renamed(
        [found], lambda name: f"checkpoint.{name}" if name.startswith(("memory", "state", "plan")) else name
    )
    return renamed_.titled("A checkpoint: weights and optimizer state")
