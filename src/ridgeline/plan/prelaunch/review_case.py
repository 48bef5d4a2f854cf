"""A review as a `Case`: a page that people can discuss in half an hour."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ridgeline.core import plugins
from ridgeline.core.case import Case, Section
from ridgeline.core.catalog import constant
from ridgeline.core.finding import Finding, RuleConfig, Verdict, run_rules
from ridgeline.plan.prelaunch import review_tables as tables
from ridgeline.plan.prelaunch.comparable import Comparison, read_comparable
from ridgeline.plan.prelaunch.expectation import tokens_rate
from ridgeline.plan.prelaunch.pilot import Pilot, pilot
from ridgeline.plan.prelaunch.review import Proposal
from ridgeline.plan.prelaunch.review_facts import ReviewFacts
from ridgeline.plan.steps.calibrate import calibrate, read_run

FAMILY = "P2"
_OF_CLAIM = {"P215", "P216"}  # what fails there is the number, not the design


def review_facts(proposal: Proposal, against: Path | None = None, runs: Sequence[Path] = ()) -> ReviewFacts:
    """The facts of a proposal; ``against`` is a comparable run, ``runs`` are measured ones to calibrate with."""
    calibration = calibrate(read_run(run) for run in runs) if runs else None
    facts = ReviewFacts(proposal, calibration=calibration)
    return facts if against is None else replace(facts, comparison=read_comparable(against, facts))


def review_case(facts: ReviewFacts, *, command: str = "", config: RuleConfig | None = None) -> Case:
    """The page: decision, expectation, findings by cost, memory, step, pilot, open questions."""
    case = Case("review", facts.proposal.name, command=command, inputs=list(facts.proposal.inputs))
    if facts.comparison is not None and facts.comparison.file is not None:
        case.inputs.append(facts.comparison.file)
    case.add(*facts.expected.all, facts.ideal, facts.memory, tokens_rate(facts), facts.batch.tokens)
    case.add(*(q for q in (facts.claimed, facts.tokens, facts.run_steps, facts.price) if q is not None))
    case.add(*facts.cluster.facts)
    findings = run_rules(plugins.rules_of("plan", config), facts, config, family=FAMILY)
    case.add_findings(findings)
    small = pilot(facts)
    case.sections = list(_sections(case, facts, small, findings))
    case.decision, case.because = _decision(facts, findings), _because(facts, small)
    return case


def _decision(facts: ReviewFacts, findings: list[Finding]) -> str:
    """Go or not, the number with its interval, and in which convention."""
    failed = {finding.code for finding in findings if finding.verdict is Verdict.FAIL}
    head = "Do not launch yet" if failed - _OF_CLAIM else "Launch after the pilot"
    if failed and failed <= _OF_CLAIM:
        head = "Make the schedule again before the launch"
    number = "expect {expected.mfu} MFU (80%: {expected.mfu.low} to {expected.mfu.high})"
    if "P210" in failed and facts.capacity is not None:
        number = f"the plan needs {{{facts.memory.name}}} of {{{facts.capacity.name}}}. If it fitted, {number}"
    return f"{head}: {number}, {{expected.step}} a step{_versus(facts)}. MFU counts {facts.counted}."


def _versus(facts: ReviewFacts) -> str:
    return "" if facts.claimed is None else f", where {{{facts.claimed.name}}} is claimed"


def _because(facts: ReviewFacts, small: Pilot | None) -> str:
    """What it rests on and what would change it."""
    comparison = facts.comparison
    moved = ""
    if comparison is not None:
        moved = (
            f"The comparable run promises {{{comparison.expectation.name}}} here, not its own "
            f"{{{comparison.measured.name}}}. "
        )
    if small is None or not small.lines:
        return f"{moved}No pilot of {{review.pilot_chips}} is smaller than this design: measure its first step."
    price = "" if small.dollars is None else f" for {{{small.dollars.name}}}"
    first = small.lines[0]
    return (
        f"{moved}What would change it first is {first.title.lower()}, up to {{{first.risk.name}|2}} of peak: the pilot "
        f"measures it on {{pilot.review.chips}}{price}."
    )


def _sections(case: Case, facts: ReviewFacts, small: Pilot | None, findings: list[Finding]) -> Iterator[Section]:
    if facts.proposal.file.question:
        yield Section("The question", (facts.proposal.file.question,))
    yield tables.expectation(case, facts)
    yield tables.step(case, facts)
    yield tables.memory(case, facts)
    yield tables.shapes(case, facts)
    if facts.comparison is not None:
        yield _comparable(case, facts.comparison)
    yield _pilot(case, small)
    yield _questions(findings)


def _comparable(case: Case, found: Comparison) -> Section:
    case.add_table("review.comparable", tables.comparable_table(found))
    case.add(*(q for q in (found.corrected, found.proportional, found.modelled, found.measured) if q is not None))
    source = f" ({found.source})" if found.source else ""
    text = (
        f"{found.name}{source} reached {{{found.measured.name}}}. Corrected for what the tiles pad here and not there, "
        f"it promises {{{found.expectation.name}}}; moved by the ratio of both designs in the step model, "
        f"{{{found.modelled.name}}}. The first knows only shapes; the second plan, links and shapes, with the model's "
        "own errors."
    )
    return Section("Against the comparable run", (text,), ("review.comparable",))


def _pilot(case: Case, small: Pilot | None) -> Section:
    heading = "The pilot"
    if small is None:
        case.add(constant("review.pilot_chips"))
        return Section(
            heading, ("The design is no larger than a pilot of {review.pilot_chips}, or no layer of it fits.",)
        )
    case.add_table("review.pilot", tables.pilot_table(small))
    case.add(small.step, small.hours, *([small.dollars] if small.dollars else []), constant("review.pilot_chips"))
    price = f", {{{small.dollars.name}}}" if small.dollars else ""
    many = small.facts.cluster.chips > small.facts.cluster.node_size
    where = "across scale-up domains" if many else "inside one scale-up domain"
    layers, sequences, seq = small.facts.spec.layers, *small.facts.proposal.batch
    run = (
        f"{{pilot.review.chips}}, {where}: {small.plan}; {layers} layers of the design's widths, {sequences:,} "
        f"sequences of {seq:,} a step. Expect {{{small.step.name}}} a step; {{review.pilot_steps}} steps take "
        f"{{{small.hours.name}}}{price}."
    )
    lines = (
        "A term passes up to the high end of its 80% interval. Above the stop line, as far again, do not launch: the "
        "expectation is wrong by more than its interval. Between the two, calibrate and review again."
    )
    untested = f"It cannot tell: {', '.join(small.untested)}. " if small.untested else ""
    blind = (
        f"{untested}Stragglers, the network with every node at once and the store are larger questions than a pilot."
    )
    return Section(heading, (run, lines, blind), ("review.pilot",))


def _questions(findings: list[Finding]) -> Section:
    """What nobody has said yet, and who could."""
    asked = [f"{f.code}: {f.fix}" for f in findings if f.verdict is Verdict.UNKNOWN and f.fix]
    text = "Each of these is unknown to the review, and none is rounded to a pass." if asked else "None is left open."
    return Section("Open questions", (text, *asked))
