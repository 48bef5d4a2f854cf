"""XSpace files: real ones where the data is, and planes of every sort and damage made here."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.xspaces import PlaneWriter, block, number, varint

from ridgeline.core.errors import InputError
from ridgeline.trace import wire
from ridgeline.trace.events import NONE, Category, Events, Kind
from ridgeline.trace.read import read_run, read_trace, sniff
from ridgeline.trace.readers import xplane

PS = 1000  # of a ns

ALL_GATHER = (
    "%all-gather.3 = bf16[8192,1024]{1,0} all-gather(bf16[1024,1024]{1,0} %param.1), channel_id=1, "
    "replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}"
)
TO_HOST = "%copy-start.1 = (f32[8]{0:S(5)}, f32[8]{0}, u32[]) copy-start(f32[8]{0} %x)"
FROM_HOST = "%copy-done.1 = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}, u32[]) %copy-start.2)"


def write(path: Path, *planes: PlaneWriter) -> Path:
    path.write_bytes(b"".join(plane.bytes() for plane in planes))
    return path


def tpu(device: int = 0) -> PlaneWriter:
    """Two steps of a program with a loop, a collective and copies beside it."""
    plane = PlaneWriter(f"/device:TPU:{device}", device_type_string="TPU v5p", peak_teraflops_per_second=459.0)
    plane.describe(
        "%fusion.1 = bf16[8]{0} fusion(bf16[8]{0} %x), kind=kLoop", "fusion.1", flops=2048, bytes_accessed=96
    )
    plane.describe("%while.2 = (bf16[8]{0}) while((bf16[8]{0}) %t), condition=%c, body=%b", "while.2")
    plane.describe(ALL_GATHER, "all-gather.3", hlo_category="all-gather", tf_op="jit(step)/layer:")
    plane.describe(TO_HOST, "copy-start.1", raw_bytes_accessed=32)
    plane.describe(FROM_HOST, "copy-done.1", raw_bytes_accessed=32)
    fusion, loop = list(plane._metas)[:2]
    plane.line("Steps", [("7", 0, 100 * PS), ("8", 100 * PS, 90 * PS)])
    plane.line("XLA Modules", [("jit_step(123)", 0, 95 * PS), ("jit_step(123)", 100 * PS, 80 * PS)])
    plane.line(
        "XLA Ops",
        [
            (loop, 10 * PS, 60 * PS), (fusion, 10 * PS, 20 * PS), (ALL_GATHER, 30 * PS, 30 * PS),
            (TO_HOST, 70 * PS, PS), (FROM_HOST, 75 * PS, 5 * PS), (fusion, 100 * PS + 999, 20 * PS + 1),
        ],
    )  # fmt: skip
    plane.line("Framework Ops", [("scope", 10 * PS, 60 * PS)])
    plane.line("XLA TraceMe", [("barrier-cores", 80 * PS, 2 * PS)])
    return plane


def by_name(events: Events) -> dict[str, int]:
    return {events.name_of(i): i for i in range(len(events))}


def meta(events: Events, row: int) -> Mapping[str, Any]:
    return events.metas[int(events.meta[row])]


def test_a_tpu_step(tmp_path: Path) -> None:
    events = read_trace(write(tmp_path / "a.xplane.pb", tpu()))
    rows = by_name(events)
    category = {name: Category(events.category[row]).name for name, row in rows.items()}
    assert category == {
        "step 7": "STEP", "step 8": "STEP", "jit_step": "DEVICE_ANNOTATION", "while.2": "DEVICE_ANNOTATION",
        "fusion.1": "KERNEL", "all-gather.3": "KERNEL", "copy-start.1": "MEMCPY", "copy-done.1": "MEMCPY",
        "barrier-cores": "DEVICE_SYNC",
    }  # fmt: skip
    assert events.kind[rows["all-gather.3"]] == Kind.COMM
    assert events.kind[rows["copy-start.1"]] == Kind.D2H
    assert events.kind[rows["copy-done.1"]] == Kind.H2D
    assert events.bytes[rows["copy-done.1"]] == 32
    gather = dict(meta(events, rows["all-gather.3"]))
    assert gather.pop("hlo") == ALL_GATHER
    assert gather == {
        "hlo_category": "all-gather", "tf_op": "jit(step)/layer", "collective": "all_gather",
        "group": "{{0,1,2,3,4,5,6,7}}", "group_size": 8, "dtype": "bf16", "out_numel": 8192 * 1024,
        "in_numel": 1024 * 1024,
    }  # fmt: skip
    assert (meta(events, rows["fusion.1"])["flops"], meta(events, rows["fusion.1"])["bytes"]) == (2048, 96)
    assert events.info.device == "TPU v5p"
    assert events.info.sm_count is None
    assert events.info.extra["skipped"] == {"events of line Framework Ops": 1}
    assert (events.thread[events.category == Category.STEP] == NONE).all()


def test_the_halves_of_a_collective_name_their_call(tmp_path: Path) -> None:
    """By the operand where the instruction's text is there, else by the name."""
    plane = PlaneWriter("/device:TPU:0")
    done = "%all-gather-done.7 = bf16[8]{0} all-gather-done((bf16[1]{0}, bf16[8]{0}) %all-gather-start.3)"
    plane.describe(done, "all-gather-done.7")
    plane.line("XLA Ops", [("all-gather-start.3", 0, PS), (done, PS, PS), ("all-reduce-done.4", 2 * PS, PS)])
    events = read_trace(write(tmp_path / "a.xplane.pb", plane))
    halves = [(meta(events, row)["phase"], meta(events, row)["call"]) for row in range(len(events))]
    assert halves == [("start", "all-gather-start.3"), ("done", "all-gather-start.3"), ("done", "all-reduce-start.4")]


def test_clocks_are_set_by_where_collectives_are_done(tmp_path: Path) -> None:
    """Rank 1 issues its half 40 us late; both are done together."""
    for rank in range(2):
        plane = PlaneWriter("/device:TPU:0")
        begun = [("all-gather-start.3", (100 * i + 40 * rank) * PS, PS) for i in range(3)]
        done = [("all-gather-done.3", (100 * i + 60) * PS, 20 * PS) for i in range(3)]
        plane.line("XLA Ops", [*begun, *done], start_ns=7000 * rank)
        write(tmp_path / f"rank{rank}.xplane.pb", plane)
    run = read_run(tmp_path)
    ends = [int(events.end.max()) + offset for events, offset in zip(run, run.offset_ns, strict=True)]
    assert (ends[0], run.spread_ns) == (ends[1], 0)


def test_picoseconds_round_down_so_that_neighbours_still_touch(tmp_path: Path) -> None:
    plane = PlaneWriter("/device:TPU:0")
    plane.line("XLA Ops", [("a", 0, 1500), ("b", 1500, 1400), ("c", 2900, 2100)], start_ns=50)
    events = xplane.read(write(tmp_path / "a.xplane.pb", plane))
    assert events.ts.tolist() == [0, 1, 2]
    assert events.end.tolist() == [1, 2, 5]
    assert events.info.base_ns == 50


def test_devices_become_ranks_on_one_clock(tmp_path: Path) -> None:
    first, second = tpu(0), tpu(3)
    second.line("XLA Ops", [("late", 500 * PS, PS)])
    host = PlaneWriter("/host:CPU")
    host.line("python", [("PjitFunction(step)", 0, 5 * PS)])
    run = read_run(write(tmp_path / "a.xplane.pb", first, second, host))
    assert [rank.info.rank for rank in run] == [0, 1]
    assert [int(rank.end.max()) for rank in run] == [190, 501]
    assert all("PjitFunction(step)" in by_name(rank) for rank in run)


def test_gpu_streams_and_calls(tmp_path: Path) -> None:
    gpu = PlaneWriter("/device:GPU:0", core_count=132)
    details = {
        "correlation_id": 9,
        "kernel_details": "regs:32 grid:4,2,1 block:256,1,1 static_shared:64 dynamic_shared:16",
    }
    gpu.line("Stream #13(Kernel,MemcpyH2D)", [
        ("gemm", 10 * PS, 5 * PS, details),
        ("MemcpyH2D", 20 * PS, 5 * PS, {"memcpy_details": "kind:H2D size:4096 dest:0 async:1"}),
        ("Memset", 30 * PS, PS, {"memset_details": "kind:Device num_bytes:8 async:1"}),
    ])  # fmt: skip
    gpu.line("XLA Ops", [("gemm", 10 * PS, 5 * PS)])
    host = PlaneWriter("/host:CPU")
    host.line("main", [
        ("cuLaunchKernel", 0, 3 * PS, {"correlation_id": 9}), ("$train.py:1 step", 0, 40 * PS),
        ("train", 0, 50 * PS, {"step_num": 4}), ("a mark", 5 * PS, 0),
    ])  # fmt: skip
    events = read_trace(write(tmp_path / "a.xplane.pb", gpu, host))
    rows = by_name(events)
    assert {n: Category(events.category[r]).name for n, r in rows.items()} == {
        "gemm": "KERNEL", "MemcpyH2D": "MEMCPY", "Memset": "MEMSET", "cuLaunchKernel": "RUNTIME",
        "train.py:1 step": "PYTHON", "train 4": "STEP",
    }  # fmt: skip
    assert meta(events, rows["gemm"]) == {"grid": (4, 2, 1), "block": (256, 1, 1), "registers": 32, "shared": 80}
    assert events.stream[rows["gemm"]] == 13
    assert events.corr[rows["gemm"]] == events.corr[rows["cuLaunchKernel"]] == 9
    assert events.kind[rows["MemcpyH2D"]] == Kind.H2D
    assert events.bytes[rows["MemcpyH2D"]] == 4096
    assert events.bytes[rows["Memset"]] == 8
    assert events.device[rows["cuLaunchKernel"]] == 0
    assert events.info.sm_count == 132
    assert events.info.extra["skipped"] == {"events of line XLA Ops": 1, "host events of no length": 1}


def test_jax_on_cpu_has_its_devices_on_host_threads(tmp_path: Path) -> None:
    host = PlaneWriter("/host:CPU")
    op = {"hlo_op": "all-reduce.1", "hlo_module": "jit_step", "device_ordinal": 1}
    host.line("tf_XLAEigen/-12", [("all-reduce.1", 10 * PS, 5 * PS, op), ("Rendezvous", 10 * PS, 4 * PS)])
    task = PlaneWriter("Task Environment", profile_start_time=1_800_000_000_000_000_000)
    events = read_trace(write(tmp_path / "a.xplane.pb", host, task))
    assert events.info.base_ns == 1_800_000_000_000_000_010
    row = by_name(events)["all-reduce.1"]
    assert (events.category[row], events.kind[row], events.device[row]) == (Category.KERNEL, Kind.COMM, 1)
    assert events.thread[row] == NONE
    assert events.category[by_name(events)["Rendezvous"]] == Category.HOST_OP


def test_runs_of_the_main_program_are_steps_where_nothing_else_says(tmp_path: Path) -> None:
    plane = PlaneWriter("/device:TPU:0")
    plane.line(
        "XLA Modules", [("jit_init(1)", 0, 9 * PS), ("jit_step(2)", 10 * PS, 8 * PS), ("jit_step(2)", 20 * PS, 8 * PS)]
    )
    plane.line("XLA Ops", [("fusion", 10 * PS, 8 * PS), ("fusion", 20 * PS, 8 * PS)])
    events = xplane.read(write(tmp_path / "a.xplane.pb", plane))
    steps = np.flatnonzero(events.category == Category.STEP)
    assert [events.name_of(int(i)) for i in steps] == ["jit_step", "jit_step"]
    assert events.info.extra["steps_from"] == "runs of the program jit_step"


def test_cut_off_file_keeps_what_was_whole(tmp_path: Path) -> None:
    whole = tpu(0).bytes()
    second = tpu(1).bytes()
    path = tmp_path / "a.xplane.pb"
    at = second.index(b"Framework Ops")
    path.write_bytes(whole + second[:at])
    events = xplane.read(path)
    assert set(events.device.tolist()) == {0, 1}
    lost = {loss.what: loss.count for loss in events.info.lost}
    assert lost["names of events: they stood behind the cut"] == 10
    assert any("file was cut off" in what for what in lost)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_any_damage_is_salvaged_or_refused(tmp_path_factory: pytest.TempPathFactory, seed: int, count: int) -> None:
    path = tmp_path_factory.mktemp("x") / "a.xplane.pb"
    data = bytearray(tpu(0).bytes() + tpu(1).bytes())
    random = np.random.default_rng(seed)
    for at in random.integers(0, len(data), count):
        data[at] = random.integers(0, 256)
    path.write_bytes(data[: random.integers(1, len(data) + 1)])
    with suppress(InputError):  # anything else is a failure
        events = xplane.read(path)
        assert len(events)
        assert (events.dur >= 0).all()


@pytest.mark.parametrize(
    "content",
    [b"", b"\x0a", b"\xff" * 100, b"\x0a\x05hello", b"\x0a\xef\xbf\xbd\xef\xbf\xbd\x06\x08\x02\x12\x0a/device:TPU:0"],
)
def test_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(content)
    with pytest.raises(InputError, match="Expected"):
        xplane.read(path)


def test_sniffed_by_content(tmp_path: Path) -> None:
    assert sniff(write(tmp_path / "renamed.bin", tpu())) is xplane.READER
    (tmp_path / "other.pb").write_bytes(block(1, b"hello") * 10)
    assert sniff(tmp_path / "other.pb") is None


def test_varints_end() -> None:
    assert wire.varint(varint(300), 0, 2) == (300, 2)
    assert wire.signed(wire.varint(varint(-5), 0, 10)[0]) == -5
    with pytest.raises(wire.WireError, match="without an end"):
        wire.varint(b"\xff" * 20, 0, 20)
    assert [f.value for f in wire.fields(number(1, 7) + number(2, 9), 0, 4)] == [7, 9]


@pytest.mark.data
def test_real_gpu_profiles(data_dir: Path) -> None:
    one = read_trace(data_dir / "trace/xplane/jax_te_fused_attn.xplane.pb")
    kernels = one.where(one.category == Category.KERNEL)
    assert len(kernels) == 150
    assert one.info.sm_count == 256
    calls = one.where(one.category == Category.RUNTIME)
    assert set(kernels.corr.tolist()) == set(calls.corr.tolist())
    eight = read_run(data_dir / "trace/xplane/jax_mi300_conv.xplane.pb")
    assert [int((r.category == Category.KERNEL).sum()) for r in eight] == [60, *[25] * 7]


@pytest.mark.data
def test_a_file_copied_as_text_is_named_so(data_dir: Path) -> None:
    with pytest.raises(InputError, match="rewritten as text"):
        read_trace(data_dir / "trace/xplane/tpu_v6e_inference.xplane.pb")
