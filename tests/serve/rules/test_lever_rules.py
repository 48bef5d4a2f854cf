"""S4xx: each verdict, on the toy step model."""

from typing import Any

import pytest
from tests.serve.levers.toys import toy_setup, toy_site

from ridgeline.core.case import Case
from ridgeline.core.finding import Finding, Verdict
from ridgeline.core.plugins import find_rule
from ridgeline.serve.levers.facts import LeverFacts
from ridgeline.serve.levers.ledger import ledger
from ridgeline.serve.levers.outcome import switched


def facts(room: float = 64, acceptance: float = 0.8, used: str = "", **options: Any) -> LeverFacts:
    site = toy_site(room=room, acceptance=acceptance)
    setup = toy_setup(**options)
    if used:
        setup = switched(setup, used, True)
    found = ledger(setup, site, 2.5 / 3600)
    return LeverFacts(found, site.speculation(setup.deployment, site.steps(setup.deployment)), None)


def only(code: str, given: LeverFacts) -> Finding:
    rule = find_rule(code)
    (found,) = rule.check(given, rule)
    case = Case("test", "test")
    case.add_findings([found])
    assert "{" not in case.text(found.sentence)
    return found


def test_a_large_lever_is_left_unused() -> None:
    found = only("S401", facts(hit_rate=0.1, achievable_hit_rate=0.8))
    assert found.verdict is Verdict.WARN
    assert "Prompt order" in found.sentence
    assert found.fix == "Try prompt order for the cache on one replica."


def test_a_risk_is_named() -> None:
    assert "gate it" in only("S401", facts(routing={"share": 0.9, "cost": 0.1})).sentence


def test_small_levers_pass() -> None:
    assert only("S401", facts()).verdict is Verdict.PASS
    assert only("S401", facts(max_sequences=1, acceptance=0.0)).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("acceptance", "used", "rate", "verdict"),
    [
        (0.8, "speculative", 2.0, Verdict.PASS),
        (0.1, "speculative", 9.0, Verdict.WARN),
        (0.1, "", 9.0, Verdict.PASS),
    ],
)
def test_speculation(acceptance: float, used: str, rate: float, verdict: Verdict) -> None:
    """At 9 requests/s so many sequences decode that three drafted tokens each are bound by compute."""
    found = only("S402", facts(room=512, acceptance=acceptance, used=used, rate=rate))
    assert found.verdict is verdict
    assert bool(found.fix) == (verdict is Verdict.WARN)


@pytest.mark.parametrize(
    ("used", "replicas", "verdict"),
    [("disaggregated", 2, Verdict.WARN), ("", 2, Verdict.PASS), ("", 1, Verdict.UNKNOWN)],
)
def test_disaggregation(used: str, replicas: int, verdict: Verdict) -> None:
    assert only("S403", facts(used=used, replicas=replicas)).verdict is verdict


@pytest.mark.parametrize(
    ("achievable", "verdict"), [(None, Verdict.UNKNOWN), (0.42, Verdict.PASS), (0.8, Verdict.WARN)]
)
def test_a_forfeited_cache(achievable: float | None, verdict: Verdict) -> None:
    options: dict[str, Any] = {} if achievable is None else {"achievable_hit_rate": achievable}
    found = only("S404", facts(hit_rate=0.4, **options))
    assert found.verdict is verdict
    if achievable:
        assert found.value is not None
        assert float(found.value.value) == pytest.approx(100 * (achievable - 0.4))
