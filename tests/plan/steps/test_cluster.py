"""A cluster from its short name, with what is assumed listed."""

from dataclasses import replace

import pytest

from ridgeline.core.errors import InfeasibleError, InputError, UnknownDeviceError
from ridgeline.plan.steps.cluster import parse, resized


def test_a_known_cluster() -> None:
    found = parse("512xH100")
    assert (found.chips, found.node_size, found.nodes, found.network) == (512, 8, 64, "infiniband_ndr")
    assert found.name == "512xH100-SXM-80GB"
    assert (found.link_bytes_per_s, found.network_bytes_per_s) == (450e9, 50e9)
    assert {item.name for item in found.assumptions} == {"links.latency.scale_up", "links.latency.scale_out"}


@pytest.mark.parametrize("text", ["512 x H100", "512XH100", "512×h100-sxm", "5_12xH100"])
def test_spellings(text: str) -> None:
    assert parse(text) == parse("512xH100")


def test_a_rack_may_keep_spares() -> None:
    assert (parse("256xGB200").node_size, parse("72xGB200").node_size, parse("8xGB200").node_size) == (64, 72, 8)


def test_an_unstated_node_is_an_assumption() -> None:
    assert "clusters.domain.other" in {item.name for item in parse("512xA100").assumptions}


def test_the_network_can_be_named() -> None:
    assert parse("16xH100", network="ethernet_100g").network_bytes_per_s == 12.5e9


@pytest.mark.parametrize("text", ["H100", "xH100", "0xH100", "512", "-8xH100", "1e3xH100"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


def test_unknown_names() -> None:
    with pytest.raises(UnknownDeviceError):
        parse("8xH1000000")
    with pytest.raises(InputError, match="a known interconnect"):
        parse("16xH100", network="infiniband_nrd")


def test_nodes_are_whole() -> None:
    with pytest.raises(InfeasibleError) as caught:
        parse("20xH100")
    assert caught.value.nearest == "16 chips"
    assert parse("20xH100", node_size=4).nodes == 5


def test_a_resized_cluster_keeps_its_links() -> None:
    small = parse("4xH100", network="ethernet_100g")
    large = resized(small, 64)
    assert (large.node_size, large.network) == (8, "ethernet_100g")
    own = replace(parse("64xH100"), node_size=4)
    assert resized(own, 128).node_size == 4
    assert resized(own, 64) is own


def test_absurd_counts_are_refused_before_they_are_planned() -> None:
    with pytest.raises(InputError, match="at most 16,777,216 chips"):
        parse("99999999999999999992xH100")
