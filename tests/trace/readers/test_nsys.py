"""The SQLite export: exact sums of real files, and small files of every schema and damage made here."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.trace.events import NONE, Category, Events, Kind
from ridgeline.trace.intervals import intersect, union
from ridgeline.trace.read import read_run, read_trace, sniff
from ridgeline.trace.readers import nsys

KERNEL = "start, end, deviceId, streamId, correlationId, globalPid, demangledName, shortName, gridX, gridY, gridZ"
PID_A, PID_B = 0x1_0000_0A00_0000, 0x1_0000_0B00_0000


def export(path: Path, **tables: tuple[str, list[tuple[Any, ...]]]) -> Path:
    """A database with tables of (columns, rows)."""
    with sqlite3.connect(path) as db:
        for name, (columns, rows) in tables.items():
            quoted = ", ".join(f'"{c.strip()}"' for c in columns.split(","))
            db.execute(f'CREATE TABLE "{name}" ({quoted})')
            marks = ", ".join("?" * len(columns.split(",")))
            db.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
    db.close()
    return path


def kernels(*rows: tuple[Any, ...]) -> tuple[str, list[tuple[Any, ...]]]:
    return KERNEL, list(rows)


STRINGS = (
    "id, value",
    [(1, "gemm"), (2, "void gemm<float>(int)"), (3, "cudaLaunchKernel_v7000"), (4, "ncclDevKernel")],
)


def buckets(events: Events) -> tuple[float, ...]:
    """Span, compute, communication, overlap, idle of kernels alone, in ms."""
    kernel = events.category == Category.KERNEL
    comm = kernel & (events.kind == Kind.COMM)
    busy = union(events.ts[kernel], events.dur[kernel])
    wire, work = union(events.ts[comm], events.dur[comm]), union(events.ts[kernel & ~comm], events.dur[kernel & ~comm])
    low, high = busy.extent
    spans = (high - low, work.total, wire.total, intersect(wire, work).total, high - low - busy.total)
    return tuple(round(s / 1e6, 3) for s in spans)


@pytest.mark.data
def test_two_gpu_buckets_are_exact(data_dir: Path) -> None:
    run = read_run(data_dir / "trace/nsys/mfu_2gpu_before.sqlite")
    assert buckets(run.ranks[0]) == (299.849, 253.691, 17.173, 0.0, 28.985)
    assert buckets(run.ranks[1]) == (298.662, 256.096, 8.229, 0.0, 34.337)


@pytest.mark.data
def test_copy_bound_run(data_dir: Path) -> None:
    rank = read_run(data_dir / "trace/nsys/h100_2gpu_1s.sqlite").ranks[0]
    copies = rank.where(rank.kind == Kind.H2D)
    assert len(copies) == 225
    assert len(np.unique(copies.stream)) == 1
    assert copies.bytes.sum() == 25_475_253_792
    assert copies.dur.sum() == pytest.approx(920.9e6, abs=0.05e6)
    assert copies.bytes.sum() / copies.dur.sum() == pytest.approx(27.7, abs=0.05)  # GB/s
    busy = union(rank.ts[rank.on_device], rank.dur[rank.on_device])
    assert busy.total / (busy.extent[1] - busy.extent[0]) == pytest.approx(0.993, abs=0.001)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "sm_count"), [("cloverleaf", 1312, 108), ("saxpy_mpi", 5, 108), ("healthy_1pct", 400, None)]
)
def test_versions_of_the_schema(data_dir: Path, name: str, rows: int, sm_count: int | None) -> None:
    events = read_trace(data_dir / f"trace/nsys/{name}.sqlite")
    assert (events.category == Category.KERNEL).sum() == rows
    assert events.info.sm_count == sm_count
    assert events.info.device.startswith("NVIDIA")
    assert events.info.lost == ()
    assert (events.info.rank == 0) == (name == "saxpy_mpi")  # MPI's wrapper names its thread


def test_minimal_schema_and_names(tmp_path: Path) -> None:
    path = export(
        tmp_path / "a.sqlite",
        StringIds=STRINGS,
        CUPTI_ACTIVITY_KIND_KERNEL=("start, end, shortName", [(10, 20, 1), (20, 45, 1)]),
    )
    events = nsys.read(path)
    assert sniff(path) is nsys.READER
    assert [events.name_of(i) for i in range(2)] == ["gemm", "gemm"]
    assert events.ts.tolist() == [0, 10]
    assert events.dur.tolist() == [10, 25]
    assert events.info.base_ns == 10
    assert set(events.stream.tolist()) == {NONE}
    assert "TARGET_INFO_GPU" in events.info.extra["missing_tables"]


def test_launch_shape_copies_and_calls(tmp_path: Path) -> None:
    path = export(
        tmp_path / "a.sqlite",
        StringIds=STRINGS,
        CUPTI_ACTIVITY_KIND_KERNEL=kernels((10, 20, 0, 7, 5, PID_A, 2, 1, 8, 2, 1)),
        CUPTI_ACTIVITY_KIND_MEMCPY=(
            "start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, dstKind",
            [(20, 30, 0, 8, 6, PID_A, 4096, 1, 1, 2), (30, 31, 0, 8, 7, PID_A, 64, 10, 2, 2)],
        ),
        CUPTI_ACTIVITY_KIND_MEMSET=("start, end, deviceId, streamId, bytes, globalPid", [(31, 32, 0, 7, 16, PID_A)]),
        CUPTI_ACTIVITY_KIND_RUNTIME=("start, end, globalTid, correlationId, nameId", [(2, 4, PID_A + 9, 5, 3)]),
        TARGET_INFO_GPU=("id, name, smCount", [(0, "NVIDIA H100", 132)]),
        TARGET_INFO_SESSION_START_TIME=("utcEpochNs", [(1_000_000,)]),
    )
    events = read_trace(path)
    assert [events.name_of(i) for i in range(len(events))] == [
        "cudaLaunchKernel", "void gemm<float>(int)", "Memcpy HtoD (Pinned -> Device)",
        "Memcpy PtoP (Device -> Device)", "Memset (Device)",
    ]  # fmt: skip
    assert events.kind.tolist()[2:] == [Kind.H2D, Kind.P2P, Kind.MEMSET]
    assert events.metas[int(events.meta[1])] == {"grid": (8, 2, 1)}
    assert events.thread[0] == 9
    assert events.corr[0] == events.corr[1]
    assert events.bytes[2] == 4096
    assert (events.info.sm_count, events.info.device, events.info.base_ns) == (132, "NVIDIA H100", 1_000_002)


def test_two_processes_that_both_call_their_device_0(tmp_path: Path) -> None:
    path = export(
        tmp_path / "a.sqlite",
        StringIds=STRINGS,
        CUPTI_ACTIVITY_KIND_KERNEL=kernels(
            (10, 20, 0, 7, 5, PID_A, 2, 1, 1, 1, 1), (12, 40, 0, 7, 5, PID_B, 4, 4, 1, 1, 1)
        ),
        CUPTI_ACTIVITY_KIND_RUNTIME=(
            "start, end, globalTid, correlationId, nameId", [(1, 2, PID_A + 9, 5, 3), (3, 4, PID_B + 9, 5, 3)],
        ),
    )  # fmt: skip
    run = read_run(path)
    assert len(run) == 2
    for rank, name, launched in zip(run, ("void gemm<float>(int)", "ncclDevKernel"), (0, 2), strict=True):
        assert len(rank) == 2
        assert rank.name_of(1) == name
        assert rank.ts[0] == launched
        assert rank.corr[0] == rank.corr[1]
    assert run.ranks[0].corr[0] != run.ranks[1].corr[0]


def test_ranges_become_operators_steps_and_annotations(tmp_path: Path) -> None:
    columns = "start, end, eventType, text, textId, globalTid, domainId"
    rows = [
        (0, 100, 59, "iteration 0", None, PID_A + 1, 0),
        (100, 200, 59, None, 9, PID_A + 1, 0),
        (5, 9, 59, "batch 1", None, PID_A + 1, 0),
        (10, 20, 59, "aten::mm, seq = 3, op_id = 77, sizes = [[8, 16], [16, 4]]", None, PID_A + 1, 0),
        (20, 30, 60, "optimizer.step", None, PID_A + 1, 0),
        (30, 40, 59, "ncclAllReduce", None, PID_A + 1, 2),
        (0, None, 75, "NCCL", None, PID_A + 1, 2),
        (50, None, 34, "a mark", None, PID_A + 1, 0),
    ]
    path = export(tmp_path / "a.sqlite", StringIds=("id, value", [(9, "iteration 1")]), NVTX_EVENTS=(columns, rows))
    events = nsys.read(path)
    found = {events.name_of(i): (Category(events.category[i]), i) for i in range(len(events))}
    assert {name: category.name for name, (category, _) in found.items()} == {
        "iteration 0": "STEP", "iteration 1": "STEP", "batch 1": "ANNOTATION", "aten::mm": "HOST_OP",
        "optimizer.step": "ANNOTATION", "ncclAllReduce": "ANNOTATION",
    }  # fmt: skip
    row = found["aten::mm"][1]
    assert events.ext[row] == 77
    assert events.metas[int(events.meta[row])] == {"shapes": ((8, 16), (16, 4))}
    assert events.metas[int(events.meta[found["ncclAllReduce"][1]])] == {"domain": "NCCL"}
    assert events.info.lost == ()


def test_rows_that_cannot_be_are_counted(tmp_path: Path) -> None:
    bad = [(30, 20), (None, 5), (5, None), ("x", 9), (1, 1 << 62)]
    path = export(
        tmp_path / "a.sqlite",
        CUPTI_ACTIVITY_KIND_KERNEL=kernels(
            (10, 20, 0, 7, 5, PID_A, 2, 1, 1, 1, 1), *((a, b, 0, 7, 5, PID_A, 2, 1, 1, 1, 1) for a, b in bad)
        ),
        CUPTI_ACTIVITY_KIND_NEW=("start, end, deviceId", [(1, 2, 0), (3, 4, 0)]),
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=("start, end, deviceId, graphId, globalPid", [(50, 60, 0, 3, PID_A)]),
        MPI_P2P_EVENTS=("start, end, textId", [(1, 2, 1)]),
    )
    events = nsys.read(path)
    lost = {loss.where: loss.count for loss in events.info.lost}
    assert lost["CUPTI_ACTIVITY_KIND_KERNEL"] == len(bad)
    assert lost["CUPTI_ACTIVITY_KIND_NEW"] == 2
    assert lost["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] == 1
    assert lost["StringIds"] == 1
    assert events.info.extra["ignored_tables"] == {"MPI_P2P_EVENTS": 1}
    assert sorted(events.name_of(i) for i in range(len(events))) == ["CUDA graph 3", "kernel 2"]


def test_a_view_is_not_run(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite", NVTX_EVENTS=("start, end, text", [(1, 2, "range")]))
    with sqlite3.connect(path) as db:
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        db.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless} SELECT x AS start, x AS end FROM c")
    db.close()
    assert len(nsys.read(path)) == 1


def test_open_by_a_writer_and_left_as_it_was(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite", NVTX_EVENTS=("start, end, text", [(1, 2, "range")]))
    writer = sqlite3.connect(path)
    writer.execute("BEGIN EXCLUSIVE")
    before = path.read_bytes()
    assert len(nsys.read(path)) == 1
    writer.close()
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sqlite"]


def many(path: Path) -> bytes:
    rows = [(i * 10, i * 10 + 5, 0, 7, i, PID_A, 2, 1, 1, 1, 1) for i in range(5000)]
    return export(path, StringIds=STRINGS, CUPTI_ACTIVITY_KIND_KERNEL=kernels(*rows)).read_bytes()


def test_a_file_cut_off_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    whole = many(path)
    path.write_bytes(whole[: len(whole) // 2])
    events = nsys.read(path)
    assert 100 < len(events) < 5000
    assert Loss("bytes at the end: the file was cut off", len(whole) - len(whole) // 2, "a.sqlite") in events.info.lost
    assert any("cannot be read" in loss.what for loss in events.info.lost)


def test_damaged_pages_are_said(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    whole = bytearray(many(path))
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(whole)
    events = nsys.read(path)
    assert 100 < len(events) < 5000
    assert any("cannot be read" in loss.what for loss in events.info.lost)


@pytest.mark.parametrize(
    "content",
    [
        b"SQLite format 3\0",
        b"SQLite format 3\0" + b"\xff" * 5000,
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
        b"not a database at all " * 100,
        b"",
    ],
)
def test_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    with pytest.raises(InputError, match="Expected"):
        nsys.read(path)


def test_other_databases_and_empty_exports_are_refused(tmp_path: Path) -> None:
    other = export(tmp_path / "b.sqlite", users=("id, name", [(1, "x")]))
    with pytest.raises(InputError, match="Nsight Systems"):
        nsys.read(other)
    empty = export(tmp_path / "c.sqlite", CUPTI_ACTIVITY_KIND_KERNEL=kernels())
    with pytest.raises(InputError, match="at least one event"):
        nsys.read(empty)
