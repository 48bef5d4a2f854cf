"""A finding is a rule that fired: one sentence, a verdict, a value beside its threshold, a cost and a fix.

A rule is one decorated function in one file of a room's ``rules`` folder. Its docstring is the page that
``ridgeline rule CODE`` prints and has the headings in `HEADINGS`, in order.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import Quantity, Source, leaf

HEADINGS = ("What it checks", "Why it matters", "How to confirm", "What to do, cheapest first", "Sources")
CODE = re.compile(r"^[PFTRSCMGE]\d{3}$")


class Verdict(StrEnum):
    """``unknown`` is an honest answer and is never rounded to pass."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


_SEVERITY = {Verdict.FAIL: 0, Verdict.UNKNOWN: 1, Verdict.WARN: 2, Verdict.PASS: 3}


@dataclass(frozen=True)
class Cost:
    """What a finding costs. Each figure is a quantity, or None where it is not known or does not apply."""

    seconds: Quantity | None = None
    mfu_points: Quantity | None = None
    chip_hours: Quantity | None = None
    dollars: Quantity | None = None

    @property
    def figures(self) -> dict[str, Quantity]:
        """The known figures by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def rank(self) -> float:
        """A size to sort by: dollars, or chip-hours where there is no price."""
        for quantity in (self.dollars, self.chip_hours, self.mfu_points, self.seconds):
            if quantity is not None:
                return float(quantity.value)
        return 0.0


@dataclass(frozen=True)
class Finding:
    """One checked statement. ``sentence`` may hold ``{quantity.name}``, which renderers turn into numbers."""

    code: str
    title: str
    verdict: Verdict
    sentence: str
    fix: str
    value: Quantity | None = None
    threshold: Quantity | None = None
    at_least: bool = False
    cost: Cost = field(default_factory=Cost)
    cites: tuple[Quantity, ...] = ()

    @property
    def margin(self) -> float | None:
        """How far inside the limit (positive) or outside (negative) the value is, as a fraction of the threshold."""
        if self.value is None or self.threshold is None or not self.threshold.base:
            return None
        distance = (float(self.threshold.base) - float(self.value.base)) / abs(float(self.threshold.base))
        return -distance if self.at_least else distance

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Every quantity the finding rests on."""
        own = [q for q in (self.value, self.threshold) if q is not None]
        return (*own, *self.cost.figures.values(), *self.cites)


def by_cost(findings: Iterable[Finding]) -> list[Finding]:
    """What failed first, then by cost, then what is unknown or warns without one; passes last."""

    def order(finding: Finding) -> tuple[bool, bool, float, int, str]:
        severity = _SEVERITY[finding.verdict]
        failed, passed = finding.verdict is Verdict.FAIL, finding.verdict is Verdict.PASS
        return (not failed, passed, -finding.cost.rank, severity, finding.code)

    return sorted(findings, key=order)


@dataclass(frozen=True)
class Rule:
    """A registered rule. ``check(facts, rule)`` yields findings; ``threshold`` is what configuration may change.

    A value passes at or below the threshold, or at or above it where ``at_least`` is set.
    """

    code: str
    title: str
    check: Callable[[Any, "Rule"], Iterable[Finding]]
    threshold: Quantity | None = None
    at_least: bool = False

    def holds(self, value: Quantity) -> bool:
        """Whether the value is on the right side of the threshold."""
        assert self.threshold is not None, f"{self.code} has no threshold"
        inside = float(value.base) - float(self.threshold.base)
        return inside >= 0 if self.at_least else inside <= 0

    @property
    def page(self) -> str:
        """The rule's documentation page."""
        return inspect.cleandoc(self.check.__doc__ or "")

    def found(self, verdict: Verdict, sentence: str, fix: str, **details: Any) -> Finding:
        """A finding of this rule, with its threshold beside the value."""
        return Finding(
            self.code, self.title, verdict, sentence, fix, threshold=self.threshold, at_least=self.at_least, **details
        )


def rule(
    code: str, title: str, *, threshold: float | None = None, unit: str = "1", why: str = "", at_least: bool = False
) -> Callable[[Callable[[Any, Rule], Iterable[Finding]]], Rule]:
    """Register a rule. ``why`` says where the default threshold comes from."""
    if not CODE.match(code):
        raise ValueError(f"{code} is not a rule code")

    def register(check: Callable[[Any, Rule], Iterable[Finding]]) -> Rule:
        name = f"threshold.{code.lower()}"
        limit = None if threshold is None else leaf(name, threshold, unit, "assumed", Source(f"rule {code}"), why)
        if limit is not None:
            limit = limit.titled(f"Threshold of {code}, {title.lower()}")
        return Rule(code, title, check, limit, at_least)

    return register


@dataclass(frozen=True)
class RuleConfig:
    """The ``[rules]`` table of ``ridgeline.toml``: code prefixes to select or ignore, and thresholds by code."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def apply(self, rules: Iterable[Rule], family: str = "") -> list[Rule]:
        """The rules of a family to run, out of all there are.

        Raises `InputError` for a threshold on a rule that is unknown or has none.
        """
        known = {r.code: r for r in rules}
        for code in self.thresholds:
            if code not in known or known[code].threshold is None:
                hint = did_you_mean(code, [c for c, r in known.items() if r.threshold is not None])
                raise InputError.expected("a rule with a threshold", code, where="$.rules.threshold", hint=hint)
        chosen = [r for code, r in sorted(known.items()) if code.startswith(family) and self._wants(code)]
        return [self._with_threshold(r) for r in chosen]

    def _wants(self, code: str) -> bool:
        selected = not self.select or code.startswith(self.select)
        return selected and not (self.ignore and code.startswith(self.ignore))

    def _with_threshold(self, item: Rule) -> Rule:
        if item.code not in self.thresholds or item.threshold is None:
            return item
        source = Source("ridgeline.toml", f"$.rules.threshold.{item.code}")
        limit = leaf(item.threshold.name, self.thresholds[item.code], item.threshold.unit, "specified", source)
        return replace(item, threshold=limit)


def run_rules(
    rules: Iterable[Rule], facts: object, config: RuleConfig | None = None, *, family: str = ""
) -> list[Finding]:
    """Run the configured rules of a family over the facts, in the order of `by_cost`."""
    chosen = (config or RuleConfig()).apply(rules, family)
    return by_cost(finding for item in chosen for finding in item.check(facts, item))
