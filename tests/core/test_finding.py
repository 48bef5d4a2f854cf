"""Rules, findings, their order, and what configuration may change."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.finding import Cost, Finding, Rule, RuleConfig, Verdict, by_cost, rule, run_rules
from ridgeline.core.quantity import Quantity, given


def amount(name: str, value: float, unit: str = "USD") -> Quantity:
    return given(name, value, unit)


def finding(code: str, verdict: Verdict, cost: Cost | None = None) -> Finding:
    return Finding(code, "title", verdict, "sentence", "fix", cost=cost or Cost())


@rule("P901", "Share stays under the limit", threshold=0.8, why="the test says so")
def share_under_limit(facts: Quantity, self: Rule) -> Iterator[Finding]:
    """The share."""
    assert self.threshold is not None
    inside = facts.base <= self.threshold.base
    yield self.found(Verdict.PASS if inside else Verdict.FAIL, "{share} is used", "use less", value=facts)


@rule("T901", "Always unknown")
def always_unknown(facts: Quantity, self: Rule) -> Iterator[Finding]:
    """Nothing is known."""
    yield self.found(Verdict.UNKNOWN, "not measured", "measure it")


RULES = [always_unknown, share_under_limit]


def test_a_rule_gives_its_threshold_and_margin() -> None:
    (fail,) = run_rules([share_under_limit], amount("share", 1.0, "1"))
    assert (fail.code, fail.verdict, fail.title) == ("P901", Verdict.FAIL, "Share stays under the limit")
    assert fail.threshold is not None
    assert fail.threshold.kind == "assumed"
    assert fail.margin == pytest.approx(-0.25)
    (passed,) = run_rules([share_under_limit], amount("share", 0.6, "1"))
    assert passed.margin == pytest.approx(0.25)


def test_margin_is_absent_without_a_value() -> None:
    assert finding("P901", Verdict.UNKNOWN).margin is None


def test_failures_first_then_dearest_and_passes_last() -> None:
    dear = finding("T902", Verdict.WARN, Cost(dollars=amount("dear", 900.0)))
    cheap = finding("T903", Verdict.FAIL, Cost(dollars=amount("cheap", 5.0)))
    unknown = finding("T904", Verdict.UNKNOWN)
    warning = finding("T905", Verdict.WARN)
    passed = finding("T901", Verdict.PASS, Cost(dollars=amount("saved", 1e9)))
    assert by_cost([passed, warning, unknown, cheap, dear]) == [cheap, dear, unknown, warning, passed]


def test_cost_ranks_by_dollars_before_time() -> None:
    assert Cost(seconds=amount("s", 7.0, "s"), dollars=amount("d", 3.0)).rank == 3.0
    assert Cost(seconds=amount("s", 7.0, "s")).rank == 7.0
    assert Cost().rank == 0.0
    assert list(Cost(seconds=amount("s", 7.0, "s")).figures) == ["seconds"]


def test_quantities_are_all_that_it_rests_on() -> None:
    value, cost, cited = amount("v", 1.0), amount("c", 2.0), amount("x", 3.0)
    made = Finding("P901", "t", Verdict.WARN, "s", "f", value=value, cost=Cost(dollars=cost), cites=(cited,))
    assert made.quantities == (value, cost, cited)


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        (RuleConfig(), ["P901", "T901"]),
        (RuleConfig(select=("P",)), ["P901"]),
        (RuleConfig(select=("P9", "T901")), ["P901", "T901"]),
        (RuleConfig(ignore=("T",)), ["P901"]),
        (RuleConfig(select=("T",), ignore=("T901",)), []),
    ],
)
def test_selection(settings: RuleConfig, codes: list[str]) -> None:
    assert [r.code for r in settings.apply(RULES)] == codes


def test_a_configured_threshold_names_its_source() -> None:
    (made,) = run_rules([share_under_limit], amount("share", 1.0, "1"), RuleConfig(thresholds={"P901": 1.5}))
    assert made.verdict is Verdict.PASS
    assert made.threshold is not None
    assert made.threshold.kind == "specified"
    assert made.threshold.source is not None
    assert made.threshold.source.title == "ridgeline.toml"


@pytest.mark.parametrize("code", ["P90", "T901"])
def test_a_threshold_needs_a_rule_that_has_one(code: str) -> None:
    with pytest.raises(InputError, match="threshold"):
        RuleConfig(thresholds={code: 1.0}).apply(RULES)


@pytest.mark.parametrize("code", ["p901", "P90", "X901", "P9011"])
def test_codes_have_one_form(code: str) -> None:
    with pytest.raises(ValueError, match="rule code"):
        rule(code, "title")


@pytest.mark.parametrize(("value", "margin"), [(0.3, 0.25), (0.5, -0.25)])
def test_margin_of_an_upper_limit(value: float, margin: float) -> None:
    made = Finding("P901", "t", Verdict.WARN, "s", "f", value=amount("v", value, "1"), threshold=amount("t", 0.4, "1"))
    assert made.margin == pytest.approx(margin)
    assert replace(made, at_least=True).margin == pytest.approx(-margin)
