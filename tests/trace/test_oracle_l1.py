"""L1 against values computed from the raw events of public traces."""

from pathlib import Path

import numpy as np
import pytest

from ridgeline.trace.events import Run
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import run_buckets
from ridgeline.trace.levels.l1 import Collectives, Row, collectives
from ridgeline.trace.read import read_run
from ridgeline.trace.rules.t152_late_rank import excess

pytestmark = pytest.mark.data

# kind, dtype, MiB of the rows that count together; calls, kernel, exposed, wire and largest skew in us; bus in GB/s
ROWS = [
    ("all_gather", "fp32", 144.0, 8, 18_417, 17_281, 3_572, 3_206, 295.9),
    ("reduce_scatter", "bf16", 73.7, 10, 10_476, 8_633, 2_970, 6_114, 227.6),
    ("reduce_scatter", "bf16", 192 / 2**20, 4, 5_683, 5_680, 60, 5_675, None),
    ("reduce_scatter", "fp32", 144.0, 8, 3_962, 2_122, 3_666, 154, 288.3),
    ("all_gather", "bf16", 73.7, 10, 2_327, 2_143, 2_288, 21, 295.4),
    ("all_gather", "bf16", 0.0, 8, 2_004, 1_489, 189, 1_524, None),
]


@pytest.fixture(scope="module")
def gpt(data_dir: Path) -> tuple[Run, Collectives]:
    run = read_run(data_dir / "trace" / "gpt_8xh100")
    found = collectives(run)
    assert found is not None
    return run, found


def matching(found: Collectives, kind: str, dtype: str, mib: float) -> list[Row]:
    """The row of that size; for 0 all small ones."""
    named = [r for r in found.rows if (r.key.kind, r.key.dtype) == (kind, dtype) and r.key.size is not None]
    sizes = {row: (row.key.size or 0) / 2**20 for row in named}
    small = [row for row in named if sizes[row] < 0.01]
    return small if mib == 0 else [row for row in named if sizes[row] == pytest.approx(mib, rel=2e-3)]


@pytest.mark.parametrize("expected", ROWS, ids=lambda row: f"{row[0]} {row[1]} {row[2]:.2g} MiB")
def test_rows_of_eight_ranks(
    gpt: tuple[Run, Collectives], expected: tuple[str, str, float, int, int, int, int, int, float | None]
) -> None:
    kind, dtype, mib, calls, kernel, exposed, wire, skew, bus = expected
    rows = matching(gpt[1], kind, dtype, mib)
    assert sum(int(row.count[0]) for row in rows) == sum(row.matched for row in rows) == calls
    assert sum(int(row.kernel[0]) for row in rows) / 1e3 == pytest.approx(kernel, abs=0.6)
    assert sum(int(row.exposed[0]) for row in rows) / 1e3 == pytest.approx(exposed, abs=0.6)
    assert sum(row.wire for row in rows) / 1e3 == pytest.approx(wire, abs=0.6)
    assert max(row.skew for row in rows) / 1e3 == pytest.approx(skew, abs=10)  # moves with the estimate of the clocks
    if bus is not None:
        assert rows[0].bus_bytes_per_s == pytest.approx(bus * 1e9, abs=0.06e9)


def test_every_call_is_matched(gpt: tuple[Run, Collectives]) -> None:
    """The ranks saw 76 to 84 calls: those launched before the profile began have no details."""
    assert gpt[1].unmatched.tolist() == [0] * 8
    assert sum(row.matched for row in gpt[1].rows if row.key.size is not None) == 56


def test_the_late_rank_is_found_with_its_cause(gpt: tuple[Run, Collectives]) -> None:
    """Rank 1 has the shortest collectives, because everybody waits for it."""
    run, found = gpt
    assert int(np.argmin(found.kernel)) == int(np.argmax(found.blame)) == 1
    with_details = [row for row in found.rows if row.key.size is not None]
    assert sum(int(row.last[1]) for row in with_details) == 17
    assert found.blame[1] > 5 * np.delete(found.blame, 1).max()
    assert found.kernel[1] / 1e6 == pytest.approx(23.126, abs=1e-3)
    assert found.idle[1] / 1e6 == pytest.approx(34.981, abs=1e-3)
    told = excess(TraceFacts(l0=run_buckets(run)), found, 1)
    assert "framework and python" in told


def test_its_exposed_gathers_wait(gpt: tuple[Run, Collectives]) -> None:
    (gather,) = matching(gpt[1], "all_gather", "fp32", 144.0)
    assert gpt[1].verdict(gather, 450e9) == "straggler"
    (reduce,) = matching(gpt[1], "reduce_scatter", "fp32", 144.0)
    assert gpt[1].verdict(reduce, 450e9) == "scheduling"


def test_calls_without_details_are_matched_by_order(data_dir: Path) -> None:
    found = collectives(read_run(data_dir / "trace" / "dlrm_8xv100"))
    assert found is not None
    assert found.unmatched.tolist() == [0] * 8
    assert int(np.argmax(found.blame)) == 7


def test_expert_exchange_is_hidden(data_dir: Path) -> None:
    found = collectives(read_run(data_dir / "trace" / "deepseek_v3_ep64"))
    assert found is not None
    assert {"dispatch", "combine"} <= {row.key.kind for row in found.rows}
    assert int(found.instances.exposed.sum()) / 1e6 == pytest.approx(4.162, abs=0.001)
