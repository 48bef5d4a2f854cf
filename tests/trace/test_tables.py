"""Tables say what they show: parts sum, units, what is left out."""

from pathlib import Path

import pytest
from tests.trace.kineto_job import write_job
from tests.trace.traces import steady_rank

from ridgeline.trace import tables
from ridgeline.trace.analyse import analyse
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels import l0


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> TraceFacts:
    """Two ranks, the second late."""
    return analyse(write_job(tmp_path_factory.mktemp("job")))


def test_buckets_sum_to_the_step(facts: TraceFacts) -> None:
    table = tables.bucket_table(facts.l0, 1, "others wait")
    for row in table.rows:
        step, *parts, _ = row[1:]
        assert sum(parts) == pytest.approx(step, abs=1e-12)
    assert (table.highlight, table.mark) == (1, "others wait")
    assert tables.bucket_table(facts.l0, None, "").highlight is None


def test_steps_sum_to_the_nanosecond(facts: TraceFacts) -> None:
    table = tables.step_table(facts.l0)
    assert len(table.rows) == 24
    at = {column.name: i for i, column in enumerate(table.columns)}
    parts = ("compute", "exposed_comm", "exposed_copy", "memset", "other", "host_gap", "late_gap", "unknown_gap")
    for row in table.rows:
        assert round(1e9 * sum(row[at[name]] for name in parts)) == round(1e9 * row[at["span"]])


def test_sums_are_derived_and_equal_what_was_measured(facts: TraceFacts) -> None:
    rank = facts.l0[1]
    found, measured = tables.rank_quantities(rank), l0.quantities(rank)
    assert set(found) == set(measured)
    for name, item in found.items():
        assert item.name == f"rank1.{name}"
        assert float(item.value) == pytest.approx(float(measured[name].value), abs=1e-12)
    assert {name for name, item in found.items() if item.kind == "derived"} == {"idle", "host_gap", "late_gap"}
    assert set(tables.rank_quantities(rank, every=False)) == set(tables.SHOWN)


def test_parts_of_the_bars_sum_to_the_step(facts: TraceFacts) -> None:
    rows = tables.part_table(facts.l0).rows
    assert sum(row[2] for row in rows if row[0] == "rank0") == pytest.approx(1e3 * facts.l0[0].mean_s("span"))


def test_heat_is_measured_from_the_median_rank() -> None:
    ranks = [steady_rank(1.0, label=f"rank{i}", sync_gap=0.3 if i == 2 else 0.1) for i in range(5)]
    cells = {(row[0], row[1]): row[2] for row in tables.heat_table(ranks).rows}
    assert cells["rank2", "host"] == pytest.approx(200)
    assert cells["rank2", "compute"] == pytest.approx(-200)
    assert cells["rank0", "host"] == 0


def test_collectives_and_their_matrix(facts: TraceFacts) -> None:
    assert facts.l1 is not None
    (row,) = tables.collective_table(facts.l1, None).rows
    assert row[0].startswith("all-reduce bf16")
    assert (row[3], row[4], row[5]) == ("straggler", "rank1", 12)
    cells = {line[1]: line[2] for line in tables.matrix_table(facts.l1).rows}
    assert cells["rank0"] == pytest.approx(2.9, abs=1e-3)
    assert cells["rank1"] == pytest.approx(0.9, abs=1e-3)


def test_operations(facts: TraceFacts) -> None:
    assert facts.l2 is not None
    (row,) = tables.operation_table(facts.l2).rows
    assert row[1] == pytest.approx(7e-3)
    assert row[2] == pytest.approx(100)
    (family,) = tables.family_table(facts.l2).rows
    assert family[0] == "matrix multiplication"


def test_long_names_keep_both_ends() -> None:
    name = "a" * 100 + "\n" + "b" * 100
    cut = tables.short(name)
    assert len(cut) == 60
    assert cut.startswith("aaa")
    assert cut.endswith("bbb")
    assert "…" in cut
    assert tables.short("two\nlines") == "two lines"


def test_what_does_not_fit_is_counted() -> None:
    ranks = [steady_rank(1.0, label=f"rank{i}", status=("steady",) * 30) for i in range(100)]
    table = tables.step_table(ranks)
    assert len(table.rows) == tables.STEP_ROWS
    assert f"{3000 - tables.STEP_ROWS} rows left out" in table.note
    assert "36 ranks near the median left out" in tables.bucket_table(ranks, None, "").note


def test_a_long_strip_keeps_its_peaks(tmp_path: Path) -> None:
    rows = "\n".join(f"{step},{0.010 if step != 4321 else 1.0}" for step in range(1, 6001))
    (tmp_path / "steps.csv").write_text(f"step,step_time_s\n{rows}\n")
    found = analyse(tmp_path / "steps.csv").l3
    assert found is not None
    table = tables.strip_table(found)
    assert len(table.rows) <= tables.POINTS
    assert (4321, 1.0) in table.rows
    assert "longest is shown" in table.note
    parts = {row[0]: row[1] for row in tables.stall_table(found).rows}
    mean = parts.pop("mean step")
    assert sum(parts.values()) == pytest.approx(mean)


def test_ranks_without_samples_have_no_columns_for_them(facts: TraceFacts) -> None:
    assert facts.l4 is not None
    table = tables.spread_table(facts.l4)
    assert not {"clock", "temp", "power"} & {column.name for column in table.columns}
    assert table.highlight == 1
