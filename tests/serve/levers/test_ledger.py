"""The ledger: it reconciles, overlapping levers overlap, and what is in use is priced in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.levers.toys import llama, multi_head, toy_setup, toy_site

from ridgeline.core.errors import InputError
from ridgeline.serve.levers.catalogue import fused, levers
from ridgeline.serve.levers.facts import LeverFacts
from ridgeline.serve.levers.ledger import Ledger, cost, ledger
from ridgeline.serve.levers.outcome import switched
from ridgeline.serve.levers.site import reserved_share, setup_of
from ridgeline.serve.levers.traffic import read_traffic

ROUTING = {"share": 0.5, "cost": 0.2}


def toy_ledger(**options: Any) -> Ledger:
    return ledger(toy_setup(**options), toy_site(), 2.5 / 3600)


@pytest.mark.parametrize("options", [{}, {"hit_rate": 0.2, "achievable_hit_rate": 0.7, "routing": ROUTING}])
def test_it_reconciles(options: dict[str, object]) -> None:
    found = toy_ledger(**options)
    assert cost(found.baseline) - sum(row.marginal for row in found.rows) == pytest.approx(cost(found.final))
    applied = [row for row in found.rows if row.after is not None and row.before is not None]
    product = 1.0
    for row in applied:
        assert row.before is not None
        assert row.after is not None
        product *= cost(row.after) / cost(row.before)
    assert cost(found.baseline) * product == pytest.approx(cost(found.final))


def test_the_quantities_reconcile() -> None:
    found = toy_ledger(hit_rate=0.2, achievable_hit_rate=0.7, routing=ROUTING)
    site, laid = toy_site(), found.setup.deployment
    facts = LeverFacts(found, site.speculation(laid, site.steps(laid)), None)
    marginals = sum(float(facts.marginal(row).value) for row in found.rows)
    assert float(facts.saved.value) == pytest.approx(marginals)
    assert float(facts.final.value) == pytest.approx(cost(found.final))
    assert facts.baseline.unit == "chip*s/Mtoken"


def test_levers_that_save_the_same_thing_overlap() -> None:
    """Prompts that are cached are not routed, and those that are routed need no cache."""
    found = toy_ledger(hit_rate=0.1, achievable_hit_rate=0.8, routing=ROUTING)
    chosen = [found.row(name) for name in ("hygiene", "speculative", "kv8", "routed")]
    alone = sum(row.saving_alone or 0.0 for row in chosen)
    assert cost(found.baseline) - cost(found.final) < alone


@given(st.floats(0, 0.9), st.floats(0, 0.1))
def test_a_higher_hit_rate_is_never_dearer(rate: float, more: float) -> None:
    low, high = (toy_ledger(hit_rate=value, max_sequences=16) for value in (rate, rate + more))
    assert cost(high.baseline) <= cost(low.baseline) * (1 + 1e-12)


def test_saving_is_hit_rate_times_discount() -> None:
    """Worked numbers I: with prompts as the whole cost, a hit rate of 40% saves 40% of what they cost."""
    found = toy_ledger(hit_rate=0.4).row("prefix")
    assert found.status == "in use"
    assert found.saving_alone == pytest.approx(0.4 * 0.1 / 100 * 1e6)  # 0.1 s a prompt, 100 tokens each


def test_pages_and_reservations() -> None:
    """Worked numbers I: 60-80% of the cache lost becomes under 4%. At the middle 3.2 times as many requests fit."""
    assert 1 / reserved_share() == pytest.approx(3.2)
    found = toy_ledger().row("paged")
    assert found.status == "in use"
    assert found.alone.without is not None
    assert found.alone.without.sequences == 20
    assert found.alone.with_ is not None
    assert found.alone.with_.sequences == 64


def test_what_is_in_use_is_not_applied_again() -> None:
    found = toy_ledger(hit_rate=0.4)
    used = [row for row in found.rows if row.status == "in use"]
    assert {row.lever.name for row in used} == {"paged", "prefix", "chunked", "shared_heads"}
    assert all(row.marginal == 0.0 for row in used)


def test_a_lever_that_loses_is_left_out() -> None:
    row = toy_ledger().row("disaggregated")
    assert row.status == "loses"
    assert (row.saving_alone or 0.0) < 0
    assert row.after is None
    assert "left out" in row.why


def test_what_cannot_be_turned_on_says_why() -> None:
    found = toy_ledger(replicas=1)
    assert found.row("disaggregated").why == "one replica cannot be split: needs two"
    assert "routing.share" in found.row("routed").why
    assert "hygiene" in found.row("hygiene").why


def test_open_levers_come_first_by_what_they_save() -> None:
    found = toy_ledger(hit_rate=0.1, achievable_hit_rate=0.8, routing=ROUTING).ranked
    opened = [row.saving_alone or 0.0 for row in found if row.status == "open"]
    assert opened == sorted(opened, reverse=True)
    assert [row.status for row in found][: len(opened)] == ["open"] * len(opened)


def test_heads_are_a_choice_of_the_design() -> None:
    plain = ledger(toy_setup(multi_head()), toy_site()).row("shared_heads")
    assert plain.status == "design"
    assert plain.after is None


def test_a_small_cache_is_faster_only_with_a_kernel() -> None:
    assert fused(llama(engine="vllm"), "fp8")
    assert not fused(llama(), "fp8")
    assert not fused(llama(engine="trtllm"), "fp4")  # no matrix units of that type on this chip


def test_every_lever_says_what_it_risks() -> None:
    assert len({lever.name for lever in levers()}) == len(levers())
    assert {lever.quality.partition(":")[0] for lever in levers()} == {"none", "unknown", "decided before training"}


def test_in_use_is_checked() -> None:
    traffic = read_traffic(None, input=1000, output=100, in_use=["paged"], hit_rate=0.4)
    setup = setup_of(llama(), traffic)
    assert (setup.paged, setup.prefix, setup.chunked, setup.hit_rate) == (True, False, False, 0.0)
    with pytest.raises(InputError, match="in_use"):
        setup_of(llama(), read_traffic(None, input=1000, output=100, in_use=["magic"]))


def test_room_that_is_of_no_use_says_so() -> None:
    row = toy_ledger(max_sequences=32).row("kv8")
    assert row.status == "no saving"
    assert row.why == "more room is of no use: the engine decodes at most 32 sequences"


def test_a_lever_in_use_may_cost() -> None:
    """The toy's prompts cost the same in chunks, so pools that were chosen cost what a waiting replica costs."""
    row = ledger(switched(toy_setup(), "disaggregated", True), toy_site()).row("disaggregated")
    assert row.status == "in use"
    assert row.why == "costs more than it saves at the largest rate"
