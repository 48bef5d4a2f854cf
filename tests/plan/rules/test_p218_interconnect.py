"""P218: the network."""

from tests.plan.reviews import facts, finding, number


def test_one_domain_needs_no_network() -> None:
    assert "one scale-up domain" in finding(facts(cluster={"chips": "8xH100"}), "P218").sentence


def test_a_named_network_passes_with_its_sensitivity() -> None:
    found = finding(facts(cluster={"chips": "64xH100", "network": "infiniband_ndr"}), "P218")
    assert str(found.verdict) == "pass"
    assert number(found.value) >= 0


def test_an_assumed_one_is_unknown_where_it_matters() -> None:
    found = finding(facts({"zero": 3}, sequences=32), "P218")
    assert str(found.verdict) == "unknown"
    assert number(found.cost.mfu_points) == number(found.value) > 2


def test_and_a_warning_where_it_does_not() -> None:
    assert str(finding(facts({"zero": 3}, sequences=32), "P218", 90).verdict) == "warn"
