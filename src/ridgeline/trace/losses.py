"""Findings on time lost per step: the seconds, their share of the step, the verdict and the cost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ridgeline.core.finding import Cost, Finding, Rule, Verdict
from ridgeline.core.format import parenthesised, value
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels import l0
from ridgeline.trace.levels.l1 import Collectives, Row
from ridgeline.trace.levels.l1 import Verdict as Verdict_


@dataclass(frozen=True)
class Told:
    """What a finding says: ``lead`` goes before the figures, ``tail`` behind, ``fix`` only where the rule fired."""

    lead: str
    fix: str
    tail: str = ""
    missed: Verdict = Verdict.FAIL  # the verdict above the threshold


def mean_step(facts: TraceFacts) -> Quantity:
    """``trace.mean_step`` (s): the mean steady step of the traced ranks."""
    return l0.per_step(facts.l0, "span", "trace.mean_step").titled("Step in the trace, mean over ranks")


def lost(facts: TraceFacts, this: Rule, seconds: Quantity, told: Told, cites: tuple[Quantity, ...] = ()) -> Finding:
    """A finding on ``seconds`` per step, judged by their share of the traced step."""
    share = derive(f"{seconds.name}.share", "lost/step", "%", lost=seconds, step=mean_step(facts))
    share = share.titled(f"{seconds.label or seconds.name}, share of the step")
    held = this.holds(share)
    tail = f": {told.tail}" if told.tail else ""
    return this.found(
        Verdict.PASS if held else told.missed,
        f"{told.lead} {{{seconds.name}}} a step, {{{share.name}}} of it{tail}.",
        "" if held else told.fix,
        value=share,
        cost=Cost() if held else facts.cost(seconds),
        cites=(seconds, *cites),
    )


def bucket(facts: TraceFacts, this: Rule, names: str | tuple[str, ...], key: str, told: Told) -> Iterator[Finding]:
    """The finding on one bucket of L0, or the sum of several, with the rank that loses most."""
    if not facts.l0:
        yield no_trace(this)
        return
    each = (names,) if isinstance(names, str) else names
    parts = [l0.per_step(facts.l0, name, f"lost.{name}") for name in each]
    total = parts[0]
    if len(parts) > 1:
        total = derive(f"lost.{key}", " + ".join(each), "s", **dict(zip(each, parts, strict=True)))
        first, *others = (l0.LABELS[name] for name in each)
        total = total.titled(", ".join([first, *(text[:1].lower() + text[1:] for text in others)]) + " per step")
    elif each[0] in _WAITS:
        total = total.titled(f"{_WAITS[each[0]]} per step")
    yield lost(facts, this, total, _with_worst(facts, told, each))


# buckets that are named after what is waited for
_WAITS = {"input_gap": "Waiting for input", "sync_gap": "Waiting for host synchronisation"}


def _with_worst(facts: TraceFacts, told: Told, names: tuple[str, ...]) -> Told:
    if len(facts.l0) < 2:
        return told
    sums = {rank.label: sum(rank.mean_s(name) for name in names) for rank in facts.l0}
    worst = max(sums, key=lambda label: sums[label])
    mean = sum(sums.values()) / len(sums)
    if sums[worst] < 1.5 * mean or sums[worst] <= 0:
        return told
    said = f"{worst} most, with {sums[worst] * 1e3:.3g} ms"
    return replace(told, tail=f"{told.tail}; {said}" if told.tail else said)


def no_trace(this: Rule) -> Finding:
    """Nothing to look at."""
    return this.found(Verdict.UNKNOWN, "No trace with device events was given.", "Record a profile of three steps.")


def no_collectives(this: Rule) -> Finding:
    """A trace without communication."""
    return this.found(Verdict.PASS, "There is no communication in the trace.", "")


def seconds(name: str, value_s: float, label: str, where: str) -> Quantity:
    """Measured seconds per step."""
    return leaf(name, value_s, "s", "measured", Source("the trace", where)).titled(label)


def link_bytes_per_s(facts: TraceFacts) -> float | None:
    """Bandwidth of the device's scale-up link, one direction, or None."""
    device = facts.context.device
    return None if device is None or device.scale_up is None else float(device.scale_up.bandwidth.base)


def rows_judged(facts: TraceFacts, found: Collectives, verdict: Verdict_) -> list[Row]:
    """The rows whose transfer has a verdict, whatever waiting comes on top; most exposed per step first."""
    link = link_bytes_per_s(facts)
    rows = [row for row in found.rows if row.per_step_s > 0 and found.verdict(row, link, waits=False) == verdict]
    return sorted(rows, key=lambda row: -row.per_step_s)


def judged(facts: TraceFacts, this: Rule, verdict: Verdict_, told: Told) -> Iterator[Finding]:
    """The finding on all collectives of one verdict, exposed wait left to the rule on late ranks."""
    if not facts.l0:
        yield no_trace(this)
        return
    if facts.l1 is None:
        yield no_collectives(this)
        return
    rows = rows_judged(facts, facts.l1, verdict)
    total_s = sum(row.per_step_s - row.wait_per_step_s for row in rows)
    label = f"Exposed communication, {verdict}"
    total = seconds(f"lost.comm_{verdict}", total_s, label, f"{len(rows)} kinds of collective")
    tail = ", ".join(part for part in (listed(facts, rows), told.tail) if part)
    yield lost(facts, this, total, replace(told, tail=tail))


def shown(name: str, most: int = 80) -> str:
    """A name from a trace as part of a sentence: no braces, which mark quantities, and nothing that does not print."""
    text = parenthesised("".join(c if c.isprintable() else " " for c in name))
    return text if len(text) <= most else text[: most - 3] + "..."


def listed(facts: TraceFacts, rows: list[Row], most: int = 3) -> str:
    """The largest rows by name, exposed time and bus bandwidth."""
    parts = [f"{shown(row.title)} ({row.per_step_s * 1e3:.3g} ms{_rate(row)})" for row in rows[:most]]
    more = [f"{len(rows) - most} more"] if len(rows) > most else []
    link = link_bytes_per_s(facts)
    told = f"the link has {value(link, 'B/s')}" if link and any(row.bus_bytes_per_s for row in rows[:most]) else ""
    return "; ".join(part for part in (", ".join(parts + more), told) if part)


def _rate(row: Row) -> str:
    return "" if row.bus_bytes_per_s is None else f", bus {value(row.bus_bytes_per_s, 'B/s')}"
