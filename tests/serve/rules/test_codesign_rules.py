"""S5xx: each verdict, on small grids."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.plan.studies import WORKED_H100
from tests.serve.codesign.asked import LIMITS, limits, need, none, turn

from ridgeline.core.case import Case
from ridgeline.core.finding import Finding, Verdict
from ridgeline.core.plugins import find_rule
from ridgeline.serve.codesign.facts import Designed, codesign


def only(code: str, given: Designed) -> Finding:
    rule = find_rule(code)
    (found,) = rule.check(given, rule)
    case = Case("test", "test")
    case.add_findings([found])
    if given.winner is not None:
        case.add(given.excess, given.gained, given.worth, given.optimum.params)
    assert "{" not in case.text(found.sentence)
    return found


def plain(axes: Mapping[str, Any] | None = None, **keys: Any) -> Designed:
    dense = {"mixtures": [], "attention": ["gqa"], "weights": ["bf16"], "kv": ["bf16"], "aspects": [128]}
    return codesign(need(dense | dict(axes or {}), **keys))


def test_the_budget_is_met_missed_or_not_known(tmp_path: Path) -> None:
    assert only("S501", turn()).verdict is Verdict.PASS
    missed = only("S501", none())
    assert missed.verdict is Verdict.FAIL
    assert "TPOT" in missed.fix
    assert missed.value is not None
    assert float(missed.value.value) > 100
    (tmp_path / "bare.toml").write_text(WORKED_H100)
    assert only("S501", plain(device=str(tmp_path / "bare.toml"))).verdict is Verdict.UNKNOWN


def test_the_edge_of_the_grid() -> None:
    wide = only("S502", plain(turn="20s"))
    assert wide.verdict is Verdict.WARN
    assert "largest width" in wide.sentence
    assert only("S502", plain({"widest": 16384})).verdict is Verdict.PASS


def test_key_value_heads() -> None:
    axes = {"kv_heads": [1, 2, 4, 8, 16]}
    bound = only("S503", plain(axes, **LIMITS, ceiling=2.0))
    assert bound.verdict is Verdict.WARN
    assert "Key-value heads bind: with" in bound.sentence
    assert only("S503", plain({"kv_heads": [8]})).verdict is Verdict.PASS


def test_other_laws_choose_otherwise() -> None:
    """Without a serving limit that binds, each law wants its own optimum."""
    apart = only("S504", plain({"widest": 16384, "narrowest": 4096}, turn="20s", chips=16))
    assert apart.verdict is Verdict.WARN
    assert "hoffmann-2022" in apart.sentence
    assert only("S504", plain()).verdict is Verdict.PASS


def test_what_no_law_speaks_of() -> None:
    assert only("S505", plain()).verdict is Verdict.PASS
    narrow = only("S505", plain({"weights": ["fp8"], "mixtures": [[8, 2]]}))
    assert narrow.verdict is Verdict.UNKNOWN
    assert "weights in fp8" in narrow.sentence


def test_what_the_budget_costs_in_loss() -> None:
    little = only("S506", limits())
    assert little.verdict is Verdict.PASS
    much = only("S506", plain({"narrowest": 1024}, chips=1, ttft="40ms", tpot="5ms"))
    assert much.verdict is Verdict.WARN
    assert "above" in much.sentence


def test_without_a_choice_only_the_budget_speaks() -> None:
    facts = none()
    for code in ("S502", "S503", "S504", "S505", "S506"):
        rule = find_rule(code)
        assert list(rule.check(facts, rule)) == []
