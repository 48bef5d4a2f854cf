"""T009: does the run claim more than its hardware can do."""

from collections.abc import Iterable, Iterator

from ridgeline.core.device import DTYPES
from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import value
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.context import RunContext
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l1 import Row
from ridgeline.trace.losses import link_bytes_per_s, shown

_IN_SWITCH = 2.0  # a switch that reduces or multicasts takes up to half of what a ring sends
_NAMED = 3  # conventions that a sentence lists


@rule("T009", "Nothing runs faster than its hardware", threshold=100, unit="%",
      why="a share of a peak cannot be larger: what is above it comes from a wrong input")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The MFU, reported and recomputed from the step, against 100%; and the bus bandwidth of every kind of collective
    against twice the scale-up link of the device (a switch that reduces halves what a chip sends). Above it the finding
    names what would bring the number down: the peak of a narrower data type, a convention that counts fewer FLOPs, or
    the factor by which batch, chips or step must be off.

    ## Why it matters
    An impossible number means that model, batch, step or machine of the comparison is wrong. Every figure that is
    derived from it, each cause's points included, is wrong with it.

    ## How to confirm
    Count tokens in the data loader and chips in the scheduler. Time steps with a wait for the device at the end. Read
    the device's name in the trace.

    ## What to do, cheapest first
    1. Name the data type of the matmuls (`machine.dtype`) and the device that the job ran on (`machine.chips`).
    2. Give `batch.sequences` for all chips together, and once: accumulation is part of it, replicas are not added.
    3. Count the causal mask as the convention says (`mfu.convention`): half of the score FLOPs may not be run.

    ## Sources
    The peaks and links in `core/data/accelerators`; bus bandwidth after the definition of nccl-tests.
    """
    yield _mfu(facts, this)
    yield from _wires(facts, this)


def _mfu(facts: TraceFacts, this: Rule) -> Finding:
    known = list(_shares(facts))
    if not known:
        fix = "Give model, machine, batch and observed.step in run.toml, or mfu.reported."
        return this.found(Verdict.UNKNOWN, "No MFU is known that could be above the peak.", fix)
    worst = max(known, key=lambda share: float(share.value))
    if this.holds(worst):
        return this.found(Verdict.PASS, f"The MFU, {{{worst.name}}}, is below the peak.", "", value=worst)
    ways = [*_peaks(facts.context, worst), *_conventions(facts)]
    factor = derive("audit.too_fast", "mfu/whole", "", mfu=worst, whole=leaf("whole", 100.0, "%", "specified", _WHOLE))
    said = "".join(f"; {text} gives {{{share.name}}}" for text, share in ways)
    sentence = (
        f"An MFU of {{{worst.name}}} cannot be. Batch, chips or step are off by {{{factor.name}}} or more, or the "
        f"device is another one{said}."
    )
    fix = "Check machine.chips and machine.dtype, then batch.sequences and observed.step, each at its source."
    cites = (factor.titled("Factor to the peak"), *(share for _, share in ways))
    return this.found(Verdict.FAIL, sentence, fix, value=worst, cites=cites)


_WHOLE = Source("definition", "all of the peak")


def _shares(facts: TraceFacts) -> Iterator[Quantity]:
    """The MFU as reported, and as the step gives it."""
    context = facts.context
    if context.reported is not None:
        yield context.reported
    if context.mfu is not None:
        yield context.mfu
    elif context.ideal is not None and facts.step is not None:
        yield derive("audit.mfu", "ideal/step", "%", ideal=context.ideal, step=facts.step).titled("MFU of the step")


def _peaks(context: RunContext, share: Quantity) -> Iterator[tuple[str, Quantity]]:
    """The dense peaks of other data types over which the share would be possible."""
    if context.device is None or context.peak is None:
        return
    for dtype in DTYPES:
        peak = context.device.peaks.get(dtype)
        if peak is None or float(peak.base) <= float(context.peak.base):
            continue
        found = derive(f"audit.over_{dtype}", "mfu*peak/other", "%", mfu=share, peak=context.peak, other=peak)
        if float(found.value) <= 100:
            yield f"the {dtype} peak", found.titled(f"MFU over the {dtype} peak")
            return


def _conventions(facts: TraceFacts) -> Iterator[tuple[str, Quantity]]:
    """The conventions that count so few FLOPs that the step is possible, largest first, one of each size."""
    readings = facts.audit.readings if facts.audit else ()
    able = [r for r in readings if float(r.mfu.value) <= 100 and r.denominator != "sparse" and not r.hardware]
    sizes = {f"{float(r.mfu.value):.1f}": r for r in sorted(able, key=lambda r: -float(r.mfu.value))}
    for reading in list(sizes.values())[:_NAMED]:
        yield f"counting as {reading.title}", reading.mfu


def _wires(facts: TraceFacts, this: Rule) -> Iterator[Finding]:
    """The collective that is furthest above the link, if any is."""
    link, rows = link_bytes_per_s(facts), facts.l1.rows if facts.l1 else ()
    rated = [(rate, row) for row in rows if (rate := row.bus_bytes_per_s) is not None]
    if not link or not rated:
        return
    rate, row = max(rated, key=lambda pair: pair[0])
    share = leaf("audit.bus_share", 100 * rate / (_IN_SWITCH * link), "%", "measured", Source("the trace", row.title))
    if not this.holds(share):
        yield _too_fast(this, row, (rate, link), share.titled("Bus bandwidth over what the link can carry"))


def _too_fast(this: Rule, row: Row, rates: tuple[float, float], share: Quantity) -> Finding:
    rate, link = (value(each, "B/s") for each in rates)
    return this.found(
        Verdict.FAIL,
        f"{shown(row.title)} moves {rate} over a link of {link}, {{{share.name}}} of what it can carry: the device is "
        "another one, the group is smaller than the trace says, or its size counts all ranks.",
        "Compare machine.chips with the device in the trace, and the size with the tensor in the code.",
        value=share,
    )
