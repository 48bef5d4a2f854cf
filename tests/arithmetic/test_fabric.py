"""Collectives inside a node and across nodes, and the published exchanges with experts."""

import csv
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.arithmetic.fabric import KINDS, Network, collective, combine_bytes, dispatch_bytes, expert_exchange
from ridgeline.core.errors import InputError

NDR = Network.of("infiniband_ndr")
OURS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
        "alltoall": "all_to_all"}  # fmt: skip


@given(st.sampled_from(KINDS), st.floats(0, 1e11), st.sampled_from([1, 2, 3, 8, 16, 64, 1024]))
def test_an_interval_holds_its_estimate_and_no_group_of_one_takes_time(kind: str, size: float, group: int) -> None:
    node = min(group, 8)
    found = collective("H100").seconds(kind, size, group, node, NDR)
    assert found.low[0] <= found.seconds[0] <= found.high[0]
    assert (found.seconds[0] > 0) == (group > 1)


@given(st.sampled_from(KINDS), st.floats(1e5, 1e10), st.sampled_from([2, 8, 64]))
def test_more_bytes_never_take_less_time(kind: str, size: float, group: int) -> None:
    found = collective("B200").seconds(kind, np.array([size, 2 * size]), group, min(group, 8), NDR).seconds
    assert found[0] < found[1] * 1.05  # the library changes its algorithm: a larger message may be a little faster


def test_a_ring_across_nodes_is_bound_by_its_ports() -> None:
    found = collective("H100").seconds("all_gather", 1e9, 16, 1, NDR)
    assert found.seconds[0] == pytest.approx(1e9 * 15 / 16 / (50e9 * 0.9) + 15 * 5e-6)
    assert not found.measured[0]


def test_an_all_reduce_over_many_nodes_takes_the_latency_of_a_tree() -> None:
    found = collective("H100").seconds("all_reduce", 8.0, 1024, 1, NDR)
    assert found.seconds[0] == pytest.approx(2 * 10 * 5e-6, rel=1e-3)


def test_rails_share_the_message_of_a_node() -> None:
    one, eight = (collective("H100").seconds("all_reduce", 1e10, 64, node, NDR).seconds[0] for node in (1, 8))
    assert 5 < one / eight < 9


def test_an_all_to_all_sends_what_leaves_the_node_over_the_port() -> None:
    found = collective("H100").seconds("all_to_all", 1e9, 64, 8, NDR)
    assert found.seconds[0] == pytest.approx(1e9 * 7 / 8 / (50e9 * 0.9) + 7 * 5e-6)


def test_a_larger_domain_than_was_measured_is_extrapolated() -> None:
    found = collective("GB200").seconds("all_reduce", 1e9, np.array([4, 72]), 72)
    assert found.measured.tolist() == [False, False]  # beyond the largest message of the table
    assert found.seconds[1] / found.seconds[0] == pytest.approx((71 / 72) / (3 / 4), rel=0.1)
    assert np.log(found.high / found.low)[1] >= np.log(found.high / found.low)[0] - 1e-9


def test_a_relative_with_a_slower_link_is_slower() -> None:
    h800, h100 = (collective(name).seconds("all_reduce", 1e9, 8, 8) for name in ("H800-SXM-80GB", "H100"))
    assert 1.7 < h800.seconds[0] / h100.seconds[0] < 4
    assert not h800.measured[0]


def test_a_pair_of_chips_without_a_switch_has_one_link() -> None:
    found = collective("MI300X").seconds("point_to_point", 1e9, 2, 2)
    assert 1e9 / found.seconds[0] < 64e9


def test_a_torus_uses_both_ways_of_each_axis() -> None:
    ring = collective("TPU v5e").seconds("all_gather", 1e9, 16, 16).seconds[0]
    plane = collective("TPU v5e").seconds("all_gather", 1e9, 16, 16, axes=2).seconds[0]
    assert ring / plane == pytest.approx(2, rel=0.02)
    assert ring == pytest.approx(1e9 * 15 / 16 / (2 * 50e9 * 0.9), rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("broadcast", 1e6, 8, 8), "one of"),
        (("all_reduce", -1.0, 8, 8), "zero bytes"),
        (("all_reduce", 1e6, 12, 8), "whole nodes"),
        (("all_reduce", 1e6, 16, 8), "a network"),
        (("all_reduce", 1e6, 8, 0), "at least one chip"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[str, float, int, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        collective("H100").seconds(*arguments)


@pytest.mark.parametrize("link", ["infiniband_ndx", 0.0, -1.0, float("nan")])
def test_an_unusable_network_is_refused(link: str | float) -> None:
    with pytest.raises(InputError):
        Network.of(link)


def test_bytes_of_an_exchange() -> None:
    assert dispatch_bytes(128, 8, 7168) == 7_569_408
    assert combine_bytes(128, 8, 7168) == 14_680_064
    with pytest.raises(InputError, match="dispatch or combine"):
        expert_exchange("scatter", 1, 1, 128, 8)  # type: ignore[arg-type]


def test_an_exchange_between_published_groups_lies_between_them() -> None:
    found = expert_exchange("combine", 128, 8, 7168, np.array([16, 24, 32, 512]))
    assert found.seconds[0] < found.seconds[1] < found.seconds[2]
    assert found.measured.tolist() == [True, False, True, False]


@pytest.mark.data
def test_the_all_to_all_rows(data_dir: Path) -> None:
    with (data_dir / "compress" / "ep_alltoall.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["time_us"] and row["listed_GBps"]]
    assert len(rows) == 12
    for row in rows:
        tokens, top_k, width = (int(row[name]) for name in ("tokens_per_gpu", "topk", "hidden"))
        direction: Literal["dispatch", "combine"] = "dispatch" if row["op"].startswith("dispatch") else "combine"
        sent = (dispatch_bytes if direction == "dispatch" else combine_bytes)(tokens, top_k, width)
        assert sent / float(row["time_us"]) / 1e3 == pytest.approx(float(row["listed_GBps"]), rel=0.03)
        found = expert_exchange(direction, tokens, top_k, width, int(row["ep"]))
        assert sent / found.seconds[0] / 1e9 == pytest.approx(float(row["listed_GBps"]), rel=0.03)
        assert found.measured[0]


@pytest.mark.data
@pytest.mark.parametrize("system", ["a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm"])
def test_collectives_of_the_public_table(data_dir: Path, system: str) -> None:
    device = {"a100_sxm": "A100", "h100_sxm": "H100", "h200_sxm": "H200", "b200_sxm": "B200"}[system]
    table = pl.read_csv(data_dir / "plan" / "nccl_measured.csv.gz")
    table = table.filter((pl.col("system") == system) & (pl.col("nccl_dtype") == "half"))
    for (name,), rows in table.group_by("op_name"):
        size = 2 * rows["message_size_as_in_source"].to_numpy()
        found = collective(device).seconds(OURS[str(name)], size, rows["num_gpus"].to_numpy(), 8)
        actual = rows["latency_ms"].to_numpy() / 1e3
        assert np.median(np.abs(found.seconds / actual - 1)) < 0.05
        assert 0.75 < ((found.low <= actual * 1.001) & (actual * 0.999 <= found.high)).mean() < 0.95
        large = size > 1e8
        assert np.median(np.abs(found.seconds / actual - 1)[large]) < 0.05


@pytest.mark.data
def test_groups_between_the_fitted_ones_against_another_source(data_dir: Path) -> None:
    table = pl.read_csv(data_dir / "plan" / "allreduce_vtrain.csv.gz").filter(pl.col("gpu") == "a100")
    size, group = (table[name].to_numpy() for name in ("bytes", "num_gpus"))
    actual = table["out_of_place_time_ns"].to_numpy() / 1e9
    found = collective("A100").seconds("all_reduce", size, group, 8)
    off = np.abs(found.seconds / actual - 1)
    assert np.median(off) < 0.08
    assert np.median(off[size > 1e8]) < 0.06
