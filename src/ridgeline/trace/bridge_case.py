"""The bridge, the ladder and the audit in a report; and two runs against each other as a case of their own."""

from collections.abc import Iterator

from ridgeline.arithmetic.geometry import GeometryAudit
from ridgeline.core import charts
from ridgeline.core import format as formats
from ridgeline.core.case import Case, Chart, Column, Section, Table
from ridgeline.core.quantity import Quantity
from ridgeline.trace import ladder
from ridgeline.trace.audit import Audit
from ridgeline.trace.bridge import Bridge
from ridgeline.trace.causes import buckets_of
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.versus import Comparison, Profile, Scaling, compare, scale

MOST_BARS = 16
READINGS = 12
WORDS = {
    "flag": "a flag", "compiler": "the compiler", "model": "the model", "kernel": "a kernel", "hardware": "hardware",
}  # fmt: skip


def bridge_sections(case: Case, facts: TraceFacts) -> Iterator[Section]:
    """The bridge and the ladder, where causes were found."""
    found = facts.bridge
    if found is None or not found.bars:
        return
    case.add(*(q for q in found.quantities if q.name not in case.quantities))
    case.add_table("bridge.causes", cause_table(found))
    case.add_table("bridge.bars", bar_table(found))
    spec = charts.waterfall(case.tables["bridge.bars"], "what", "low", "high", "kind", "text")
    alt = "Waterfall from what is observed to what is possible, one bar for each cause in the order of the fixes."
    case.charts["bridge.bars"] = Chart(case.text(_message(found)), alt, spec, "bridge.bars")
    yield Section("The bridge", _text(found), ("bridge.bars", "bridge.causes", *_left_table(case, found)))
    yield _ladder(case, found, facts)


def bridge_decision(found: Bridge) -> str:
    """What was ever possible, what is reached, and how many causes lie between."""
    many = formats.count(len(found.bars), "cause")
    if found.observed is None or found.ends.ideal is None:
        return f"Of the step of {{{found.ends.step.name}}}, {many} account for what lies above {{{found.final.name}}}."
    ends = found.ends
    possible = ""
    if ends.corrected is not None and ends.expected is not None:
        possible = f"{{{ends.expected.name}}} was expected and {{{ends.corrected.name}}} is possible; "
    elif ends.expected is not None:
        possible = f"{{{ends.expected.name}}} was expected; "
    assert found.reached is not None
    if float(found.observed.value) > 100:
        return f"An MFU of {{{found.observed.name}}} cannot be: model, batch, step or machine in run.toml is wrong."
    reached = f"{possible}{many} lead from {{{found.observed.name}}} to {{{found.reached.name}}} MFU"
    if found.unexplained is None or found.unexplained_share is None:
        return f"{reached}."
    if float(found.unexplained.value) < 0:
        return f"{reached}, which is above the target: the expectation is too low, or causes are counted twice."
    left = f"{{{found.unexplained.name}}} of a step, {{{found.unexplained_share.name}}}"
    return f"{reached}, leaving unexplained {left}."


def bridge_because(found: Bridge) -> str:
    """The first fix and what would change the order."""
    if not found.bars:
        return "No cause was found: a longer trace, more ranks or a step log would show more."
    first = found.bars[0]
    risks = (
        f" Measure {formats.parenthesised(', '.join(first.cause.risks))} again after it." if first.cause.risks else ""
    )
    worth = f", worth {{{first.mfu.points.name}}} of peak" if first.mfu else ""
    return f"First: {formats.parenthesised(first.cause.name)}, {{{first.seconds.name}}} a step{worth}.{risks}"


def _message(found: Bridge) -> str:
    if found.observed is None or found.reached is None:
        return f"From {{{found.ends.step.name}}} to {{{found.final.name}}}"
    return f"From {{{found.observed.name}}} to {{{found.reached.name}}} MFU, cheapest confirmation first"


def _text(found: Bridge) -> tuple[str, ...]:
    order = (
        "Each second of the step belongs to one cause at most; the order is that of the cheapest confirmation, with "
        "what a fix may change measured again."
    )
    if found.observed is None:
        return (order, "Without an ideal step (model, machine and batch in run.toml) the bridge is in seconds.")
    points = (
        "MFU is not linear in the seconds: points in the order of the fixes sum to the whole gain; the range is from "
        "the fix alone on the step as it is to the fix as the last one."
    )
    return (order, points)


def _clipped(text: str, most: int = 44) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def bar_table(found: Bridge) -> Table:
    """From, to and the words of every bar of the waterfall, in percent MFU, or in ms where there is no ideal."""
    if found.observed is None or found.reached is None:
        rows = list(_second_bars(found))
        unit, low, high = "ms", "Step", "to"
    else:
        rows = list(_point_bars(found))
        unit, low, high = "%", "MFU", "to"
    columns = (
        Column("what", "Cause"), Column("low", low, unit), Column("high", high, unit), Column("kind", "Kind"),
        Column("text", "Change"),
    )  # fmt: skip
    return Table("The bridge, bar by bar", columns, tuple(rows))


_Row = tuple[str, float, float, str, str]


def _point_bars(found: Bridge) -> Iterator[_Row]:
    assert found.observed is not None
    assert found.reached is not None
    observed, reached = float(found.observed.value), float(found.reached.value)
    yield "observed", 0.0, observed, "level", f"{observed:.1f}%"
    for number, bar in enumerate(found.bars[:MOST_BARS], 1):
        assert bar.mfu is not None
        low, high = float(bar.mfu.before.value), float(bar.mfu.after.value)
        yield f"{number}. {_clipped(bar.cause.name)}", low, high, "cause", f"+{high - low:.1f}"
    ends = found.ends
    if ends.target is not None:
        target = float(ends.target.value)
        yield "unexplained", reached, target, "unexplained", f"{target - reached:+.1f}"
        if ends.corrected is not None and ends.expected is not None:
            expected = float(ends.expected.value)
            yield "never possible", target, expected, "never possible", f"{expected - target:+.1f}"
    if ends.expected is not None:
        yield "expected", 0.0, float(ends.expected.value), "level", f"{float(ends.expected.value):.1f}%"


def _second_bars(found: Bridge) -> Iterator[_Row]:
    step, final = 1e3 * float(found.ends.step.base), 1e3 * float(found.final.base)
    yield "observed step", 0.0, step, "level", f"{step:.3g} ms"
    for number, bar in enumerate(found.bars[:MOST_BARS], 1):
        low, high = 1e3 * float(bar.after.base), 1e3 * float(bar.before.base)
        yield f"{number}. {_clipped(bar.cause.name)}", low, high, "cause", f"-{high - low:.3g} ms"
    yield "all causes fixed", 0.0, final, "level", f"{final:.3g} ms"


def cause_table(found: Bridge) -> Table:
    """A row a cause, in the order of the fixes."""
    columns = [
        Column("cause", "Cause"), Column("code", "Rule"), Column("seconds", "Seconds", "s", "per step, its own"),
        Column("step", "Step after", "s"),
    ]  # fmt: skip
    known = all(bar.mfu is not None for bar in found.bars)
    if known:
        columns += [
            Column("points", "Points", "%", "MFU gained in this order"),
            Column("alone", "Alone", "%", "as the only fix"),
            Column("last", "Last", "%", "as the last fix"),
        ]  # fmt: skip
    columns += [Column("lever", "Lever"), Column("confirm", "Confirm in", "s"), Column("fix", "First action")]
    rows = []
    for bar in found.bars:
        row: list[object] = [bar.cause.name, bar.cause.code, bar.seconds, bar.after]
        if known and bar.mfu is not None:
            row += [bar.mfu.points, bar.mfu.first, bar.mfu.last]
        rows.append((*row, WORDS[bar.cause.lever], bar.cause.confirm_s, bar.cause.fix))
    return Table("Causes in the order of their fixes", tuple(columns), tuple(rows), 0, "first")


def _left_table(case: Case, found: Bridge) -> Iterator[str]:
    left = {name: seconds for name, seconds in found.left.items() if seconds > 1e-9}
    if not left:
        return
    columns = (Column("bucket", "Bucket"), Column("seconds", "Not explained by a cause", "s", "per step"))
    ordered = sorted(left.items(), key=lambda item: -item[1])
    rows = tuple((name.replace("_", " "), seconds) for name, seconds in ordered)
    case.add_table("bridge.left", Table("What no cause explains, useful work included", columns, rows))
    yield "bridge.left"


def _ladder(case: Case, found: Bridge, facts: TraceFacts) -> Section:
    value = ladder.value(found, facts.context)
    steps = ladder.rungs(found, facts.context)
    case.add(*(q for q in vars(value).values() if isinstance(q, Quantity) and q.name not in case.quantities))
    columns = (
        Column("lever", "Lever"), Column("fixes", "Fixes"), Column("seconds", "Seconds", "s", "per step"),
        Column("points", "Points", "%", "independent of the order"), Column("days", "Chip-days", "", "a month"),
        Column("dollars", "Worth", "USD", "a month"), Column("effort", "Effort", "USD"), Column("pays", "Pays"),
    )  # fmt: skip
    rows = [
        (WORDS[rung.lever], len(rung.bars), rung.seconds, _cell(rung.points), _cell(rung.chip_days),
         _cell(rung.dollars), _cell(rung.effort), "" if rung.pays is None else rung.pays)
        for rung in steps
    ]  # fmt: skip
    filled = [i for i in range(len(columns)) if any(row[i] != "" for row in rows)]
    table = Table("The ladder", tuple(columns[i] for i in filled), tuple(tuple(r[i] for i in filled) for r in rows))
    case.add_table("bridge.ladder", table)
    return Section("When to stop", (_worth(value), _stop(steps)), ("bridge.ladder",))


def _cell(quantity: Quantity | None) -> Quantity | str:
    return "" if quantity is None else quantity


def _worth(value: ladder.Value) -> str:
    text = f"All fixes together save {{{value.share.name}}} of the chip-hours"
    if value.chip_days is not None:
        text += f", {{{value.chip_days.name}}} a month"
    if value.dollars is not None:
        text += f", {{{value.dollars.name}}}"
    if value.point is not None:
        text += f". One more point at the end is worth {{{value.point.name}}} a month"
    return text + "."


def _stop(steps: tuple[ladder.Rung, ...]) -> str:
    stop = ladder.stop_at(steps)
    if stop is not None:
        return f"Stop before {WORDS[stop.lever]}: a month of it returns less than it costs."
    if any(rung.pays is None for rung in steps):
        return (
            "Where to stop follows from what each fix costs (effort_dollars of a cause) and the price of a chip-hour."
        )
    return "Every rung returns more in a month than it costs."


def audit_section(case: Case, facts: TraceFacts) -> list[Section]:
    """How the MFU may have been counted, which lenses there are, and what pads a tile."""
    found = facts.audit
    if found is None:
        return []
    made: dict[str, Table] = {}
    if found.readings:
        made["audit.readings"] = _reading_table(found)
    if found.lenses:
        columns = (Column("lens", "Lens"), Column("implied", "MFU it implies", "%"), Column("bound", "Only a bound"))
        rows = tuple((lens.label, lens.implied, lens.bound) for lens in found.lenses)
        made["audit.lenses"] = Table("Looks at the same run", columns, rows)
    if found.geometry is not None:
        case.add(*(q for q in (found.geometry.tax, found.geometry.corrected) if q is not None))
        made["audit.geometry"] = _geometry_table(found.geometry)
    for name, table in made.items():
        case.add_table(name, table)
    text = "The audit asks how the MFU was counted and what was ever possible, before any trace is looked at."
    return [Section("The audit", (text,), tuple(made))] if made else []


def _reading_table(found: Audit) -> Table:
    columns = (
        Column("title", "Convention"), Column("peak", "Peak"), Column("mfu", "MFU", "%"),
        Column("off", "Off the reported", "%"),
    )  # fmt: skip
    rows = tuple((r.title, r.denominator, r.mfu, _cell(r.off)) for r in found.readings[:READINGS])
    compared = found.readings[0].off is not None
    mark = "nearest to the report" if compared else ""
    return Table("The step as each convention counts it", columns, rows, 0 if compared else None, mark)


def _geometry_table(found: GeometryAudit) -> Table:
    columns = (
        Column("what", "Dimension"), Column("size", "On one chip"), Column("tile", "Tile"),
        Column("share", "Of the FLOPs", "%"), Column("efficiency", "Tile efficiency"),
        Column("points", "Points of peak", "%"),
    )  # fmt: skip
    rows = tuple((d.what, d.size, d.tile, d.share, d.efficiency, d.points) for d in found.dimensions)
    return Table("What pads a tile was never possible", columns, rows)


def profile(facts: TraceFacts, name: str) -> Profile:
    """A run for a comparison: seconds per step by bucket, chips, tokens and the ideal step where they are known."""
    context = facts.context
    chips = int(context.chips.value) if context.chips else (facts.run.ranks[0].info.world if facts.run else None)
    tokens = float(context.tokens.base) if context.tokens else None
    ideal = float(context.ideal.base) if context.ideal else None
    if chips is None and facts.run is not None and len(facts.run) > 1:
        chips = len(facts.run)
    return Profile(name, buckets_of(facts), chips, tokens, ideal)


def compare_case(before: TraceFacts, after: TraceFacts, names: tuple[str, str], command: str = "") -> Case:
    """What a fix really bought."""
    found = compare(profile(before, names[0]), profile(after, names[1]))
    case = Case("trace", f"{names[0]} against {names[1]}", command=command)
    _changes(case, found)
    gained = float(found.before.value) - float(found.after.value)
    word = "shorter" if gained >= 0 else "longer"
    points = f", {{{found.points.name}}} of MFU" if found.points is not None else ""
    case.add(*((found.points,) if found.points is not None else ()))
    case.decision = f"The step went from {{{found.before.name}}} to {{{found.after.name}}}{points}: {word}."
    case.because = (
        f"Buckets that shrank gave back {formats.seconds(found.aimed_s)} a step, others grew by "
        f"{formats.seconds(found.moved_s)}: time that moved instead of going away."
    )
    return case


def scale_case(small: TraceFacts, large: TraceFacts, names: tuple[str, str], command: str = "") -> Case:
    """What a larger scale costs, and which to test next."""
    found: Scaling = scale(profile(small, names[0]), profile(large, names[1]))
    case = Case("trace", f"{names[0]} against {names[1]}, at equal tokens a chip", command=command)
    _changes(case, found.comparison)
    before, after = found.comparison.before, found.comparison.after
    culprit = f": {found.culprit.replace('_', ' ')} grows most" if found.culprit else ": no bucket grows"
    case.decision = f"The step goes from {{{before.name}}} to {{{after.name}}} with the scale{culprit}."
    case.because = (
        f"Test {found.next_chips:,} chips next: it halves the range in which the growth begins."
        if found.next_chips else "No scale lies between the two that would tell more."
    )  # fmt: skip
    return case


def _changes(case: Case, found: Comparison) -> None:
    columns = (
        Column("bucket", "Bucket"), Column("before", "First", "s"), Column("after", "Second", "s"),
        Column("change", "Change", "s"), *((Column("points", "Points", "%"),) if found.points is not None else ()),
    )  # fmt: skip
    rows = [
        (row.bucket.replace("_", " "), row.before, row.after, row.change, *((row.points,) if row.points else ()))
        for row in found.rows
    ]
    case.add_table("compare.buckets", Table("Seconds per step by bucket", columns, tuple(rows)))
    case.add(found.before, found.after)
    bars = Table(
        "The change, bar by bar",
        (Column("what", "Bucket"), Column("low", "Step", "ms"), Column("high", "to", "ms"), Column("kind", "Kind"),
         Column("text", "Change")),
        tuple(_change_bars(found)),
    )  # fmt: skip
    case.add_table("compare.bars", bars)
    spec = charts.waterfall(bars, "what", "low", "high", "kind", "text")
    alt = "Waterfall from the first run's step to the second's, one bar a bucket."
    case.charts["compare.bars"] = Chart("What changed, bucket by bucket", alt, spec, "compare.bars")
    case.sections = [Section("The change", (), ("compare.bars", "compare.buckets"))]


def _change_bars(found: Comparison) -> Iterator[_Row]:
    at = 1e3 * float(found.before.base)
    yield "first", 0.0, at, "level", f"{at:.3g} ms"
    for row in found.rows:
        change = 1e3 * float(row.change.base)
        if change:
            kind = "shrank" if change < 0 else "grew"
            yield row.bucket.replace("_", " "), min(at, at + change), max(at, at + change), kind, f"{change:+.3g} ms"
        at += change
    yield "second", 0.0, at, "level", f"{at:.3g} ms"
