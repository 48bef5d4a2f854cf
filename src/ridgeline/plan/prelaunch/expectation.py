"""The derived expectation as an artifact: a small versioned Case that later gates and investigations read.

``expectation.json`` holds ``expected.mfu`` with ``.low``, ``.high`` (80%), ``.low95`` and ``.high95`` in percent,
``expected.step`` (s) with the same ends, ``expected.tokens_rate`` (token/s/chip), the terms ``step.<term>`` (s) with
their whole derivation, the plan, and ``expected.version``: 1 for the first, one more each time that the number or what
it rests on moves. Names are stable.
"""

from collections.abc import Iterable
from pathlib import Path

from ridgeline.core.case import Case, InputFile, Section, load
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.plan.prelaunch.review_facts import ReviewFacts

FILE = "expectation.json"
_SAME = 1e-6  # relative: below it a number has not moved


def expectation_case(facts: ReviewFacts, *, command: str = "", before: Path | None = None) -> Case:
    """The artifact of a review; ``before`` is the file that it replaces, where there is one.

    Raises `InputError` where ``before`` is no case.
    """
    case = Case("expectation", facts.proposal.name, command=command, inputs=list(_inputs(facts)))
    case.add(*facts.expected.all, tokens_rate(facts), *plan_sizes(facts), facts.batch.tokens)
    case.add(*facts.terms.values(), facts.ceiling, facts.memory)
    if facts.comparison is not None:
        case.add(facts.comparison.expectation, facts.comparison.measured)
    if facts.claimed is not None:
        case.add(facts.claimed)
    version, was = _version(case, before)
    case.add(given("expected.version", version, "1", FILE).titled("Version of the expectation"))
    ends = "80%: {expected.mfu.low} to {expected.mfu.high}; 95%: {expected.mfu.low95} to {expected.mfu.high95}"
    case.decision = f"Expect {{expected.mfu}} MFU ({ends}), {{expected.step}} a step. MFU counts {facts.counted}."
    case.because = f"Version {version}.{was} MFU while training runs: restarts and stalls are goodput, another number."
    residuals = facts.predicted.residuals
    text = (
        f"Intervals are those of {residuals.groups} held-out groups of published runs of class {residuals.name}. "
        f"The denominator is the dense peak, {{{facts.peak.name}}}, of {{review.chips}}."
    )
    case.sections = [Section("What it rests on", (text,))]
    return case


def tokens_rate(facts: ReviewFacts) -> Quantity:
    """``expected.tokens_rate`` (token/s/chip)."""
    inputs = {"tokens": facts.batch.tokens, "step": facts.step, "chips": facts.chips}
    found = derive("expected.tokens_rate", "tokens/step/chips", "token/s/chip", **inputs)
    return found.titled("Expected tokens per second and chip")


def plan_sizes(facts: ReviewFacts) -> Iterable[Quantity]:
    """``expected.plan.<axis>``: the sizes that the expectation holds for."""
    for name, value in facts.plan.items():
        if isinstance(value, int):
            yield given(f"expected.plan.{name}", value, "1", "the plan").titled(f"{name} of the plan")


def _inputs(facts: ReviewFacts) -> Iterable[InputFile]:
    yield from facts.proposal.inputs
    if facts.comparison is not None and facts.comparison.file is not None:
        yield facts.comparison.file


def _version(case: Case, before: Path | None) -> tuple[int, str]:
    """The number of this version, and what the one before said where it differs."""
    if before is None or not before.is_file():
        return 1, ""
    old = load(before)["quantities"]
    last = int(old.get("expected.version", {"value": 1})["value"])
    kept = {name: entry["value"] for name, entry in old.items() if name != "expected.version"}
    now = {name: float(item.value) for name, item in case.quantities.items()}
    same = set(kept) == set(now) and all(abs(now[name] - kept[name]) <= _SAME * abs(now[name]) for name in now)
    if same:
        return last, ""
    was = old.get("expected.mfu", {}).get("text")
    return last + 1, f" Version {last} said {was}." if was else ""
