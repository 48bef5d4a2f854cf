"""What each log format says, on small logs as the programs print them and on real ones."""

from pathlib import Path

import numpy as np
import pytest
from tests.trace.logs import FORMATS, write

from ridgeline.core.errors import InputError
from ridgeline.trace.logs import DeviceSamples, StepLog, read_log

S = 10**9


def steps(text: str, folder: Path) -> StepLog:
    (log,) = read_log(write(folder / "log", text))
    assert isinstance(log, StepLog)
    return log


def devices(text: str, folder: Path) -> DeviceSamples:
    (log,) = read_log(write(folder / "log", text))
    assert isinstance(log, DeviceSamples)
    return log


def test_modded_nanogpt(tmp_path: Path) -> None:
    log = steps(FORMATS["modded-nanogpt"], tmp_path)
    assert log.step.tolist() == list(range(1, 41))
    assert log.dur.tolist() == [60_000_000] * 3 + [65_000_000] + [60_000_000] * 36
    assert log.marks["evaluation"].tolist() == [20]
    assert "validation" in log.notes[0]


def test_torchtitan(tmp_path: Path) -> None:
    log = steps(FORMATS["torchtitan"], tmp_path)
    assert log.rank == 0
    assert log.resolution_ns == 10**6
    assert log.step.tolist() == list(range(2, 25))
    assert np.unique(log.dur).tolist() == [2_001_000_000]
    assert log.values["tps"][0] == 7034
    assert log.marks["checkpoint"].tolist() == [10]


def test_torchtitan_without_time_stamps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Expected lines with a time stamp") as caught:
        read_log(write(tmp_path / "log", "step:  1  loss: 12.2  tps: 375\nstep: 10  loss: 10.7  tps: 7,034\n"))
    assert "step time" in caught.value.hint


def test_torchtitan_splits_ranks(tmp_path: Path) -> None:
    text = FORMATS["torchtitan"]
    logs = read_log(write(tmp_path / "log", text + text.replace("[rank0]", "[rank5]")))
    assert [log.rank for log in logs if isinstance(log, StepLog)] == [0, 5]


def test_megatron(tmp_path: Path) -> None:
    log = steps(FORMATS["Megatron-LM"], tmp_path)
    assert log.dur[:2].tolist() == [1_001_000_000, 1_002_000_000]
    assert log.phases["forward-compute"][0] == 153_790_000
    assert log.marks["checkpoint"].tolist() == [20]


def test_megatron_interval_and_timer_table(tmp_path: Path) -> None:
    text = (
        " iteration      100/     300 | elapsed time per iteration (ms): 1147.6 | lm loss: 7.4E+00 |\n"
        "(min, max) time across ranks (ms):\n    forward-backward ...............: (900.15, 1000.25)\n"
        " iteration      200/     300 | elapsed time per iteration (ms): 1000.0 | lm loss: 7.0E+00 |\n"
        " iteration      300/     300 | elapsed time per\n"
    )
    log = steps(text, tmp_path)
    assert log.count.tolist() == [100, 100]
    assert log.seconds.tolist() == [1.1476, 1.0]
    assert log.phases["forward-backward"][0] == pytest.approx(100_025_000_000)
    assert [loss.count for loss in log.lost] == [1]


def test_maxtext(tmp_path: Path) -> None:
    log = steps(FORMATS["MaxText"], tmp_path)
    assert log.seconds[:2].tolist() == [61.341, 1.341]
    assert log.values["TFLOP/s/device"][5] == 257.929


@pytest.mark.parametrize(
    ("header", "cell", "expected_ns"),
    [
        ("step,step_time_ms", "500", 500_000_000), ("step,Step Time (s)", "0.5", 500_000_000),
        ("iter,dt", "0.5", 500_000_000), ("step\titer_time/us", "500", 500_000), ("step;step [ms]", "500", 500_000_000),
        ("global_step,train/step_time_ms", "500", 500_000_000), ("_step,time_per_step", "0.5", 500_000_000),
    ],
)  # fmt: skip
def test_csv_units(header: str, cell: str, expected_ns: int, tmp_path: Path) -> None:
    separator = max(",\t;", key=header.count)
    log = steps(header + "\n" + "".join(f"{i}{separator}{cell}\n" for i in range(20)), tmp_path)
    assert np.unique(log.dur).tolist() == [expected_ns]
    assert bool(log.notes) == (header.split(separator)[1] in ("dt", "time_per_step"))


def test_csv_clock_phases_marks_and_ranks(tmp_path: Path) -> None:
    log = steps(FORMATS["CSV"], tmp_path)
    assert log.phases["data"][0] == 20_000_000
    assert log.marks["evaluation"].tolist() == [10]
    clock = "step,timestamp,rank\n" + "".join(
        f"{i},2026-01-01T00:00:{i:02d}.5,{rank}\n" for i in range(10) for rank in (0, 1)
    )
    logs = read_log(write(tmp_path / "log", clock))
    assert [(log.label, log.seconds.tolist()) for log in logs if isinstance(log, StepLog)] == [
        ("rank0", [1.0] * 9), ("rank1", [1.0] * 9),
    ]  # fmt: skip


def test_csv_times_of_evaluation_and_checkpoint_are_phases(tmp_path: Path) -> None:
    """With a unit they are time, without one they mark steps."""
    text = "step,step_time_s,eval_s,checkpoint_s,eval\n1,1.0,0,0,0\n2,3.5,2.5,0,1\n3,2.0,0,1,0\n"
    log = steps(text, tmp_path)
    assert {name: dur.tolist() for name, dur in log.phases.items()} == {
        "eval": [0, 25 * 10**8, 0], "checkpoint": [0, 0, 10**9],
    }  # fmt: skip
    assert {name: steps.tolist() for name, steps in log.marks.items()} == {"evaluation": [2]}
    assert log.seconds.tolist() == [1.0, 3.5, 2.0]


def test_csv_damage_is_counted(tmp_path: Path) -> None:
    log = steps("step,step_time_s\n1,0.5\nx,0.5\n2\n3,nan\n4,0.5\n", tmp_path)
    assert log.step.tolist() == [1, 4]
    assert sum(loss.count for loss in log.lost) == 3


def test_ridgeline_jsonl(tmp_path: Path) -> None:
    log = steps(FORMATS["Ridgeline JSONL"] + '{"step": 20, "t"', tmp_path)
    assert log.label == "rank3"
    assert log.seconds.tolist() == [0.5] * 20
    assert log.phases["data"].tolist() == [20_000_000] * 20
    assert log.marks["checkpoint"].tolist() == [10]
    assert [(loss.what, loss.count) for loss in log.lost] == [("line that is not a JSON object", 1)]


def test_ridgeline_jsonl_with_absurd_numbers(tmp_path: Path) -> None:
    rows = ['{"step": 0, "t": 1.0, "step_s": 0.5}', f'{{"step": 1, "t": 1.5, "step_s": 1{"0" * 400}}}',
            '{"step": 2, "t": 1e300, "step_s": 1e300}', '{"step": 3, "step_s": 0.5, "phases": [1]}']  # fmt: skip
    log = steps("\n".join(rows), tmp_path)
    assert log.seconds.tolist() == [0.5, 0.5, 0.5]
    assert log.step.tolist() == [0, 1, 3]


def test_dmon_over_midnight_and_without_a_date(tmp_path: Path) -> None:
    log = devices(FORMATS["nvidia-smi dmon"], tmp_path)
    assert log.gpu[:4].tolist() == [0, 1, 0, 1]
    assert log.t[::2].tolist() == [i * S for i in range(6)]
    assert (log.values["sm_clock_mhz"][0], log.values["power_violation_pct"][0]) == (1980, 20)
    assert np.isnan(log.values["mem_temp_c"]).all()
    header = "# Time        gpu   pwr\n#HH:MM:SS    Idx     W\n"
    night = devices(header + " 23:59:59  0  600\n 00:00:01  0  610\n 00:00:02  0\n", tmp_path)
    assert night.t.tolist() == [0, 2 * S]
    assert [loss.count for loss in night.lost] == [1]


def test_dcgm(tmp_path: Path) -> None:
    extra = "GPU 0 LINK 3  1 2\nGPU-I 2   1 2 3 4 5 6 7\nGPU 1     N/A  42  685.3  68  1980  5000  N/A\n"
    log = devices(FORMATS["DCGM dmon"] + extra, tmp_path)
    assert log.values["nvlink_tx_mb_s"][0] == 2000
    assert log.values["power_violation_total"][:4].tolist() == [0, 0, 1000, 1000]
    assert np.isnan(log.values["sm_pct"][-1])
    assert [(loss.what, loss.count) for loss in log.lost] == [("row of another entity than a GPU", 2)]


def test_smi_query(tmp_path: Path) -> None:
    log = devices(FORMATS["nvidia-smi query"], tmp_path)
    assert (log.values["power_w"][0], log.values["clock_reasons"][0]) == (640.12, 0x20)
    assert log.t[-1] == 5 * S


@pytest.mark.data
@pytest.mark.parametrize(("name", "rows", "total_s"), [("modded_0", 2245, 137.492), ("modded_3", 4740, 1041.362)])
def test_real_step_logs(name: str, rows: int, total_s: float, data_dir: Path) -> None:
    (log,) = read_log(data_dir / "trace" / "steplogs" / f"{name}.txt")
    assert isinstance(log, StepLog)
    assert log.step[-1] == rows
    assert log.dur.sum() * 1e-9 == pytest.approx(total_s, abs=0.2)
    assert log.marks["evaluation"][:2].tolist() == [0, 250]


@pytest.mark.data
@pytest.mark.parametrize(("name", "rows", "clock"), [("dmon_a", 4, 1710), ("dmon_hot", 6, 2325)])
def test_real_dmon(name: str, rows: int, clock: float, data_dir: Path) -> None:
    (log,) = read_log(data_dir / "trace" / "dmon" / f"{name}.log")
    assert isinstance(log, DeviceSamples)
    assert len(log) == rows
    assert log.values["sm_clock_mhz"][0] == clock
    assert log.lost == ()
