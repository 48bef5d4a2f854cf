"""The prefix-cache oracle: by hand, against a plain statement of it, and on public traces."""

from collections import OrderedDict
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.serve.simulate.grids import a_workload, shared_prefixes

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.engine.cache import block_hashes, hit_rate, hits
from ridgeline.serve.simulate.traffic.workload import Workload


def hashed(inputs: list[int], blocks: list[list[int]], size: int) -> Workload:
    flat = np.array([h for row in blocks for h in row])
    offsets = np.cumsum([0, *map(len, blocks)])
    more = {"hashes": flat, "hash_offsets": offsets, "hash_tokens": size}
    return a_workload([0.0] * len(inputs), inputs, [1] * len(inputs), **more)


def test_a_started_block_counts_what_it_has() -> None:
    workload = hashed([10, 10, 6], [[1, 2, 3], [1, 2, 3], [1, 9]], 4)
    assert hits(workload).tokens.tolist() == [0, 10, 4]
    assert hit_rate(workload) == pytest.approx(14 / 26)


def test_the_least_recently_used_block_leaves() -> None:
    workload = hashed([4, 4, 4, 4], [[1], [2], [1], [2]], 4)
    assert hit_rate(workload, 2) == 0.5
    assert hit_rate(workload, 1) == 0.0


def plain(workload: Workload, capacity: int) -> list[int]:
    held: OrderedDict[int, None] = OrderedDict()
    found = []
    for i in range(len(workload)):
        own = workload.hashes[workload.hash_offsets[i] : workload.hash_offsets[i + 1]].tolist()
        found.append(next((n for n, key in enumerate(own) if key not in held), len(own)))
        for key in own:
            held[key] = None
            held.move_to_end(key)
            if len(held) > capacity:
                held.popitem(last=False)
    return found


@hypothesis.given(seed=st.integers(0, 2**32 - 1), capacity=st.integers(1, 40))
def test_agrees_with_an_ordered_dictionary(seed: int, capacity: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = rng.integers(1, 60, 30)
    workload = a_workload([0.0] * 30, inputs.tolist(), [1] * 30, **shared_prefixes(rng, inputs, 8))
    assert hits(workload, capacity).blocks.tolist() == plain(workload, capacity)
    assert hits(workload).blocks.tolist() == plain(workload, 10_000)
    assert hit_rate(workload, capacity) <= hit_rate(workload) <= 1


def test_blocks_are_split_and_joined() -> None:
    workload = hashed([20, 20], [[5, 6, 7], [5, 6, 9]], 8)
    split, offsets = block_hashes(workload, 4)
    assert offsets.tolist() == [0, 5, 10]
    assert (split[:4] == split[5:9]).all()
    assert split[4] != split[9]
    assert len(set(split.tolist())) == 6
    joined, offsets = block_hashes(workload, 16)
    assert offsets.tolist() == [0, 1, 2]
    assert joined[0] == joined[1]


def test_refuses_what_has_no_hashes() -> None:
    with pytest.raises(InputError, match="block hashes of the prompts"):
        hit_rate(a_workload([0.0], [4], [1]))
    with pytest.raises(InputError, match="at least one block"):
        hit_rate(hashed([4], [[1]], 4), 0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("trace", "rates"),
    [
        ("mooncake_conversation", (37.36, 33.21, 21.53, 4.54)),
        ("mooncake_synthetic", (65.12, 63.56, 43.13, 8.40)),
    ],
)
def test_public_traces(data_dir: Path, trace: str, rates: tuple[float, ...]) -> None:
    polars = pytest.importorskip("polars")
    table = polars.read_parquet(data_dir / "serve" / "traces" / f"{trace}.parquet")
    workload = Workload(
        table["arrival_s"].to_numpy(),
        table["input_tokens"].to_numpy(),
        np.maximum(table["output_tokens"].to_numpy(), 1),
        hashes=table["hash_ids"].explode().to_numpy(),
        hash_offsets=np.concatenate([[0], np.cumsum(table["hash_ids"].list.len().to_numpy().astype(np.int64))]),
        hash_tokens=512,
    )
    capacities = (None, 30_000, 10_000, 1_000)
    assert [round(100 * hit_rate(workload, blocks), 2) for blocks in capacities] == list(rates)
