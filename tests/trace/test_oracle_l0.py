"""L0 against exact values computed from the raw events of public traces, in ms."""

from pathlib import Path

import pytest

from ridgeline.trace.levels.l0 import BUCKETS, RankBuckets, Window, buckets, run_buckets
from ridgeline.trace.read import read_run, read_trace

pytestmark = pytest.mark.data

NAMES = ("span", "compute", "comm", "overlap", "exposed_comm", "idle")
# trace, window, span, compute, communication, overlap, exposed communication, idle; None: not in the table
KINETO: list[tuple[str, Window, tuple[float | None, ...]]] = [
    ("gpt_8xh100/rank0", "all", (176.292, 122.122, 48.340, 7.684, 40.656, 11.927)),
    ("gpt_8xh100/rank0", "linked", (168.146, 117.561, 43.117, 5.583, 37.534, 11.721)),
    ("gpt_8xh100/rank0", "before_last_step", (126.365, 87.704, 30.701, 3.558, 27.143, 10.572)),
    ("ddp_2xa100/rank0", "before_last_step", (435.588, 76.936, 24.289, 3.586, 20.703, 336.420)),
    ("ddp_2xa100/rank0", "all", (660.551, 115.656, 46.876, 7.317, 39.559, 503.051)),
    ("megatron_tp2/rank0", "all", (61.265, 1.086, 0.269, 0.104, 0.164, 59.932)),
    ("megatron_tp2/rank1", "all", (58.324, 0.841, 48.428, 0.144, 48.284, 9.152)),
    ("mi300_activation_checkpoint/rank0", "all", (86.568, 25.739, 71.517, 15.891, 55.625, 2.566)),
    ("mi300_activation_checkpoint/rank0", "linked", (56.518, 19.234, 47.200, 11.917, 35.283, 0.284)),
    ("deepseek_v3_ep64/train", "all", (129.012, 124.338, 113.030, 108.868, 4.162, 0.497)),
    ("sampled_128/rank0", "before_last_step", (600.058, 106.252, 195.327, 23.068, 172.259, 321.378)),
    ("dlrm_8xv100/rank0", "all", (13.009, 1.034, 5.798, 0.261, 5.537, 6.419)),
    ("dlrm_8xv100/rank1", "all", (18.749, 1.246, 11.336, 0.280, 11.056, 6.428)),
    ("dlrm_8xv100/rank1", "linked", (18.467, None, None, None, None, None)),
]


def in_ms(found: RankBuckets) -> tuple[float, ...]:
    return tuple(found.whole_s(name) * 1e3 for name in NAMES)


def agrees(found: RankBuckets, expected: tuple[float | None, ...]) -> None:
    """Equal to what the table prints, which is rounded to a microsecond."""
    for name, value, wanted in zip(NAMES, in_ms(found), expected, strict=True):
        assert wanted is None or value == pytest.approx(wanted, abs=0.0011), name
    assert found.total(*BUCKETS).tolist() == found.span.tolist()
    assert found.whole.total(*BUCKETS).tolist() == found.whole.span.tolist()


@pytest.mark.parametrize(("name", "window", "expected"), KINETO)
def test_kineto(data_dir: Path, name: str, window: Window, expected: tuple[float | None, ...]) -> None:
    agrees(buckets(read_trace(data_dir / "trace" / f"{name}.json.gz"), window=window), expected)


def test_linked_events_are_counted(data_dir: Path) -> None:
    found = buckets(read_trace(data_dir / "trace" / "mi300_activation_checkpoint" / "rank0.json.gz"))
    assert (found.linked, found.events) == (2685, 3653)


@pytest.mark.parametrize(
    ("device", "expected"),
    [(0, (299.849, 253.691, 17.173, 0, None, 28.985)), (1, (298.662, 256.096, 8.229, 0, None, 34.337))],
)
def test_nsight_systems_by_kernels_alone(data_dir: Path, device: int, expected: tuple[float | None, ...]) -> None:
    run = read_run(data_dir / "trace" / "nsys" / "mfu_2gpu_before.sqlite")
    agrees(buckets(run.ranks[device], work="kernels"), expected)


def test_copies_keep_a_device_busy(data_dir: Path) -> None:
    """By kernels alone this device looks idle; a stream of copies fills its time."""
    first = run_buckets(read_run(data_dir / "trace" / "nsys" / "h100_2gpu_1s.sqlite"))[0]
    assert first.whole_s("copy") == pytest.approx(0.9209, abs=1e-4)
    busy = 1 - first.whole_s("idle") / first.whole_s("span")
    assert busy == pytest.approx(0.993, abs=2e-3)
    assert first.whole_s("exposed_copy") > first.whole_s("compute")


def test_the_input_bound_run_waits_for_input(data_dir: Path) -> None:
    """The same job with no loader process and with four."""
    none, four = (buckets(read_trace(data_dir / "trace" / "input_bound_pair" / f"workers{n}.json.gz")) for n in (0, 4))
    assert none.mean_s("input_gap") > 0.03
    assert four.mean_s("input_gap") < 0.002


def test_steps_of_one_run_are_alike(data_dir: Path) -> None:
    """A job that runs 160 ms behind its host: windows by host ranges would differ by a factor of two."""
    found = buckets(read_trace(data_dir / "trace" / "a100x16" / "rank0.json.gz"))
    assert (found.span / found.span.mean()).tolist() == pytest.approx([1] * 5, abs=0.02)
