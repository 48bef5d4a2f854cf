"""Summaries of workloads, against the published statistics of the shared traces."""

import csv
from pathlib import Path

import numpy as np
import pytest

from ridgeline.serve.simulate.traffic.requests import read_requests
from ridgeline.serve.simulate.traffic.summary import dispersion, summary


def test_dispersion_counts_the_arrivals_of_a_second() -> None:
    assert dispersion(np.array([0.0, 1.0, 2.0, 3.0])) == 0.0
    assert dispersion(np.array([5.0, 5.1, 5.2, 8.9])) == pytest.approx(1.5)  # counts 3, 0, 0, 1


def test_dispersion_of_a_trace_that_spans_ages() -> None:
    assert dispersion(np.array([0.0, 1e12])) == pytest.approx(1.0)  # two lone arrivals are as Poisson's


@pytest.mark.data
def test_the_shared_traces(data_dir: Path) -> None:
    folder = data_dir / "serve" / "traces"
    with (folder / "trace_stats.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7
    for row in rows:
        read = read_requests(folder / f"{row['trace']}.parquet")
        assert read.arrival_s is not None
        found = summary(read.arrival_s, read.input_tokens, read.output_tokens)
        assert found.count == int(row["n"])
        assert found.span_s == pytest.approx(float(row["dur_s"]), abs=0.6)
        assert found.rate_per_s == pytest.approx(float(row["rate"]), rel=0.005)
        assert found.dispersion == pytest.approx(float(row["disp1s"]), abs=0.006)
        for name, spread in (("in", found.input), ("out", found.output)):
            assert spread.mean == pytest.approx(float(row[f"{name}_mean"]), abs=0.51)
            assert spread.p50 == pytest.approx(float(row[f"{name}_p50"]), abs=0.51)
            assert spread.p99 == pytest.approx(float(row[f"{name}_p99"]), abs=0.01)
        assert found.input.largest == int(row["in_max"])


@pytest.mark.data
def test_the_hashed_traces_keep_their_blocks(data_dir: Path) -> None:
    read = read_requests(data_dir / "serve" / "traces" / "mooncake_conversation.parquet")
    assert read.block_tokens == 512
    assert read.blocks is not None
    assert len({item for row in read.blocks for item in row}) == 182_790
