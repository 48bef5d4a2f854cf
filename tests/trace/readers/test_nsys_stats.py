"""The kernel summary of ``nsys stats``: CSV and text, units, damage."""

import math
from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.readers import nsys_stats

CSV = """Processing [a.sqlite] with [cuda_gpu_kern_sum.py]...

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
25.0,1000,10,100.0,99.0,90,120,5.5,"void add<float, 4>(float *, int)"
75.0,3000,3,1000.0,1000.0,999,1001,1.0,gemm
broken,line

Time (%),Total Time (ns),Count,Avg (ns),Operation
"""

TEXT = """
 Time(%)  Total Time (us)  Instances  Average (us)  Name
 -------  ---------------  ---------  ------------  ---------------
    60.0          1,200.5          3         400.2  gemm <a,  b>
    40.0            800.0          1         800.0  add

 other text
"""


@pytest.mark.data
def test_real_excerpt(data_dir: Path) -> None:
    found = nsys_stats.read(data_dir / "trace/nsys/a100_cuda_gpu_kern_sum.txt")
    (kernel,) = found.kernels
    assert kernel.name == "vectorAdd(const float *, const float *, float *, int)"
    assert (kernel.instances, kernel.total_ns, kernel.mean_ns, kernel.max_ns) == (1010, 1_831_281, 1813.1, 4705)
    assert kernel.total_ns / kernel.instances == pytest.approx(kernel.mean_ns, abs=0.1)


def test_csv_with_commas_in_names_and_a_broken_line() -> None:
    found = nsys_stats.parse(CSV)
    assert [k.name for k in found.kernels] == ["gemm", "void add<float, 4>(float *, int)"]
    assert found.total_ns == 4000
    assert found.share(found.kernels[0]) == 0.75
    assert found.kernels[1].stddev_ns == 5.5
    assert [loss.count for loss in found.lost] == [1]


def test_text_in_microseconds_without_all_columns() -> None:
    found = nsys_stats.parse(TEXT)
    assert [k.name for k in found.kernels] == ["gemm <a,  b>", "add"]
    assert found.kernels[0].total_ns == pytest.approx(1_200_500)
    assert found.kernels[0].mean_ns == pytest.approx(400_200)
    assert math.isnan(found.kernels[0].median_ns)


def test_launch_shapes_of_the_gb_report() -> None:
    text = (
        "Time (%),Total Time (ns),Instances,Avg (ns),GridXYZ,BlockXYZ,Name\n100.0,10,1,10,  128    2    1, 256 1 1,k\n"
    )
    assert nsys_stats.parse(text).kernels[0].grid == (128, 2, 1)
    assert nsys_stats.parse(text).kernels[0].block == (256, 1, 1)


@pytest.mark.parametrize(
    "text",
    ["", "\0\1\2", "a,b,c\n1,2,3\n", CSV.split("25.0", maxsplit=1)[0], "Time (%)  Total Time (ns)  Instances  Name\n"],
)
def test_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match="Expected"):
        nsys_stats.parse(text)


def test_sniffed_by_its_header(tmp_path: Path) -> None:
    assert nsys_stats.sniff(CSV.encode(), tmp_path)
    assert nsys_stats.sniff(TEXT.encode(), tmp_path)
    assert not nsys_stats.sniff(b"Time (%),Total Time (ns),Instances,Avg (ns),Operation,Name", tmp_path)
    assert not nsys_stats.sniff(b'{"traceEvents": []}', tmp_path)
