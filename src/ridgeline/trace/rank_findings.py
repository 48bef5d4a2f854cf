"""What the rules on ranks and devices share: findings for a late rank, low clocks, links and errors."""

from collections.abc import Iterable, Mapping

from ridgeline.core.finding import Cost, Finding, Rule, Verdict
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import GAPS
from ridgeline.trace.levels.l4 import RankSpread, RankState
from ridgeline.trace.levels.l4 import Verdict as RankVerdict

# Who reports the wait for a rank, by its verdict: each straggler, and the dearest rank of those held by their clock.
CARRIERS: Mapping[RankVerdict, str] = {
    "straggler": "T401", "throttled by heat": "T402", "at the power limit": "T403", "low clock": "T404",
}  # fmt: skip
SAME_WAIT = 0.5  # a cost below this share of a wait does not stand for it


def carrier(spread: RankSpread | None, label: str, wait_s: float) -> str:
    """The code of the finding whose cost is the wait for this rank; "" where there is none."""
    if spread is None:
        return ""
    for verdict, code in CARRIERS.items():
        ranks = spread.judged(verdict)
        named = ranks if verdict == "straggler" else ranks[:1]
        if any(rank.label == label and rank.cost_s >= max(SAME_WAIT * wait_s, 1e-9) for rank in named):
            return code
    return ""


def late_rank(facts: TraceFacts, this: Rule, spread: RankSpread, rank: RankState) -> Finding:
    """A straggler, with the wait that would end with it."""
    lost = _late_cost(spread, rank)
    step = _step(facts, spread)
    share = None
    if step is not None:
        share = derive(f"{lost.name}.share", "lost/step", "%", lost=lost, step=step)
        share = share.titled(f"Share of the step that waits for {rank.label}")
    where = f"is last in {rank.last} of {rank.calls} collectives" if rank.calls else "is the slowest"
    reason = f" It has {rank.reason}." if rank.reason else ""
    small = share is not None and this.holds(share)
    largest = max(rank.excess, key=lambda part: rank.excess[part], default="")
    host = f"what only {rank.label}'s host does"
    what = host if largest in GAPS or not largest else f"the clock of {rank.label} and its share of the work"
    return this.found(
        Verdict.PASS if small else Verdict.FAIL,
        f"{rank.label} {where}; the others wait {{{lost.name}}} per step for it.{reason}",
        f"Look at {what}; exchange the host if that changes nothing.",
        value=share, cost=facts.cost(lost), cites=(lost,) if step is None else (lost, step),
    )  # fmt: skip


def clock_findings(facts: TraceFacts, this: Rule, verdict: RankVerdict, what: str, fix: str) -> Iterable[Finding]:
    """One finding for all ranks of a verdict; a pass where clocks were sampled and none is low; else nothing."""
    spread = facts.l4
    if spread is None:
        return
    clocked = [rank for rank in spread.ranks if rank.device is not None and rank.device.clock_ratio is not None]
    found = sorted((rank for rank in clocked if rank.verdict == verdict), key=_ratio)
    if not found:
        if clocked:
            yield this.found(Verdict.PASS, f"No clock is held down by {what}.", "")
        return
    worst = found[0]
    value = leaf(f"{worst.label}.clock_ratio", 100 * _ratio(worst), "%", "measured", _samples(spread))
    value = value.titled(f"Clock of {worst.label} under load, of the best in the job")
    names = ", ".join(rank.label for rank in found[:8]) + (", ..." if len(found) > 8 else "")
    sentence = f"{len(found)} of {len(clocked)} chips ({names}) run slower under load: {worst.reason}."
    yield this.found(
        Verdict.PASS if this.holds(value) else Verdict.FAIL, sentence, fix, value=value,
        cost=_clock_cost(facts, spread, found),
    )  # fmt: skip


def _clock_cost(facts: TraceFacts, spread: RankSpread, found: list[RankState]) -> Cost:
    """What the job waits for these ranks where collectives tell, else the compute that the slowest clock costs."""
    late = max(found, key=lambda rank: rank.cost_s)
    if late.cost_s > 0:
        return facts.cost(_late_cost(spread, late))
    if spread.clock_s and spread.clock_rank in {rank.label for rank in found}:
        lost = leaf("ranks.clock_cost", spread.clock_s, "s", "measured", _samples(spread))
        note = "at most: as if all compute ran with the clock"
        return facts.cost(lost.titled("Compute lost to the slowest clock, per step", note))
    return Cost()


def link_finding(this: Rule, spread: RankSpread, rank: RankState) -> Finding:
    """A device whose link moves less than its neighbours'."""
    assert rank.device is not None
    name, ratio = rank.device.slow_link or ("", 1.0)
    value = leaf(f"{rank.label}.link_ratio", 100 * ratio, "%", "measured", _samples(spread))
    title = name.removesuffix("_mb_s").replace("_", " ")
    return this.found(
        Verdict.PASS if this.holds(value) else Verdict.WARN,
        f"{rank.label}: {title} moves {rank.device.links[name]:,.0f} MB/s, {ratio:.0%} of the median of its host.",
        f"Test the links of {rank.label}'s device and reset it.",
        value=value.titled(f"Rate of {rank.label}'s {title}, of its host's median"),
    )  # fmt: skip


def error_finding(this: Rule, spread: RankSpread, rank: RankState) -> Finding:
    """A device that counted errors; uncorrected ones and Xid events fail."""
    assert rank.device is not None
    errors = rank.device.errors
    value = leaf(f"{rank.label}.errors", sum(errors.values()), "1", "measured", _samples(spread))
    severe = any(name == "dbe_errors" or name.startswith("xid") for name in errors)
    text = ", ".join(f"{name.replace('_', ' ')} {count:g}" for name, count in errors.items())
    return this.found(
        Verdict.FAIL if severe else Verdict.WARN,
        f"{rank.label}'s device counted errors: {text}.",
        f"Drain the host of {rank.label} and test it." if severe else "Watch the counters; reset what grows.",
        value=value.titled(f"Errors of {rank.label}'s device"),
    )


def _ratio(rank: RankState) -> float:
    return rank.device.clock_ratio or 1.0 if rank.device is not None else 1.0


def _late_cost(spread: RankSpread, rank: RankState) -> Quantity:
    source = Source(spread.path or "the ranks", spread.basis)
    cost = leaf(f"{rank.label}.late_cost", rank.cost_s, "s", "measured", source)
    return cost.titled(f"Exposed wait for {rank.label} per step")


def _step(facts: TraceFacts, spread: RankSpread) -> Quantity | None:
    if spread.step_s is None:
        return facts.step
    source = Source(spread.path or "the ranks", spread.basis)
    return leaf("ranks.step", spread.step_s, "s", "measured", source).titled("Step of the slowest rank")


def _samples(spread: RankSpread) -> Source:
    return Source(spread.path or "samples of the devices", "samples of the devices")
