"""An analysed run as a `Case`: the decision, the findings, the tables, the charts, and the prose around them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ridgeline.core import format as formats
from ridgeline.core import plugins
from ridgeline.core.case import Case, InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.finding import Finding, RuleConfig, by_cost
from ridgeline.core.lost import Loss
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace import tables
from ridgeline.trace.bridge_case import bridge_because, bridge_decision
from ridgeline.trace.causes import bridge_of, buckets_of
from ridgeline.trace.dump_case import dump_decision, dump_lost
from ridgeline.trace.events import Run
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels import l0, l3, l4
from ridgeline.trace.levels.l0 import LABELS
from ridgeline.trace.losses import mean_step
from ridgeline.trace.sections import sections

LOST = ("exposed_comm", "exposed_copy", "host_gap", "late_gap", "unknown_gap")
RECONCILES = "T008"  # looks at the bridge, which the other findings make
Lead = Literal["step", "bridge"]  # what the decision speaks of
SMALL_PERCENT = 5.0  # below it the largest loss is not what the decision starts with
_LATE: tuple[l4.Verdict, ...] = ("straggler", "throttled by heat", "at the power limit", "low clock")
_CITED = re.compile(r"\{([^{}]*)\}")


def trace_case(facts: TraceFacts, *, command: str = "", config: RuleConfig | None = None, lead: Lead = "step") -> Case:
    """The case of an analysed run. ``config`` selects, ignores and re-thresholds the T rules."""
    facts, findings, notes = judged(facts, config, bridge_asked=lead == "bridge")
    case = case_of(facts, findings, command=command, lead=lead)
    case.lost += notes
    return case


def judged(
    facts: TraceFacts, config: RuleConfig | None = None, *, bridge_asked: bool = False
) -> tuple[TraceFacts, list[Finding], list[str]]:
    """The facts with the bridge that the findings make; the findings, its reconciliation included; and what failed.

    Raises `InputError` for a bridge that cannot be built where one was asked for.
    """
    notes = []
    absent = tuple(prefix for prefix, there in _needs(facts).items() if not there)
    chosen = [
        rule
        for rule in (config or RuleConfig()).apply(plugins.rules_of("trace", config), "T")
        if not rule.code.startswith(absent)
    ]
    findings = [found for rule in chosen if rule.code != RECONCILES for found in rule.check(facts, rule)]
    if buckets_of(facts):
        try:
            facts = replace(facts, bridge=bridge_of(facts, findings))
        except InputError as error:  # said, and the rest of the report stands
            if bridge_asked:
                raise
            notes.append(f"no bridge: {error.message}")
    findings += [found for rule in chosen if rule.code == RECONCILES for found in rule.check(facts, rule)]
    return facts, by_cost(findings), notes


def _needs(facts: TraceFacts) -> dict[str, bool]:
    """Families of rules, and whether the level that they look at is there; `_lost` says which are not."""
    alone = facts.run is None and facts.l3 is None and facts.l4 is None and bool(facts.dumps and facts.dumps.files)
    return {
        "T0": not alone or facts.context.path is not None, "T1": bool(facts.l0), "T2": facts.l2 is not None,
        "T20": facts.l2 is not None and facts.run is not None, "T3": facts.l3 is not None, "T4": facts.l4 is not None,
    }  # fmt: skip


def case_of(facts: TraceFacts, findings: Iterable[Finding], *, command: str = "", lead: Lead = "step") -> Case:
    """An analysed run whose rules have run, as a case."""
    case = Case("trace", title(facts), command=command)
    case.inputs = list(_inputs(facts))
    case.add_findings(quoted(finding) for finding in findings)
    _quantities(case, facts)
    case.sections = sections(case, facts, bridge_first=lead == "bridge")
    if facts.bridge is not None and (lead == "bridge" or not (facts.l0 or facts.l3)):
        case.decision, case.because = bridge_decision(facts.bridge), bridge_because(facts.bridge)
    else:
        case.decision, case.because = _decision(case, facts), _because(case, facts)
    case.lost = list(_lost(facts))
    return case


def title(facts: TraceFacts) -> str:
    """The run's name, or how many ranks of what were traced."""
    if facts.context.file.name:
        return facts.context.file.name
    if facts.run is None:
        files = [str(file) for file in facts.dumps.files] if facts.dumps else []
        path = facts.l3.log.path if facts.l3 else facts.l4.path if facts.l4 else next(iter(files), "")
        return Path(path).name or "no trace"
    ranks, devices = len(facts.run), {rank.info.device for rank in facts.run if rank.info.device}
    device = f" on {devices.pop()}" if len(devices) == 1 else ""
    return f"{formats.count(ranks, 'rank')}{device}"


def quoted(finding: Finding) -> Finding:
    """The finding with braces that name none of its quantities written as parentheses: kernels are called anything."""
    known = {item.name for quantity in finding.quantities for item in quantity.walk()}

    def plain(text: str) -> str:
        return _CITED.sub(lambda m: m[0] if m[1].partition("|")[0] in known else f"({m[1]})", text)

    return replace(finding, sentence=plain(finding.sentence), fix=plain(finding.fix))


def _quantities(case: Case, facts: TraceFacts) -> None:
    """Everything measured. A rule may have brought the same name: its derivation stays."""
    for rank in facts.l0:
        every = len(facts.l0) < tables.MANY_RANKS
        _new(case, tables.rank_quantities(rank, every=every).values())
    if facts.l0:
        step = mean_step(facts)
        parts = [l0.per_step(facts.l0, name, f"lost.{name}") for name in LOST]
        compute = l0.per_step(facts.l0, "compute", "trace.compute")
        _new(case, (step, *parts, compute, *(_share(part, step) for part in (compute, *parts))))
    if facts.traced_step is not None:
        _new(case, (facts.traced_step,))
    if facts.l3 is not None:
        _new(case, l3.quantities(facts.l3).values())
    if facts.l4 is not None:
        _new(case, l4.quantities(facts.l4).values())
    audit = facts.audit
    if audit is not None:
        known = (facts.context.mfu, facts.context.reported, facts.context.expected, audit.spread, audit.perturbation)
        _new(case, (q for q in known if q is not None))


def _new(case: Case, quantities: Iterable[Quantity]) -> None:
    case.add(*(quantity for quantity in quantities if quantity.name not in case.quantities))


def _share(part: Quantity, step: Quantity) -> Quantity:
    found = derive(f"{part.name}.share", "lost/step", "%", lost=part, step=step)
    return found.titled(f"{part.label or part.name}, share of the step")


def _decision(case: Case, facts: TraceFacts) -> str:
    """What takes most of the step beside compute, and what causes it."""
    if not facts.l0:
        return _log_decision(case, facts)
    largest = max(LOST, key=lambda name: float(case.quantities[f"lost.{name}"].value))
    share = f"lost.{largest}.share"
    if float(case.quantities[share].value) < SMALL_PERCENT:
        computes = "The device computes for {trace.compute.share} of the step: what is left is in its operations"
        return f"{computes}{_cause(case, facts)}."
    head = f"{{{share}}} of the step of {{trace.mean_step}} is {LABELS[largest].lower()}"
    return f"{head}{_cause(case, facts)}."


def _cause(case: Case, facts: TraceFacts) -> str:
    """The cause that gives most back, with its own seconds and what they are worth."""
    bars = facts.bridge.bars if facts.bridge is not None else ()
    if not bars:
        return ""
    bar = max(bars, key=lambda item: item.item.own_s)
    _new(case, (bar.seconds, *((bar.mfu.first,) if bar.mfu else ())))
    worth = f", {{{bar.mfu.first.name}}} of peak" if bar.mfu else ""
    return f"; dearest cause: {formats.parenthesised(_lower(bar.cause.name))}, {{{bar.seconds.name}}} a step{worth}"


def _lower(text: str) -> str:
    """A label inside a sentence; an abbreviation keeps its capitals."""
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def _log_decision(case: Case, facts: TraceFacts) -> str:
    strip = facts.l3
    if strip is None and facts.l4 is not None:
        return _device_decision(facts.l4)
    if strip is None:
        said = dump_decision(case, facts.dumps)
        return said or "There is neither a trace of a device nor a step log: only the audit has run."
    if strip.stalls:
        return (
            "The mean step is {steps.mean}; without stalls it would be {steps.typical}. "
            f"The dearest stall comes every {strip.stalls[0].period:.4g} steps and costs {{steps.stall.0}} of each."
        ).replace("steps.", _prefix(strip))
    return "The mean step is {steps.mean} and no stall comes back: {steps.typical} is typical.".replace(
        "steps.", _prefix(strip)
    )


def _device_decision(spread: l4.RankSpread) -> str:
    """Samples of devices alone: which of them stand out."""
    odd = spread.judged(*(rank.verdict for rank in spread.ranks if rank.verdict != "even"))
    if not odd:
        return f"None of {len(spread.ranks)} devices stands out in its samples."
    named = ", ".join(f"{rank.label} ({rank.verdict})" for rank in odd[:4])
    more = f" and {len(odd) - 4} more" if len(odd) > 4 else ""
    return f"Of {formats.count(len(spread.ranks), 'device')} stand out: {named}{more}."


def _prefix(strip: l3.StripChart) -> str:
    return "steps." if strip.log.rank is None else f"{strip.label}.steps."


def _because(case: Case, facts: TraceFacts) -> str:
    """What the decision rests on and what would change it."""
    if not facts.l0:
        return "A trace of three steady steps would say what each step is made of."
    late = facts.l4.judged(*_LATE) if facts.l4 else ()
    why = ""
    if late and late[0].reason:
        why = formats.parenthesised(f"{late[0].label}: {late[0].reason}. ")
    steady = min(int(rank.steps.steady.sum()) for rank in facts.l0)
    marked = {rank.steps.source for rank in facts.l0}
    steps = f"{formats.count(steady, 'steady step')} each"
    if marked == {"none"}:
        steps = "one window without step markers"
    rests = f"It rests on {formats.count(len(facts.l0), 'rank')}, {steps}"
    clocks = ""
    if facts.run is not None and facts.run.spread_ns is not None:
        clocks = f", with clocks that agree to {formats.seconds(facts.run.spread_ns * 1e-9)}"
    change = "; the other ranks could change it" if len(facts.l0) == 1 else "; a longer window could change it"
    return f"{why}{rests}{clocks}{change}.{_incomplete(facts.run)}"


def _incomplete(run: Run | None) -> str:
    """What of the input could not be used, the first of it in words; empty where everything was."""
    said = list(_losses(run))
    if not said:
        return ""
    more = f"; {len(said) - 1} more in the report" if len(said) > 1 else ""
    return f" Of the input: {formats.parenthesised(tables.short(said[0], 160))}{more}."


def _inputs(facts: TraceFacts) -> Iterable[InputFile]:
    paths = [rank.info.path for rank in facts.run] if facts.run else []
    paths += [facts.l3.log.path] if facts.l3 is not None else []
    paths += [facts.l4.path] if facts.l4 is not None else []
    paths += [str(file) for file in facts.dumps.files] if facts.dumps is not None else []
    yield from facts.context.inputs
    known = {item.path for item in facts.context.inputs}
    for path in dict.fromkeys(paths):
        if path not in known and Path(path).is_file():
            yield InputFile.of(path)


def _lost(facts: TraceFacts) -> Iterable[str]:
    """What was not read, what was left out of averages, and the levels that could not run, in words."""
    yield from _losses(facts.run)
    for rank in facts.l0[: tables.MANY_RANKS]:
        left = ", ".join(f"step {number} ({why})" for number, why in sorted(rank.steps.excluded.items())[:8])
        if left:
            yield f"{rank.label}: left out of averages: {left}"
        if rank.window != "all":
            yield f"{rank.label}: window {rank.window}: {rank.linked:,} of {rank.events:,} device events are linked"
    if facts.run is not None:
        if not facts.l0:
            yield "L0: no work on a device in the trace"
        if facts.l1 is None:
            yield "L1: no communication on a device in the trace"
        elif len(facts.run) < 2:
            yield "L1: one rank: who arrives last and what is waiting cannot be told apart from the wire"
    else:
        yield from _lost_without_trace(facts)
    if facts.l3 is None:
        yield "L3: no step log and too few steps in the trace to see stalls that come back"
    if facts.l4 is None and facts.run is not None:
        yield "L4: one rank: nothing to compare it with"


def _lost_without_trace(facts: TraceFacts) -> Iterable[str]:
    yield from _summed(facts.dumps.lost if facts.dumps is not None else ())
    yield "L0 to L2: no trace of a device, so the rules on buckets, traced collectives and operators have not run"
    yield from dump_lost(facts.dumps)
    if not _needs(facts)["T0"]:
        yield "T0: no run.toml, so there is no expectation to audit"


def _losses(run: Run | None) -> Iterable[str]:
    """Losses of all ranks, the same kind once."""
    yield from _summed(item for rank in run or () for item in rank.info.lost)


def _summed(lost: Iterable[Loss]) -> Iterable[str]:
    kinds: dict[str, list[Loss]] = defaultdict(list)
    for item in lost:
        kinds[item.what].append(item)
    for what, items in kinds.items():
        places = _places([item.where for item in items if item.where])
        yield f"{what}: {sum(item.count for item in items):,}{places}"


def _places(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    if not distinct:
        return ""
    more = f" and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return f" ({', '.join(tables.short(name, 80) for name in distinct[:3])}{more})"
