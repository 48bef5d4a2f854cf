"""Chrome trace JSON as the PyTorch profiler writes it."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgeline.trace import salvage
from ridgeline.trace.events import NONE, Category, Events, Kind
from ridgeline.trace.read import read_trace
from ridgeline.trace.readers import kineto

BASE: dict[str, Any] = {"schemaVersion": 1, "baseTimeNanoseconds": 1_700_000_000_000_000_000}
HOST: dict[str, Any] = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 10.0, "dur": 30}
LAUNCH = HOST | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 12.5, "dur": 5, "args": {"correlation": 4}}
KERNEL: dict[str, Any] = {
    "ph": "X", "cat": "kernel", "name": "sm90_gemm", "pid": 0, "tid": 7, "ts": 6322354292627.936, "dur": 72.927,
    "args": {"device": 0, "stream": 7, "correlation": 4, "External id": 2, "grid": [8, 1, 1], "block": [64, 1, 1],
             "registers per thread": 32, "shared memory": 0},
}  # fmt: skip
NCCL = {
    "Collective name": "_allgather_base", "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 64, "Group size": 8,
    "Process Group Name": "0", "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]", "Seq": 3,
}  # fmt: skip


def read(tmp_path: Path, events: list[dict[str, Any]], head: dict[str, Any] | None = None, **tail: Any) -> Events:
    path = tmp_path / "t.json"
    path.write_text(json.dumps((BASE if head is None else head) | {"traceEvents": events} | tail))
    return read_trace(path)


def test_times_are_integer_ns_on_a_base(tmp_path: Path) -> None:
    later = KERNEL | {"ts": 6322354292627.937, "dur": 0.001}
    found = read(tmp_path, [later, KERNEL])
    assert found.ts.tolist() == [0, 1]
    assert found.dur.tolist() == [72927, 1]
    assert found.info.base_ns == 1_700_000_000_000_000_000 + 6_322_354_292_627_936


@pytest.mark.parametrize("first", ["1712195495505583.004", "1712195495505583", '"1712195495505583.004"'])
def test_epoch_microseconds_with_decimals_keep_each_ns(tmp_path: Path, first: str) -> None:
    path = tmp_path / "t.json"
    row = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %s, "dur": 1.002}'
    times = [first, "1712195495505583.125", "1712195495505583.126"]
    path.write_text('{"traceEvents": [' + ",".join(row % t for t in times) + "]}")
    found = read_trace(path)
    assert (found.ts + found.info.base_ns - 1_712_195_495_505_583_000).tolist() == [4 * ("." in first), 125, 126]
    assert found.dur.tolist() == [1002] * 3


def test_columns_of_a_launch_and_its_kernel(tmp_path: Path) -> None:
    inputs = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"], "Input Strides": [[4, 1], [2, 1]]}
    op = HOST | {"args": inputs | {"External id": 2, "Concrete Inputs": ["", ""], "Fwd thread id": 1}}
    found = read(tmp_path, [op, LAUNCH, KERNEL])
    assert found.category.tolist() == [Category.HOST_OP, Category.RUNTIME, Category.KERNEL]
    assert found.kind.tolist() == [Kind.NONE, Kind.NONE, Kind.COMPUTE]
    assert found.thread.tolist() == [9, 9, NONE]
    assert found.stream.tolist() == [NONE, NONE, 7]
    assert found.device.tolist() == [NONE, NONE, 0]
    assert found.corr.tolist() == [NONE, 4, 4]
    assert found.ext.tolist() == [2, NONE, 2]
    assert found.metas[found.meta[0]] == {
        "shapes": [[8, 4], [4, 2]], "dtypes": ["float", "float"], "strides": [[4, 1], [2, 1]], "concrete": ["", ""],
        "fwd_thread": 1,
    }  # fmt: skip
    assert found.metas[found.meta[2]] == {"grid": [8, 1, 1], "block": [64, 1, 1], "registers": 32, "shared": 0}


def test_details_are_interned(tmp_path: Path) -> None:
    found = read(tmp_path, [KERNEL | {"ts": i, "args": KERNEL["args"] | {"correlation": i}} for i in range(50)])
    assert len(found.metas) == 1
    assert len(found.names) == 1
    assert len(set(found.corr.tolist())) == 50


def test_collective_metadata(tmp_path: Path) -> None:
    found = read(tmp_path, [KERNEL | {"name": "ncclDevKernel_AllGather", "args": KERNEL["args"] | NCCL}])
    assert found.kind.tolist() == [Kind.COMM]
    assert found.metas[found.meta[0]] == {
        "collective": "_allgather_base", "dtype": "Float", "group": "0", "group_desc": "default_pg",
        "group_ranks": list(range(8)), "group_size": 8, "in_numel": 8, "out_numel": 64, "seq": 3,
    }  # fmt: skip


def test_what_the_header_says(tmp_path: Path) -> None:
    job = {"rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0", "ranks": [0, 1, 2, 3]}, {"pg_name": "1"}]}
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}
    found = read(tmp_path, [KERNEL], BASE | {"distributedInfo": job, "deviceProperties": [device]}, traceName="x.json")
    info = found.info
    assert (info.format, info.rank, info.world, info.device, info.sm_count) == ("kineto", 3, 8, device["name"], 132)
    assert info.framework == "PyTorch"
    assert info.groups == {"0": (0, 1, 2, 3)}
    assert info.extra["traceName"] == "x.json"


@pytest.mark.parametrize("head", [{"distributedInfo": "none"}, {"deviceProperties": None}, {"deviceProperties": [3]}])
def test_odd_headers_do_not_matter(tmp_path: Path, head: dict[str, Any]) -> None:
    assert len(read(tmp_path, [KERNEL], head)) == 1


def test_first_schema(tmp_path: Path) -> None:
    rows = [
        HOST | {"cat": "Operator", "tid": "9", "args": {"External id": 5, "Input dims": [[2, 2]]}},
        LAUNCH | {"cat": "Runtime", "args": {"correlation": 4, "external id": 5}},
        KERNEL | {"cat": "Kernel", "tid": "stream 7", "args": {"correlation": 4, "external id": 5, "stream": 7}},
        KERNEL | {"cat": "Memcpy", "tid": "stream 8", "name": "Memcpy HtoD", "args": {"bytes": 256}},
        KERNEL | {"cat": "Memset", "tid": "stream 8", "name": "Memset (Device)", "args": {"bytes": 8}},
        HOST | {"name": "ProfilerStep#5", "cat": "Operator", "ts": 1},
    ]
    found = read(tmp_path, rows, {"schemaVersion": 1})
    assert [Category(c).name for c in found.category.tolist()] == [
        "STEP", "HOST_OP", "RUNTIME", "KERNEL", "MEMCPY", "MEMSET",
    ]  # fmt: skip
    assert found.stream.tolist()[3:] == [7, 8, 8]
    assert found.thread.tolist()[:3] == [9, 9, 9]
    assert found.bytes.tolist()[4:] == [256, 8]
    assert found.kind.tolist()[4:] == [Kind.H2D, Kind.MEMSET]
    assert found.ext.tolist()[1:4] == [5, 5, 5]


@pytest.mark.parametrize(
    ("cat", "category"),
    [
        ("hip_runtime", Category.RUNTIME),
        ("cuda_driver", Category.RUNTIME),
        ("mtia_runtime", Category.RUNTIME),
        ("privateuse1_driver", Category.RUNTIME),
        ("concurrent_kernel", Category.KERNEL),
        ("mtia_ccp_events", Category.KERNEL),
        ("gpu_user_annotation", Category.DEVICE_ANNOTATION),
        ("user_annotation", Category.ANNOTATION),
        ("python_function", Category.PYTHON),
        ("cuda_sync", Category.DEVICE_SYNC),
        ("overhead", Category.OVERHEAD),
        ("Trace", Category.OTHER),
        ("", Category.OTHER),
        (None, Category.OTHER),
        ("<script>", Category.OTHER),
    ],
)
def test_categories(tmp_path: Path, cat: str | None, category: Category) -> None:
    assert read(tmp_path, [KERNEL | {"cat": cat}]).category.tolist() == [category]


def test_a_wait_of_a_device_queue_is_no_work(tmp_path: Path) -> None:
    found = read(tmp_path, [KERNEL | {"cat": "mtia_ccp_events", "name": "event_wait"}])
    assert found.category.tolist() == [Category.DEVICE_SYNC]
    assert not found.on_device.any()


def test_triton_launchers_with_a_stream_are_host_events(tmp_path: Path) -> None:
    found = read(tmp_path, [HOST | {"name": "triton_poi_fused_add_0", "args": {"stream": 7, "grid": "(8,)"}}])
    assert found.category.tolist() == [Category.HOST_OP]
    assert found.stream.tolist() == [NONE]
    assert not found.on_device.any()


def test_the_devices_copy_of_a_step_is_no_step(tmp_path: Path) -> None:
    step = {"name": "ProfilerStep#3", "ts": 1}
    found = read(tmp_path, [HOST | step, KERNEL | step | {"cat": "gpu_user_annotation"}])
    assert sorted(found.category.tolist()) == [Category.DEVICE_ANNOTATION, Category.STEP]


def test_begin_and_end_pairs(tmp_path: Path) -> None:
    def edge(ph: str, ts: float, name: str = "", tid: int = 1) -> dict[str, Any]:
        return {"ph": ph, "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts}

    rows = [
        edge("B", 1, "a"),
        edge("B", 2.5, "b"),
        edge("B", 2, "c", 2),
        edge("E", 4),
        edge("E", 9),
        edge("E", 5, "", 2),
    ]
    found = read(tmp_path, [*rows, edge("E", 20), edge("B", 30, "open")], {})
    assert [found.name_of(i) for i in range(3)] == ["a", "c", "b"]
    assert found.dur.tolist() == [8000, 3000, 1500]
    assert {loss.what.partition(":")[0]: loss.count for loss in found.info.lost} == {
        "ends of events without a begin": 1,
        "begins of events without an end": 1,
    }


@pytest.mark.parametrize("cat", ["ac2g", "async_cpu_to_gpu"])
@pytest.mark.parametrize("ts", [0.0, 1_700_000_000_000_000.0])
def test_flows_link_where_no_correlation_does(tmp_path: Path, cat: str, ts: float) -> None:
    launch = {k: v for k, v in LAUNCH.items() if k != "args"} | {"ts": ts + 12.5}
    kernel = KERNEL | {"ts": ts + 20.25, "args": {"stream": 7}}
    flows = [
        {"ph": "s", "cat": cat, "name": "ac2g", "id": 77, "pid": 9, "tid": 9, "ts": ts + 12.5},
        {"ph": "f", "cat": cat, "name": "ac2g", "id": 77, "pid": 0, "tid": 7, "ts": ts + 20.25, "bp": "e"},
        {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 5, "pid": 0, "tid": 7, "ts": ts + 20.25},
    ]
    assert read(tmp_path, [launch, kernel, *flows], {}).corr.tolist() == [77, 77]
    assert read(tmp_path, [launch, kernel], {}).corr.tolist() == [NONE, NONE]
    with_ids = read(tmp_path, [LAUNCH, KERNEL, *flows], {})
    assert with_ids.corr.tolist() == [4, 4]


@pytest.mark.parametrize("form", ["object", "array", "array open", "events first", "gzip", "bom"])
def test_forms_of_the_file(tmp_path: Path, form: str) -> None:
    rows = json.dumps([HOST, LAUNCH, KERNEL])
    text = {
        "array": rows,
        "array open": rows[:-1] + ",\n",
        "events first": '{"traceEvents": ' + rows + ', "schemaVersion": 1, "stackFrames": {"1": {"name": "}, {"}}}',
    }.get(form, json.dumps(BASE | {"traceEvents": [HOST, LAUNCH, KERNEL]}, indent=2))
    data = text.encode()
    data = gzip.compress(data) if form == "gzip" else b"\xef\xbb\xbf" * (form == "bom") + data
    path = tmp_path / "a.bin"  # the extension does not matter
    path.write_bytes(data)
    found = read_trace(path)
    assert len(found) == 3
    assert bool(found.info.lost) == (form == "array open")


@pytest.mark.parametrize("size", [64, 333, 4096])
def test_blocks_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    rows = [
        KERNEL | {"name": f'k{i % 7}}}, {{"ph": "X\\', "ts": float(i), "args": {"deep": [{"a": 1}, {"b": 2}]}}
        for i in range(300)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(BASE | {"traceEvents": rows}))
    whole = read_trace(path)
    plain = salvage.blocks
    monkeypatch.setattr(salvage, "BLOCK_BYTES", size)
    monkeypatch.setattr(salvage, "blocks", lambda path, ledger: plain(path, ledger, size=size))
    pieces = kineto.read(path)
    assert len(whole) == len(pieces) == 300
    assert np.array_equal(whole.ts, pieces.ts)
    assert pieces.info.lost == whole.info.lost == ()


def _indexed(data_dir: Path) -> list[tuple[str, int, int]]:
    rows: list[tuple[str, int, int]] = []
    for line in (data_dir / "trace" / "INDEX.tsv").read_text("utf-8").splitlines():
        path, what, *_ = line.split("\t")
        if match := re.search(r"(\d+) kernels, (\d+) nccl", what):
            rows.append((path, int(match.group(1)), int(match.group(2))))
    return rows


@pytest.mark.data
def test_counts_of_every_public_trace(data_dir: Path) -> None:
    rows = _indexed(data_dir)
    assert len(rows) > 25
    for path, kernels, nccl in rows:
        found = read_trace(data_dir / "trace" / path)
        if found.info.device == "ARTEMIS":  # the index counts events that are called kernels only
            continue
        kernel = found.category == Category.KERNEL
        named = found.names_matching({name for name in found.names if "nccl" in name.lower()})
        assert (path, int(kernel.sum())) == (path, kernels)
        assert (path, int(np.isin(found.name[kernel], named).sum())) == (path, nccl)
        assert [loss.what for loss in found.info.lost] == []


@pytest.mark.data
def test_epoch_times_of_a_public_trace_are_exact(data_dir: Path) -> None:
    path = data_dir / "trace" / "ns_resolution.json.gz"
    found = read_trace(path)
    texts = re.findall(rb'"ts": (\d+)\.(\d{3}), "dur"', gzip.decompress(path.read_bytes()))
    written = {int(a) * 1000 + int(b) for a, b in texts}
    assert len(written) > 40_000
    assert written <= set((found.ts + found.info.base_ns).tolist())


def test_large_lane_numbers_survive(tmp_path: Path) -> None:
    bare = {k: v for k, v in KERNEL.items() if k != "args"}
    found = read(tmp_path, [bare | {"pid": 70_000, "tid": 2**40}, bare | {"pid": "gpu", "tid": "compute"}])
    assert (found.device[0], found.stream[0]) == (70_000, 2**40)
    assert found.device[1] < NONE
    assert found.stream[1] < NONE


def test_kernels_at_time_zero_are_dropped_where_the_clock_is_late(tmp_path: Path) -> None:
    zeros = [KERNEL | {"ts": 0, "dur": 0}] * 3
    late = read(tmp_path, [KERNEL, *zeros])
    assert len(late) == 1
    assert [(x.what, x.count) for x in late.info.lost] == [("events at time zero, long before all others: dropped", 3)]
    early = read(tmp_path, [KERNEL | {"ts": 50}, *zeros])
    assert len(early) == 4
    assert early.info.lost == ()


def test_one_coarse_time_among_many_is_noticed(tmp_path: Path) -> None:
    rows = [KERNEL | {"ts": 1_712_195_495_505_583 + i} for i in range(200)]
    text = json.dumps({"traceEvents": rows}).replace("1712195495505700,", "1712195495505700.001,")
    path = tmp_path / "t.json"
    path.write_text(text)
    times = (read_trace(path).ts).tolist()
    assert times[117] == 117_001


def test_lists_without_end_are_one_broken_event(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    kernels = ", ".join([json.dumps(KERNEL)] * 2)  # the second goes with the list, which no `}, {` parts from it
    path.write_text(f'{{"traceEvents": [{kernels}, {"[" * 100_000}{"]" * 100_000}]}}')
    found = read_trace(path)
    assert len(found) == 1
    assert [loss.what for loss in found.info.lost] == ["events with broken JSON: dropped"]


def test_a_device_without_a_name_has_none(tmp_path: Path) -> None:
    assert read(tmp_path, [KERNEL], BASE | {"deviceProperties": [{"name": None}]}).info.device == ""


def test_a_duration_that_has_overflowed_is_no_time(tmp_path: Path) -> None:
    found = read(tmp_path, [KERNEL, KERNEL | {"dur": 1e18}])
    assert sorted(found.dur.tolist()) == [0, 72927]
    assert [loss.what for loss in found.info.lost] == ["events longer than a day: counted as instants"]
