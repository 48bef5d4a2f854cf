"""What a workload refuses, and the workloads made from one."""

from typing import Any

import numpy as np
import pytest
from tests.serve.simulate.grids import a_workload

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.traffic.workload import Workload


@pytest.mark.parametrize(
    ("arrival_s", "inputs", "outputs", "message"),
    [
        ([0.0, 2.0, 1.0], [1, 1, 1], [1, 1, 1], r"1 times before the one above \(first: row 2\)"),
        ([-1.0, 0.0], [1, 1], [1, 1], r"1 negative times \(first: row 0\)"),
        ([0.0, np.nan], [1, 1], [1, 1], "1 times that are not finite"),
        ([0.0, 1.0, 2.0], [0, 1, 0], [1, 1, 1], r"2 requests without input \(first: row 0\)"),
        ([0.0, 1.0], [1, 1], [1, 0], r"1 requests without output \(first: row 1\)"),
        ([0.0, 1.0], [1, 2**31], [1, 1], "1 requests of absurd length"),
        ([], [], [], "at least one request"),
        ([0.0], [1, 2], [1], "Expected 1 values, got 2"),
        ([0.0], [1.5], [1], "whole numbers"),
        ([0.0], ["a"], [1], "a list of numbers"),
    ],
)
def test_refuses(arrival_s: list[float], inputs: list[float], outputs: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Workload(np.array(arrival_s), np.array(inputs), np.array(outputs))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"service": np.array([0, 1])}, "1 requests of an unknown class"),
        ({"concurrency": -1}, "a concurrency"),
        ({"concurrency": 1, "think_s": np.inf}, "a think time"),
        ({"hashes": np.array([1]), "hash_offsets": np.array([0, 1, 1])}, "the tokens of a hashed block"),
        ({"hashes": np.array([1]), "hash_offsets": np.array([0, 1, 2]), "hash_tokens": 4}, "offsets from 0"),
        ({"hashes": np.array([1, 2]), "hash_offsets": np.array([0, 0, 2]), "hash_tokens": 99}, "at most one hash per"),
    ],
)
def test_refuses_options(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        a_workload([0.0, 1.0], [5, 5], [1, 1], **more)


def test_arrays_are_frozen() -> None:
    workload = a_workload([0.0, 1.0], [5, 5], [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        workload.input_tokens[0] = 7


def test_take_keeps_each_request_with_its_hashes() -> None:
    more = {"hashes": np.array([1, 2, 3, 4]), "hash_offsets": np.array([0, 1, 3, 4]), "hash_tokens": 4}
    workload = a_workload([0.0, 1.0, 2.0], [4, 8, 3], [1, 2, 3], priority=np.array([5, 6, 7]), **more)
    part = workload.take(np.array([True, False, True]))
    assert part.hashes.tolist() == [1, 4]
    assert part.hash_offsets.tolist() == [0, 1, 2]
    assert part.priority.tolist() == [5, 7]
    assert workload.take([1]).hashes.tolist() == [2, 3]
    assert workload.take(slice(1, 3)).output_tokens.tolist() == [2, 3]


def test_tiles_follow_each_other_at_the_same_rate() -> None:
    more = {"hashes": np.array([1, 2]), "hash_offsets": np.array([0, 1, 2]), "hash_tokens": 4}
    tiled = a_workload([0.0, 1.0], [4, 4], [1, 2], **more).tiled(3)
    assert tiled.arrival_s.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert tiled.hash_offsets.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert tiled.output_tokens.tolist() == [1, 2] * 3


def test_rate_scales_arrivals() -> None:
    workload = a_workload([0.0, 4.0], [4, 4], [1, 2])
    assert workload.rate_scaled(2).arrival_s.tolist() == [0.0, 2.0]
    assert workload.span_s == 4.0
    with pytest.raises(InputError, match="a factor above 0"):
        workload.rate_scaled(0)
