"""Choosing a reader, and the ranks of a job as one run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace import read
from ridgeline.trace.events import NONE, Category, Info, Kind, events
from ridgeline.trace.kinds import user_rules
from ridgeline.trace.read import Reader, _per_device, read_run, read_trace, readers, sniff, trace_files

MS = 1000.0
DAY = 1_700_000_000_000_000_000


def collective(
    i: int, end_us: float, rank: int, group: str = "0", name: str = "ncclDevKernel_AllGather"
) -> dict[str, Any]:
    dur = 50.0 + 7 * ((rank + i) % 3)
    meta = {"Collective name": "allgather", "dtype": "Float", "In msg nelems": 8, "Process Group Name": group}
    start = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": end_us - dur, "dur": dur}
    return start | {"args": {"stream": 7, "device": 0, "correlation": i} | meta}


def save(
    folder: Path, name: str, rows: list[dict[str, Any]], rank: int | None = None, world: int = 0, base: int = DAY
) -> Path:
    document: dict[str, Any] = {"schemaVersion": 1, "baseTimeNanoseconds": base}
    if rank is not None:
        document["distributedInfo"] = {"rank": rank, "world_size": world}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(document | {"traceEvents": rows}))
    return path


def said(path: Path) -> list[str]:
    return [loss.what for rank in read_run(path) for loss in rank.info.lost]


def test_clocks_are_aligned_by_collectives_that_end_together(tmp_path: Path) -> None:
    skew_us = [0.0, 1500.0, -320.0]  # of each rank's clock
    for rank, skew in enumerate(skew_us):
        rows = [collective(i, (i + 1) * 10 * MS + skew + (rank * i) % 2, rank) for i in range(21)]
        save(tmp_path, f"x{rank}.json", rows, rank, 3, base=DAY + 5000 * rank)
    run = read_run(tmp_path)
    assert run.labels() == ["rank0", "rank1", "rank2"]
    on_first = [events.ts + offset for events, offset in zip(run, run.offset_ns, strict=True)]
    ends = [(ts + events.dur).tolist() for ts, events in zip(on_first, run, strict=True)]
    for other in ends[1:]:
        assert max(abs(a - b) for a, b in zip(ends[0], other, strict=True)) <= 1000
    assert run.offset_ns[0] == 0
    assert run.spread_ns is not None
    assert 0 <= run.spread_ns <= 1000


def test_groups_chain_ranks_that_share_no_collective(tmp_path: Path) -> None:
    shared = {0: ["a"], 1: ["a", "b"], 2: ["b"]}
    for rank, groups in shared.items():
        rows = [collective(i, (i + 1) * 10 * MS + 100 * rank, rank, group) for group in groups for i in range(5)]
        save(tmp_path, f"{rank}.json", rows, rank, 3)
    run = read_run(tmp_path)
    first = [int(e.ts[0] + e.dur[0]) + off for e, off in zip(run, run.offset_ns, strict=True)]
    assert max(first) - min(first) == 0
    assert run.spread_ns == 0


def test_without_collectives_the_files_own_clocks_hold(tmp_path: Path) -> None:
    host = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1}
    save(tmp_path, "rank0.json", [host | {"ts": 10}])
    save(tmp_path, "rank1.json", [host | {"ts": 12.5}])
    run = read_run(tmp_path)
    assert run.offset_ns == (0, 2500)
    assert run.spread_ns is None


def test_point_to_point_does_not_end_together(tmp_path: Path) -> None:
    for rank in range(2):
        rows = [collective(i, i * MS + 5 * rank, rank, name="ncclDevKernel_SendRecv") for i in range(3)]
        for row in rows:
            del row["args"]["Collective name"]
        save(tmp_path, f"rank{rank}.json", rows)
    assert read_run(tmp_path).spread_ns is None


def test_a_single_rank(tmp_path: Path) -> None:
    run = read_run(save(tmp_path, "one.json", [collective(0, 100.0, 0)]))
    assert (run.offset_ns, run.spread_ns, run.labels()) == ((0,), None, ["rank0"])
    assert run.ranks[0].info.rank is None
    assert run.ranks[0].info.lost == ()


@pytest.mark.parametrize(
    "names",
    [
        ["rank_10.json", "rank_2.json", "rank_0.json"],
        ["worker10.pt.trace.json", "worker2.pt.trace.json", "worker0.pt.trace.json"],
        ["10/trace.json", "2/trace.json", "0/trace.json"],
        ["job-r10.json", "job-r2.json", "job-r0.json"],
        ["gpu10_x.json", "gpu2_x.json", "gpu0_x.json"],
    ],
)
def test_ranks_from_names(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        save((tmp_path / name).parent, Path(name).name, [collective(0, 100.0, 0)])
    run = read_run(tmp_path)
    assert run.labels() == ["rank0", "rank2", "rank10"]
    assert [loss.what for loss in run.ranks[0].info.lost] == ["ranks of the job without a file: 1, 3, 4, 5, 6, 7, 8, 9"]


def test_the_file_knows_its_rank_better_than_its_name(tmp_path: Path) -> None:
    save(tmp_path, "rank0.json", [collective(0, 100.0, 0)], 5, 8)
    save(tmp_path, "rank1.json", [collective(0, 100.0, 0)], 4, 8)
    assert read_run(tmp_path).labels() == ["rank4", "rank5"]
    assert said(tmp_path) == ["ranks of the job without a file: 0, 1, 2, 3, 6, 7"]


def test_files_that_all_say_rank_0_are_told_apart_by_name(tmp_path: Path) -> None:
    for rank in range(3):
        save(tmp_path, f"rank{rank}.json", [collective(0, 100.0, 0)], 0, 3)
    assert read_run(tmp_path).labels() == ["rank0", "rank1", "rank2"]
    assert said(tmp_path) == ["files that name the same rank: ranks taken from the file names"]


def test_double_ranks_are_said(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        save(tmp_path, name, [collective(0, 100.0, 0)], 1, 2)
    assert said(tmp_path) == ["ranks that occur more than once: 1", "ranks of the job without a file: 0"]


def test_ranks_by_order_where_nothing_tells(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        save(tmp_path, name, [collective(0, 100.0, 0)])
    assert read_run(tmp_path).labels() == ["rank0", "rank1"]
    assert said(tmp_path) == ["files without a rank in them or in their name: numbered by order"]


def test_a_rank_that_cannot_be_read_does_not_cost_the_others(tmp_path: Path) -> None:
    save(tmp_path, "rank0.json", [collective(0, 100.0, 0)])
    save(tmp_path, "rank1.json", [])
    save(tmp_path, "rank2.json", [collective(0, 100.0, 0)])
    (tmp_path / "notes.md").write_text("hello")
    (tmp_path / ".hidden").write_text("{}")
    run = read_run(tmp_path)
    assert run.labels() == ["rank0", "rank2"]
    first, second = [loss.what for loss in run.ranks[0].info.lost]
    assert "file not read: Expected events, got 'a trace with metadata only'" in first
    assert second == "ranks of the job without a file: 1"


def test_what_a_killed_rank_leaves_is_named(tmp_path: Path) -> None:
    save(tmp_path, "rank0.json", [collective(0, 100.0, 0)])
    (tmp_path / "rank1.json").touch()
    (tmp_path / "rank2.json.gz").write_bytes(b"\x1f\x8b\x08")
    (tmp_path / "summary.csv").write_text("a,b\n")
    assert said(tmp_path) == [f"file not read: no trace is in {name}" for name in ("rank1.json", "rank2.json.gz")]


@pytest.mark.parametrize("world", [10**9, 10**18])
def test_a_world_of_any_size_is_no_work(tmp_path: Path, world: int) -> None:
    path = save(tmp_path, "t.json", [collective(0, 100.0, 0)], rank=2, world=world)
    listed = "0, 1, 3, 4, 5, 6, 7, 8"
    assert said(path) == [f"ranks of the job without a file: {listed} and {world - 9} more"]


def test_a_folder_given_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "job", "rank0.json", [collective(0, 100.0, 0)])
    monkeypatch.chdir(tmp_path)
    assert trace_files(["job", tmp_path / "job", "job/../job", path]) == [Path("job/rank0.json")]


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"at least one trace file, got 'none', at {re.escape(str(tmp_path))}"):
        read_run([tmp_path])
    empty = save(tmp_path, "rank0.json", [])
    with pytest.raises(InputError, match="metadata only"):
        read_run(tmp_path)
    with pytest.raises(InputError, match="metadata only"):
        read_run([empty])


def test_files_are_listed_in_natural_order_and_once(tmp_path: Path) -> None:
    paths = [save(tmp_path, f"t{i}.json", [collective(0, 100.0, 0)]) for i in (10, 9, 1)]
    assert trace_files(tmp_path) == [paths[2], paths[1], paths[0]]
    assert trace_files([paths[0], tmp_path]) == [paths[0], paths[2], paths[1]]
    assert trace_files(paths[0]) == [paths[0]]


def test_workers_give_the_same_run(tmp_path: Path) -> None:
    for rank in range(2):
        save(tmp_path, f"rank{rank}.json", [collective(i, (i + 1) * MS, rank) for i in range(5)], rank, 2)
    here, there = read_run(tmp_path, workers=1), read_run(tmp_path, workers=2)
    assert there.offset_ns == here.offset_ns
    for a, b in zip(here, there, strict=True):
        assert a.ts.tolist() == b.ts.tolist()
        assert a.names == b.names
        assert a.info == b.info


@pytest.mark.parametrize(("least", "expected"), [(10**9, 1), (100, None)])
def test_small_sets_are_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, expected: int | None
) -> None:
    used: list[int | None] = []

    def pmap(work: Any, items: Any, *, workers: int | None, address: str) -> list[Any]:
        used.append(workers)
        return [work(item) for item in items]

    monkeypatch.setattr(read, "pmap", pmap)
    monkeypatch.setattr(read, "SPREAD_FROM_BYTES", least)
    read_run(save(tmp_path, "t.json", [collective(0, 100.0, 0)]))
    assert used == [expected]


def test_rules_of_the_user_reach_the_table(tmp_path: Path) -> None:
    path = save(tmp_path, "t.json", [collective(0, 100.0, 0, name="my_ring")])
    assert read_trace(path).kind.tolist() == [Kind.UNCLASSIFIED]
    assert read_trace(path, user_rules({"my_ring": "comm"})).kind.tolist() == [Kind.COMM]
    assert read_run(path, user_rules({"my_ring": "comm"})).ranks[0].kind.tolist() == [Kind.COMM]


def test_a_rank_per_device_where_the_reader_says_so() -> None:
    kernel, host = int(Category.KERNEL), int(Category.RUNTIME)
    columns = {"ts": [0, 1, 2], "dur": [1, 1, 1], "category": [host, kernel, kernel], "device": [NONE, 1, 0]}
    shared = events(columns, ["x"], [], Info("nsys", "a", extra={"rank_per_device": True}))
    first, second = _per_device(shared)
    assert (first.device.tolist(), first.info.rank, first.info.world) == ([NONE, 0], 0, 2)
    assert (second.device.tolist(), second.info.rank) == ([NONE, 1], 1)
    assert len(_per_device(events(columns, ["x"], [], Info("kineto", "a")))) == 1


def test_special_readers_are_asked_first() -> None:
    priorities = [reader.priority for reader in readers()]
    assert priorities == sorted(priorities, reverse=True)


@pytest.mark.data
def test_a_reader_is_chosen_by_content(data_dir: Path, tmp_path: Path) -> None:
    trace = data_dir / "trace"
    expected = {"gpt_8xh100/rank0.json.gz": "kineto", "old_schema.json.gz": "kineto", "cpu_only.json.gz": "kineto"}
    for name, reader in expected.items():
        disguised = tmp_path / "thing.bin"
        disguised.write_bytes((trace / name).read_bytes())
        found = sniff(disguised)
        assert isinstance(found, Reader)
        assert found.name == reader


@pytest.mark.data
def test_the_eight_ranks_share_a_clock(data_dir: Path) -> None:
    run = read_run(data_dir / "trace" / "gpt_8xh100")
    assert run.labels() == [f"rank{i}" for i in range(8)]
    assert run.ranks[0].info.lost == ()
    assert run.spread_ns is not None
    assert run.spread_ns < 50_000
