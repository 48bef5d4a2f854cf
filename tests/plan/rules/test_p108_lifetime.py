"""P108: the size against the served tokens."""

from tests.plan.studies import TRAFFIC, finding, number, plan, product_plan


def test_unknown_without_traffic() -> None:
    found = finding(plan(), "P108")
    assert str(found.verdict) == "unknown"
    assert "--served" in found.fix


def test_a_smaller_choice_passes_with_what_it_saves() -> None:
    made = product_plan()
    found = finding(made, "P108")
    life = made.middle.of("30b")
    assert str(found.verdict) == "pass"
    assert found.value is life.compute
    assert life.saving in found.cites
    assert "and saves {life.s2.30b.saving} of serving" in found.sentence


def test_a_larger_choice_is_a_warning_with_what_it_adds() -> None:
    made = product_plan(choice="200B")
    found = finding(made, "P108")
    assert str(found.verdict) == "warn"
    assert "and adds {life.s2.200b.extra} of serving" in found.sentence
    assert found.cost.dollars is made.middle.of("200b").extra


def test_the_optimum_is_a_warning_where_a_smaller_size_would_save() -> None:
    made = plan(traffic=TRAFFIC)
    found = finding(made, "P108")
    assert str(found.verdict) == "warn"
    assert found.cost.dollars is made.middle.of("46b").saving
    assert number(found.cost.dollars) > 0


def test_the_optimum_passes_where_nothing_smaller_was_compared() -> None:
    found = finding(plan(traffic=TRAFFIC, candidates=["92.5B"]), "P108")
    assert str(found.verdict) == "pass"
    assert "No smaller candidate" in found.sentence


def test_without_a_price_compute_decides() -> None:
    made = plan({"chips": "512xGaudi2"}, traffic=TRAFFIC)
    found = finding(made, "P108")
    assert (str(found.verdict), found.cost.dollars) == ("warn", None)
    assert found.value is made.middle.lives[1].compute
    assert "save" not in found.sentence


def test_the_middle_scenario_is_the_middle_of_the_tokens() -> None:
    found = finding(product_plan(traffic=[TRAFFIC[1], TRAFFIC[2], TRAFFIC[0]]), "P108")
    assert "Over {traffic.s1.served} served" in found.sentence
