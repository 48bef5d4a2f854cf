"""What a gate decided, as a `Case`: the outcome first, then every check from the worst lower bound up."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite

from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, Column, InputFile, Section, Table
from ridgeline.core.finding import Finding, RuleConfig, run_rules
from ridgeline.core.format import count, parenthesised, printable, value
from ridgeline.core.lost import Loss
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.gate.decision import Check, Outcome, combine
from ridgeline.gate.gate import Gate

_NAME = re.compile(r"[^a-z0-9]+")
_TAG_BYTES = 4
_ENDS = {"delta": "", "low": ", lower bound", "high": ", upper bound"}
DESCRIBED = "described"
COLOURED = (*(str(item) for item in (Outcome.NO_SHIP, Outcome.INCONCLUSIVE, Outcome.SHIP)), DESCRIBED)
LONG = 100  # characters of a reason that is not said twice
SHOWN = 60  # checks that a chart can hold; the table has all
# A difference of proportions is read in points, a relative change in percent.
_READ = {"%": ("point", 100.0), "ratio": ("%", 100.0)}


def read_in(check: Check) -> tuple[str, float]:
    """The unit that a check is read in, and what its values are multiplied by: a level of a share is in percent."""
    return ("%", 100.0) if check.level and check.unit == "%" else _READ.get(check.unit, (check.unit, 1.0))


@dataclass(frozen=True)
class Decided:
    """What a gate hands over: ``subject`` says what was compared, ``change`` what else would change the outcome.

    ``ids`` gives a hash of the examples' keys of each run, which a registration of ids is compared with.
    """

    gate: Gate
    subject: str
    checks: tuple[Check, ...]
    change: str = ""
    inputs: tuple[InputFile, ...] = ()
    lost: tuple[Loss, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    findings: tuple[Finding, ...] = ()
    sections: tuple[Section, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    charts: Mapping[str, Chart] = field(default_factory=dict)
    ids: Callable[[], tuple[str, ...]] = tuple

    def __post_init__(self) -> None:
        """Tell checks apart whose names differ in signs alone, or in letters that a figure's name cannot hold."""
        many = Counter(map(_words, self.checks))
        tagged = (replace(check, tag=_tag(check) if many[_words(check)] > 1 else "") for check in self.checks)
        object.__setattr__(self, "checks", tuple(tagged))

    @property
    def outcome(self) -> Outcome:
        """The outcome of all required checks."""
        return combine(self.checks)

    @property
    def required(self) -> list[Check]:
        """Required checks, the worst lower bound in margins first."""
        return sorted((check for check in self.checks if check.required), key=lambda check: check.slack)

    @property
    def worst(self) -> Check | None:
        """The required check that the outcome turns on: the worst of those that share it."""
        return next((check for check in self.required if check.outcome is self.outcome), None)


def name_of(gate: Gate, check: Check, end: str) -> str:
    """The stable name of a figure of a check: ``gate.precision.overall.accuracy.low``."""
    name, metric = _words(check)
    return ".".join(("gate", gate.name.replace("-", "_"), name + (check.tag and f"_{check.tag}"), metric, end))


def _words(check: Check) -> tuple[str, str]:
    name, metric = (_NAME.sub("_", text.lower()).strip("_") or "unnamed" for text in (check.name, check.metric))
    return name, metric


def _tag(check: Check) -> str:
    whole = f"{check.name}\n{check.metric}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=_TAG_BYTES).hexdigest()


def figures(gate: Gate, check: Check) -> dict[str, Quantity]:
    """``delta``, ``low``, ``high``, ``margin``, ``n`` of a check; ``needed`` and ``detectable`` where they are known.

    A check without a single pair has none. Of a level, ``delta`` is the level and ``margin`` what it must be above.
    """
    if not check.interval.n and check.interval.degenerate:
        return {}
    unit, scale = read_in(check)
    source = Source(check.interval.method, f"one-sided bounds at {1 - check.interval.alpha:.1%}")
    title = f"{check.metric}, {check.name}"
    found = {
        end: leaf(name_of(gate, check, end), scale * value, unit, "measured", source).titled(title + words)
        for (end, words), value in zip(_ENDS.items(), _ends(check), strict=True)
        if isfinite(value)
    }
    given = Source("the registered or given margin")
    margin = leaf(name_of(gate, check, "margin"), scale * check.margin, unit, "specified", given)
    found["margin"] = margin.titled(f"{'Least' if check.level else 'Margin of'} {title}")
    n = leaf(name_of(gate, check, "n"), check.interval.n, "1", "measured", source)
    found["n"] = n.titled(f"{check.counts.capitalize()}, {title}")
    if check.needed is not None:
        needed = leaf(name_of(gate, check, "needed"), check.needed, "1", "measured", source)
        found["needed"] = needed.titled(f"More {check.counts} that would decide {title}")
    if check.detectable is not None and isfinite(check.detectable):
        least = leaf(name_of(gate, check, "detectable"), scale * check.detectable, unit, "measured", source)
        found["detectable"] = least.titled(f"Smallest margin that these {check.counts} can clear, {title}")
    return found


def _ends(check: Check) -> tuple[float, float, float]:
    return check.interval.estimate, check.interval.low, check.interval.high


def case_of(decided: Decided, *, command: str = "", config: RuleConfig | None = None) -> Case:
    """The case of a decision, with the findings of the rules ``G0`` over it beside its own."""
    gate = decided.gate
    case = Case(f"gate {gate.name}", decided.subject, command=command)
    case.inputs = list({(item.path, item.sha256): item for item in decided.inputs}.values())
    case.lost = [_lost(item) for item in dict.fromkeys(decided.lost)]
    for check in decided.checks:
        case.add(*figures(gate, check).values())
    case.add(*decided.quantities)
    case.add_findings([*run_rules(plugins.rules_of("gate", config), decided, config, family="G0"), *decided.findings])
    case.decision, case.because = sentence(decided), because(decided)
    if decided.checks:
        case.add_table("gate.checks", checks_table(decided))
        if any(isfinite(low) and isfinite(high) for _, low, high in map(_ends, decided.checks)):
            case.charts["gate.forest"] = forest(decided)
    for name, table in decided.tables.items():
        case.add_table(name, table)
    case.charts |= decided.charts
    shown = tuple(name for name in ("gate.forest", "gate.checks") if name in case.charts or name in case.tables)
    first = Section("Every check, the worst lower bound first", (gate.protects,), shown)
    case.sections = [*([first] if decided.checks else []), *decided.sections]
    return case


def _lost(item: Loss) -> str:
    return printable(f"{item.count:,} {item.what}" + (f" ({item.where})" if item.where else ""))


def sentence(decided: Decided) -> str:
    """The decision: outcome, difference with its interval and margin, n; then the check that it turns on."""
    outcome, worst = decided.outcome, decided.worst
    if worst is None:
        return f"{outcome}: there is nothing to decide on."
    total, share = len(decided.required), sum(c.outcome is outcome for c in decided.required)
    overall = [check for check in decided.required if check.name == "overall"]
    whole = next((check for check in overall if check.outcome is outcome), overall[0] if overall else worst)
    parts = [_measured(decided.gate, whole)]
    if worst is not whole and outcome is not Outcome.SHIP:
        parts.append(f"worst {_measured(decided.gate, worst)}")
    if total > 1:
        parts.append(f"{share} of {count(total, 'check')} {_VERBS[outcome]}")
    return f"{outcome}: {'; '.join(parts)}."


_VERBS = {Outcome.SHIP: "are inside their margins", Outcome.NO_SHIP: "fail", Outcome.INCONCLUSIVE: "need more"}


def _measured(gate: Gate, check: Check) -> str:
    known, n = figures(gate, check), f"n = {check.interval.n:,}"
    what = said(check)
    if check.interval.degenerate:
        return f"{what} is no evidence ({check.interval.degenerate})" + (f", {n}" if check.interval.n else "")
    level = f"{100 * (1 - 2 * check.interval.alpha):.3g}% interval"
    change = f"{{{known['delta'].name}}} ({level} {reach(known)})"
    if check.level:
        return f"{what} is {change} where {{{known['margin'].name}}} is required, {n}"
    return f"{what} changes by {change} against a margin of {{{known['margin'].name}}}, {n}"


def said(check: Check) -> str:
    """The check in words: the metric, after the slice where it is one. Names from files cite no quantity."""
    text = check.metric if check.name == "overall" else f"{check.name}: {check.metric}"
    return parenthesised(printable(text))


def reach(known: Mapping[str, Quantity]) -> str:
    """``{low} to {high}`` of the figures of a check, for a sentence."""
    return " to ".join(f"{{{known[end].name}}}" if end in known else "unbounded" for end in ("low", "high"))


def because(decided: Decided) -> str:
    """What would change the decision: the n still needed or the margin that these data clear, and the gate's own."""
    words, worst = [], decided.worst
    known = figures(decided.gate, worst) if worst else {}
    if decided.outcome is Outcome.INCONCLUSIVE:
        words.append(_more(decided))
    elif worst and decided.outcome is Outcome.NO_SHIP and "low" in known:
        words.append(_lost_for_certain(worst))
    elif worst and "low" in known and worst.level:
        words.append(f"It holds for any requirement below {{{known['low'].name}}} in {said(worst)}.")
    elif worst and "low" in known and worst.interval.low < 0:
        words.append(f"It holds for any margin of {_at_least(-worst.interval.low, worst)} in {said(worst)}.")
    return " ".join([*filter(None, words), *([decided.change] if decided.change else [])])


def _lost_for_certain(worst: Check) -> str:
    if worst.level:
        unit, scale = read_in(worst)
        end = f"{said(worst)} is {value(scale * worst.interval.high, unit)} or less"
    else:
        end = f"{said(worst)} loses {_at_least(-worst.interval.high, worst)}"
    return f"More examples would not change it: {end}."


def _at_least(loss: float, check: Check) -> str:
    unit, scale = read_in(check)
    return f"{value(scale * loss, unit)} or more"


def _more(decided: Decided) -> str:
    """The pairs that would decide the check that is furthest from it; or what must change first."""
    open_ = [check for check in decided.required if check.outcome is Outcome.INCONCLUSIVE]
    stuck = [check for check in open_ if check.interval.degenerate and not check.needed]
    most = max((check for check in open_ if check.needed), key=lambda check: check.needed or 0, default=None)
    words = []
    if most is not None:
        where = "" if most.name == "overall" else f" of {parenthesised(printable(most.name))}"
        words.append(f"{most.needed:,} more {most.counts}{where} would decide, {most.basis}.")
    if stuck:
        said_before = stuck[0] is decided.worst and len(stuck[0].interval.degenerate) > LONG
        why = "" if said_before else f": {stuck[0].interval.degenerate}"
        words.append(f"No number of {stuck[0].counts} decides {said(stuck[0])}{why}.")
    return " ".join(words)


def checks_table(decided: Decided) -> Table:
    """All checks: required ones first, the worst lower bound first. One metric stands last, several stand second.

    Where checks are in several units, each row names its own.
    """
    described = [check for check in decided.checks if not check.required]
    ordered = [*decided.required, *described]
    units = {read_in(check)[0] for check in ordered if check.interval.n}
    unit = units.pop() if len(units) == 1 else ""
    shown = "" if unit == "1" else unit
    level = bool(ordered) and all(check.level for check in ordered)
    columns = {
        "check": Column("check", "Check"),
        "metric": Column("metric", "Metric"),
        "unit": Column("unit", "Unit"),
        "outcome": Column("outcome", "Outcome"),
        **(_ends_of_level(shown) if level else _ends_of_change(shown)),
        "n": Column("n", "n"),
        "needed": Column("needed", "More n", "", "that would decide, if there is no difference, or as seen"),
        "detectable": Column("detectable", "Can see", shown, "smallest margin that n can clear"),
        "note": Column("note", "Note"),
    }
    names = [name for name in columns if name != "unit" or not unit]
    if len({check.metric for check in ordered}) == 1:
        names.append(names.pop(names.index("metric")))
    rows = [_row(check) for check in ordered]
    kept = tuple(columns[name] for name in names)
    return Table("Checks", kept, tuple(tuple(row[name] for name in names) for row in rows))


def _ends_of_change(unit: str) -> dict[str, Column]:
    return {
        "delta": Column("delta", "Change", unit, "candidate minus baseline; higher is better"),
        "low": Column("low", "Low", unit, "one-sided bound; above minus the margin to ship"),
        "high": Column("high", "High", unit),
        "margin": Column("margin", "Margin", unit, "loss tolerated"),
    }


def _ends_of_level(unit: str) -> dict[str, Column]:
    return {
        "delta": Column("delta", "Value", unit, "higher is better"),
        "low": Column("low", "Low", unit, "one-sided bound; above what is required to ship"),
        "high": Column("high", "High", unit),
        "margin": Column("margin", "Required", unit),
    }


def _row(check: Check) -> dict[str, object]:
    unit, scale = read_in(check)

    def cell(number: float | None) -> object:
        return "" if number is None or not isfinite(number) or not check.interval.n else scale * number

    note = "; ".join(filter(None, (check.interval.degenerate, check.note)))
    if check.needed and check.basis != Check.basis:
        note = "; ".join(filter(None, (note, f"more n {check.basis}")))
    return {
        "check": printable(check.name),
        "metric": printable(check.metric),
        "outcome": str(check.outcome) if check.required else DESCRIBED,
        **dict(zip(("delta", "low", "high"), map(cell, _ends(check)), strict=True)),
        "margin": cell(check.margin),
        "unit": {"1": "", "point": "points"}.get(unit, unit),
        "n": check.interval.n,
        "needed": "" if check.needed is None else check.needed,
        "detectable": cell(check.detectable),
        "note": printable(note),
    }


def forest(decided: Decided) -> Chart:
    """Intervals of the checks, the worst lower bound first: in their unit where all share it and the margin.

    Otherwise in margins, so that one line at minus one stands for all.
    """
    described = [check for check in decided.checks if not check.required]
    ordered = [check for check in [*decided.required, *described] if isfinite(check.interval.low)]
    ordered = [check for check in ordered if isfinite(check.interval.high) and check.margin > 0]
    shared = len({(check.unit, check.margin, check.level) for check in ordered}) == 1
    several = len({check.metric for check in ordered}) > 1
    unit, scale = read_in(ordered[0]) if shared and ordered else ("1", 1.0)
    rows = []
    for check in ordered:
        # in margins, what must be cleared is at minus one: a change of minus the margin, or a level that is required
        size, origin = (scale, 0.0) if shared else (1 / check.margin, check.floor + check.margin)
        outcome = str(check.outcome) if check.required else DESCRIBED
        label = printable(f"{check.name}, {check.metric}" if several else check.name)
        rows.append((label, outcome, *(size * (end - origin) for end in _ends(check))))
    level = shared and bool(ordered) and ordered[0].level
    head = "Value" if level else "Change" if shared else "Change, in margins"
    columns = (Column("check", "Check"), Column("outcome", "Outcome"), Column("delta", head, unit),
               Column("low", "Low", unit), Column("high", "High", unit))  # fmt: skip
    table = Table("Intervals", columns, tuple(rows))
    mark = (scale * ordered[0].floor if shared and ordered else -1.0, "required" if level else "margin")
    title = (
        "Where an interval reaches below what is required, it is not shown to hold"
        if level
        else "Where an interval reaches past the margin, the loss cannot be excluded"
    )
    more = f"the first {SHOWN} of {len(rows)} checks" if len(rows) > SHOWN else ""
    spec = charts.forest(table, "check", ("low", "delta", "high"), "outcome", mark, SHOWN, COLOURED)
    names = [column.name for column in columns]  # the table beside it is in units, not in margins
    spec["data"] = {"values": [dict(zip(names, row, strict=True)) for row in rows[:SHOWN]]}
    lowest = f", {rows[0][0]} lowest" if rows else ""
    return Chart(title, f"Intervals of {count(len(rows), 'check')}{lowest}", spec, "gate.checks", more)
