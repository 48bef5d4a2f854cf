"""Compiler text, kernel counters and kernel summaries, alone and beside each other."""

import gzip
from pathlib import Path

import pytest

from ridgeline.core.case import Case
from ridgeline.core.errors import InputError
from ridgeline.trace import dumps
from ridgeline.trace.analyse import analyse
from ridgeline.trace.case import trace_case
from ridgeline.trace.dump_case import hlo_case

HLO = """HloModule jit_step

ENTRY %main (a: f32[8,4], b: f32[4,8]) -> f32[8,8] {
  %a = f32[8,4]{1,0} parameter(0)
  %b = f32[4,8]{1,0} parameter(1)
  %d = f32[8,8]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/dot"}
  ROOT %s = f32[8,8]{1,0} all-reduce(%d), replica_groups={{0,1}}, to_apply=%add
}
"""
AGAIN = HLO.replace(
    "  ROOT", '  %e = f32[8,8]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, '
    'metadata={op_name="jit(step)/checkpoint/rematted_computation/dot"}\n  ROOT',
)  # fmt: skip
SUMMARY = """Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,3000,3,1000.0,1000.0,999,1001,1.0,"ampere_gemm{<0>}"
25.0,1000,10,100.0,99.0,90,120,5.5,ncclDevKernel_AllReduce
"""
COUNTERS = """"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","slow","GPU Speed Of Light Throughput","Duration","us","3.5"
"0","slow","GPU Speed Of Light Throughput","Compute (SM) Throughput","%","12"
"0","slow","GPU Speed Of Light Throughput","Memory Throughput","%","20"
"""


def alone(folder: Path, name: str, text: str) -> Case:
    """The case of one file."""
    (folder / name).write_text(text)
    return trace_case(analyse(folder / name))


def codes(case: Case, family: str = "T2") -> set[str]:
    return {finding.code for finding in case.findings if finding.code.startswith(family)}


def test_a_kernel_summary(tmp_path: Path) -> None:
    case = alone(tmp_path, "sum.txt", SUMMARY)
    assert case.text(case.decision) == "75.0% of 4.00 us in kernels is ampere_gemm(<0>), in 3 runs."
    assert [row[1] for row in case.tables["dumps.kernels"].rows] == ["compute", "comm"]
    assert [row[2] for row in case.tables["dumps.kernels"].rows] == [75, 25]
    assert any("export" in text for text in case.lost)
    assert codes(case, "T") == set()  # nothing is said of operations that nobody has seen
    assert [Path(item.path).name for item in case.inputs] == ["sum.txt"]


@pytest.mark.parametrize("name", ["step.txt", "module_0001", "step.txt.gz"])
def test_compiler_text(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(HLO.encode()) if name.endswith("gz") else HLO.encode())
    case = trace_case(analyse(file))
    assert case.title == name
    assert "computes 512 FLOP in matmuls on each device" in case.text(case.decision)
    assert "moves 256 B in 1 collective." in case.text(case.decision)
    assert case.tables["dumps.collectives"].rows == (("jit_step", "all-reduce", 2, 1, 256, 1),)
    assert codes(case, "T") == {"T210", "T211", "T212"}  # without a run.toml nothing is audited
    assert sum("no run.toml" in text for text in case.lost) == 1


def test_kernel_counters(tmp_path: Path) -> None:
    case = alone(tmp_path, "ncu.csv", COUNTERS)
    assert case.text(case.decision) == "Neither compute nor memory is busy in 1 of 1 profiled kernel."
    assert case.tables["dumps.counters"].rows[0][:3] == ("slow", pytest.approx(3.5e-6), "latency bound")
    assert [str(f.verdict) for f in case.findings if f.code == "T213"] == ["warn"]


def test_all_of_them_in_a_folder_with_an_empty_trace(tmp_path: Path) -> None:
    for name, text in (("a.txt", SUMMARY), ("b.hlo", HLO), ("c.csv", COUNTERS), ("rank0.json", "")):
        (tmp_path / name).write_text(text)
    case = trace_case(analyse(tmp_path))
    assert set(case.tables) >= {"dumps.kernels", "dumps.modules", "dumps.collectives", "dumps.counters"}
    assert sum("rank0.json" in text for text in case.lost) == 1
    assert len(case.inputs) == 3


def test_a_broken_dump_is_refused_alone_and_counted_beside_another(tmp_path: Path) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text("HloModule nothing\n")
    with pytest.raises(InputError, match="at least one instruction"):
        dumps.find([broken])
    (tmp_path / "good.txt").write_text(HLO)
    found = dumps.find([tmp_path])
    assert ([m.name for m in found.hlo], [loss.where for loss in found.lost]) == (["jit_step"], [str(broken)])


def test_two_compilations(tmp_path: Path) -> None:
    for name, text in (("before.txt", HLO), ("after.txt", AGAIN)):
        (tmp_path / name).write_text(text)
    sides = [dumps.find([tmp_path / name]) for name in ("before.txt", "after.txt")]
    case = hlo_case(sides[0], sides[1], ("old", "new"))
    assert "recomputation goes from 0 FLOP to 512 FLOP" in case.text(case.decision)
    assert [row[:2] for row in case.tables["hlo.changes"].rows if row[0] == "recomputed now"] == [
        ("recomputed now", "jit(step)/checkpoint/dot")
    ]
    assert [Path(item.path).name for item in case.inputs] == ["before.txt", "after.txt"]
    same = hlo_case(sides[0], sides[0], ("old", "new"))
    assert "as much is recomputed; 0 collectives differ" in same.text(same.decision)
    assert same.tables["hlo.changes"].rows == ()


@pytest.mark.data
@pytest.mark.parametrize("name", ["nsys/a100_cuda_gpu_kern_sum.txt", "hlo/llama3_8b.txt", "ncu/copy_blocked.csv"])
def test_real_files_give_a_card(data_dir: Path, name: str) -> None:
    case = trace_case(analyse(data_dir / "trace" / name))
    assert "only the audit" not in case.decision
    assert case.sections
