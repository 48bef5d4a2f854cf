"""Nsight Compute's CSV: both pages, damaged lines, and a real file."""

from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.readers.ncu import KernelCounters, is_ncu, parse, read

HEAD = (
    '"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name",'
    '"Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type",'
    '"Estimated Speedup"\n'
)
LAUNCH = '"0","1","gemm(float, int)","7","(256, 1, 1)","(1024, 2, 1)","0","9.0",'
DETAILS = (
    "==PROF== Connected\nprogram output\n" + HEAD
    + LAUNCH + '"GPU Speed Of Light Throughput","Duration","us","1,234.50"\n'
    + LAUNCH + '"GPU Speed Of Light Throughput","Memory Throughput","%","20.5"\n'
    + LAUNCH + '"Memory Workload Analysis","Memory Throughput","byte/s","196,456,177"\n'
    + LAUNCH + '"GPU Speed Of Light Throughput","Compute (SM) Throughput","%","75"\n'
    + LAUNCH + '"Occupancy","Achieved Occupancy","%","n/a"\n'
    + LAUNCH + '"SpeedOfLight","","","","SOLBottleneck","OPT","Look at, ""this"".","global","12.5"\n'
)  # fmt: skip


def test_details_page() -> None:
    report = parse(DETAILS)
    assert report.lost == ()
    (kernel,) = report.kernels
    assert (kernel.kernel, kernel.grid, kernel.block) == ("gemm(float, int)", (1024, 2, 1), (256, 1, 1))
    assert kernel.duration_ns == 1_234_500
    assert (kernel.sm_percent, kernel.memory_percent, kernel.achieved_occupancy_percent) == (75.0, 20.5, None)
    (rule,) = kernel.rules
    assert (rule.name, rule.text, rule.scope, rule.speedup_percent) == (
        "SOLBottleneck", 'Look at, "this".', "global", 12.5
    )  # fmt: skip


def test_raw_page() -> None:
    text = (
        '"ID","Kernel Name","Stream","Grid Size","gpu__time_duration.sum","launch__waves_per_multiprocessor",'
        '"sm__throughput.avg.pct_of_peak_sustained_elapsed"\n"","","","","ms","","%"\n'
        '"3","k","7","(1, 1, 1)","0.5","0.25","8"\n'
    )
    (kernel,) = parse(text).kernels
    assert (kernel.ident, kernel.duration_ns, kernel.waves_per_sm, kernel.sm_percent) == ("3", 500_000, 0.25, 8.0)


@pytest.mark.parametrize(
    ("sm", "memory", "bound"),
    [(80, 30, "compute bound"), (30, 80, "memory bound"), (59, 10, "latency bound"), (75, 78, "balanced"),
     (None, 80, "unknown")],
)  # fmt: skip
def test_speed_of_light_first(sm: float | None, memory: float, bound: str) -> None:
    kernel = KernelCounters("0", "k", "0", "7", "9.0", (1,), (1,), sm_percent=sm, memory_percent=memory)
    assert kernel.bound() == bound


def test_lines_that_do_not_fit_are_counted() -> None:
    report = parse(DETAILS + '"1","short"\n' + "==PROF== Disconnected\n")
    assert len(report.kernels) == 1
    assert [loss.count for loss in report.lost] == [1]


@pytest.mark.parametrize("junk", ["", "hello", "ID,Kernel Name\n", "\x00\x01", '{"traceEvents": []}'])
def test_something_else_is_refused_in_one_line(junk: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(junk, encoding="utf-8")
    with pytest.raises(InputError, match="CSV table of Nsight Compute"):
        read(file)
    assert not is_ncu(junk)


@pytest.mark.parametrize("cut", range(len(HEAD) + 40, len(DETAILS), 37))
def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(cut: int) -> None:
    assert len(parse(DETAILS[:cut]).kernels) <= 1


def test_absurd_cells_are_not_numbers() -> None:
    line = LAUNCH + '"GPU Speed Of Light Throughput","Duration","us","{}"\n'
    for text in ("nan", "inf", "1e999", "-", ",", "9" * 200):
        (kernel,) = parse(HEAD + line.format(text)).kernels
        assert kernel.duration_ns is None or kernel.duration_ns < float("inf")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path / "none.csv")


@pytest.mark.data
def test_a_real_file(data_dir: Path) -> None:
    report = read(data_dir / "trace" / "ncu" / "copy_blocked.csv")
    (kernel,) = report.kernels
    assert report.lost == ()
    assert (kernel.duration_ns, kernel.sm_percent, kernel.memory_percent, kernel.dram_percent) == (
        21_058_944, 1.30, 61.84, 61.84
    )  # fmt: skip
    assert (kernel.waves_per_sm, kernel.sm_count, kernel.achieved_occupancy_percent) == (6.4, 40, 96.26)
    assert (len(kernel.metrics), len(kernel.rules), kernel.bound()) == (71, 11, "memory bound")
