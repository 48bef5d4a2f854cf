"""rocprofv3 JSON: small documents of the public schema."""

import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.events import Category, Events, Kind
from ridgeline.trace.read import read_run, read_trace, sniff
from ridgeline.trace.readers import rocprof

CPU, GPU0, GPU1 = 100, 200, 300


def handle(value: int) -> dict[str, int]:
    return {"handle": value}


def dispatch(start: int, end: int, kernel: int = 1, agent: int = GPU0, corr: int = 5, **more: Any) -> dict[str, Any]:
    info = {
        "size": 88, "agent_id": handle(agent), "queue_id": handle(7), "kernel_id": kernel, "dispatch_id": 1,
        "private_segment_size": 0, "group_segment_size": 4096, "workgroup_size": {"x": 256, "y": 1, "z": 1},
        "grid_size": {"x": 1000, "y": 2, "z": 1},
    }  # fmt: skip
    return {
        "size": 160, "kind": 0, "operation": 0, "thread_id": 11, "correlation_id": {"internal": corr, "external": 0},
        "start_timestamp": start, "end_timestamp": end, "dispatch_info": info, **more,
    }  # fmt: skip


def copy(start: int, end: int, source: int, target: int, operation: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": 1, "operation": operation, "thread_id": 11, "correlation_id": {"internal": 6, "external": 0},
        "start_timestamp": start, "end_timestamp": end, "src_agent_id": handle(source),
        "dst_agent_id": handle(target), **more,
    }  # fmt: skip


def call(start: int, end: int, kind: int, operation: int, corr: int) -> dict[str, Any]:
    return {
        "kind": kind, "operation": operation, "thread_id": 11, "correlation_id": {"internal": corr, "external": 0},
        "start_timestamp": start, "end_timestamp": end,
    }  # fmt: skip


def process(**buffers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "metadata": {"pid": 42, "init_time": 0, "fini_time": 1000, "command": ["train"]},
        "agents": [
            {"id": handle(CPU), "type": 1, "name": "AMD EPYC"},
            {"id": handle(GPU1), "type": 2, "name": "gfx942", "logical_node_type_id": 1, "cu_count": 304},
            {"id": handle(GPU0), "type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X", "cu_count": 304,
             "logical_node_type_id": 0},
        ],
        "strings": {
            "buffer_records": [
                {"kind": "KERNEL_DISPATCH", "operations": ["KERNEL_DISPATCH_COMPLETE"]},
                {"kind": "MEMORY_COPY",
                 "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_DEVICE"]},
                {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipMemcpyAsync"]},
                {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxThreadRangeA"]},
            ],
            "marker_api": [{"key": 21, "value": "step 3"}, {"key": 22, "value": "forward"}],
        },
        "kernel_symbols": [
            {"kernel_id": 0, "kernel_name": ""},
            {"kernel_id": 1, "kernel_name": "_Z4gemm", "formatted_kernel_name": "gemm(float*)", "arch_vgpr_count": 64},
            {"kernel_id": 2, "kernel_name": "ncclDevKernel_Generic_1", "formatted_kernel_name": ""},
        ],
        "buffer_records": buffers,
    }  # fmt: skip


BUFFERS = {
    "kernel_dispatch": [dispatch(100, 150), dispatch(150, 200, 2, stream_id=handle(3), corr=8)],
    "hip_api": [call(90, 95, 2, 0, 5), call(96, 99, 2, 1, 6)],
    "memory_copy": [copy(200, 220, CPU, GPU0, 1, bytes=4096), copy(220, 230, GPU1, GPU0, 2)],
    "marker_api": [call(80, 240, 3, 0, 21), call(81, 100, 3, 0, 22)],
    "scratch_memory": [call(1, 2, 0, 0, 30)],
}


def write(path: Path, *processes: dict[str, Any]) -> Path:
    path.write_text(json.dumps({rocprof._KEY: list(processes)}, indent=1), "utf-8")
    return path


def rows(events: Events) -> dict[str, int]:
    return {events.name_of(i): i for i in range(len(events))}


def test_one_process(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", process(**BUFFERS))
    assert sniff(path) is rocprof.READER
    events = read_trace(path)
    at = rows(events)
    assert {name: Category(events.category[row]).name for name, row in at.items()} == {
        "gemm(float*)": "KERNEL", "ncclDevKernel_Generic_1": "KERNEL", "hipLaunchKernel": "RUNTIME",
        "hipMemcpyAsync": "RUNTIME", "Memcpy HtoD": "MEMCPY", "Memcpy PtoP": "MEMCPY", "step 3": "STEP",
        "forward": "ANNOTATION",
    }  # fmt: skip
    gemm = at["gemm(float*)"]
    assert events.metas[int(events.meta[gemm])] == {
        "grid": (4, 2, 1), "block": (256, 1, 1), "registers": 64, "shared": 4096,
    }  # fmt: skip
    assert (events.ts[gemm], events.dur[gemm], events.device[gemm]) == (20, 50, 0)
    assert events.corr[gemm] == events.corr[at["hipLaunchKernel"]]
    assert events.stream[at["ncclDevKernel_Generic_1"]] == 3
    assert events.kind[at["Memcpy HtoD"]] == Kind.H2D
    assert events.bytes[at["Memcpy HtoD"]] == 4096
    assert events.kind[at["ncclDevKernel_Generic_1"]] == Kind.COMM
    assert set(events.device.tolist()) == {0}  # the process used one device: its host rows are that device's
    assert (events.info.device, events.info.sm_count, events.info.base_ns) == ("AMD Instinct MI300X", 304, 80)
    assert events.info.extra["skipped"] == {"scratch_memory": 1}
    assert events.info.lost == ()


def test_processes_and_devices_become_ranks(tmp_path: Path) -> None:
    first = process(kernel_dispatch=[dispatch(10, 20)], hip_api=[call(1, 2, 2, 0, 5)])
    second = process(kernel_dispatch=[dispatch(12, 30, 2)], hip_api=[call(3, 4, 2, 0, 5)])
    run = read_run(write(tmp_path / "a.json", first, second))
    assert [[rank.name_of(i) for i in range(len(rank))] for rank in run] == [
        ["hipLaunchKernel", "gemm(float*)"], ["hipLaunchKernel", "ncclDevKernel_Generic_1"],
    ]  # fmt: skip
    assert run.ranks[0].corr[0] != run.ranks[1].corr[0]
    assert run.ranks[1].corr[0] == run.ranks[1].corr[1]


def test_cut_off_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", process(kernel_dispatch=[dispatch(i * 10, i * 10 + 5) for i in range(50)]))
    text = path.read_bytes()
    path.write_bytes(text[: len(text) * 3 // 4])
    events = read_trace(path)
    assert 10 < len(events) < 50
    assert [loss.what for loss in events.info.lost] == ["records behind the cut: the file was cut off"]


def test_records_that_cannot_be_are_counted(tmp_path: Path) -> None:
    bad = [dispatch(20, 10), dispatch(-3, 5), dispatch(1, 2**63)]
    events = read_trace(write(tmp_path / "a.json", process(kernel_dispatch=[dispatch(1, 2, kernel=77), *bad])))
    lost = {loss.what: loss.count for loss in events.info.lost}
    assert lost == {
        "records of kernel_dispatch without valid times": 3,
        "kernels without a symbol: named by their id": 1,
    }
    assert events.name_of(0) == "kernel 77"


@pytest.mark.parametrize(
    "text",
    [
        '{"rocprofiler-sdk-tool": 5}',
        '{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [5]}}]}',
        '{"rocprofiler-sdk-tool": []}',
        '{"rocprofiler-sdk-tool": [',
        "{",
        "",
    ],
)
def test_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match="Expected"):
        rocprof.read(path)
