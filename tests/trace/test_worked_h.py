"""The worked numbers of the MFU incident, from its own files and formulas.

256 chips of 918e12 FLOP/s, 70e9 parameters, 256 sequences of 8,192 tokens, 15.0 s a step.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.trace.runs import context, number

from ridgeline.arithmetic.tiles import waves
from ridgeline.core.quantity import given
from ridgeline.trace.audit import audit
from ridgeline.trace.bridge import Bridge, reconciled
from ridgeline.trace.context import RunContext, read_context
from ridgeline.trace.incident import buckets_total, incident
from ridgeline.trace.ladder import value
from ridgeline.trace.levels.l1 import Timing, verdict
from ridgeline.trace.levels.l3 import strip_chart
from ridgeline.trace.logs import StepLog, read_log


@pytest.fixture(scope="module")
def run() -> RunContext:
    return read_context(Path(__file__).resolve().parents[2] / "examples" / "incident")


@pytest.fixture(scope="module")
def bars(run: RunContext) -> Bridge:
    return incident(run)


def test_ideal_step() -> None:
    plain = context()
    assert number(plain.ideal) == pytest.approx(3.75, abs=0.005)
    assert number(plain.ideal) / 0.5 == pytest.approx(7.50, abs=0.01)
    assert number(plain.mfu) == pytest.approx(25.0, abs=0.05)


def test_the_shape_in_the_example_has_that_size(run: RunContext) -> None:
    assert number(run.ideal) == pytest.approx(3.75, abs=0.005)


def test_tokens_per_second_and_chip(run: RunContext) -> None:
    assert number(run.tokens_rate) == pytest.approx(547, abs=1)
    found = audit(run)
    assert number(found.lenses[1].implied) == pytest.approx(50 * 547 / 1100, abs=0.05)
    assert found.agreement(10) == "agree"


def test_geometry_audit(run: RunContext) -> None:
    found = audit(run).geometry
    assert found is not None
    head, vocab = found.padded
    assert (head.what, number(head.size), number(head.tile)) == ("head_dim", 96, 128)
    assert (vocab.what, number(vocab.size)) == ("vocab", 593.5)
    assert number(head.share) == pytest.approx(11, abs=0.5)
    assert number(vocab.share) == pytest.approx(5, abs=0.5)
    assert round(number(head.points), 1) == 2.7
    assert round(number(vocab.points), 1) == 0.3
    assert round(number(found.corrected)) == 47


def test_buckets(run: RunContext) -> None:
    assert number(buckets_total(run)) == 15.0
    shares = {name: round(100 * seconds / 15) for name, seconds in run.file.buckets.items()}
    assert shares == {"compute": 60, "exposed_comm": 24, "host_gap": 10, "late_gap": 6}


def test_bridge(bars: Bridge) -> None:
    steps = [15.0, *(number(bar.after) for bar in bars.bars)]
    assert steps == pytest.approx([15.00, 11.36, 9.37, 8.33], abs=0.006)
    points = [bar.mfu for bar in bars.bars if bar.mfu is not None]
    mfu = [number(points[0].before), *(number(p.after) for p in points)]
    assert [round(value, 1) for value in mfu] == [25.0, 33.0, 40.1, 45.0]
    assert [number(p.points) for p in points] == pytest.approx([8.0, 7.1, 4.9], abs=0.1)


def test_it_reconciles_with_the_corrected_target_and_not_with_the_first(run: RunContext, bars: Bridge) -> None:
    assert bars.ends.target is not None
    assert number(bars.ends.target) == pytest.approx(47, abs=0.1)
    assert reconciled(bars, 3) is True
    assert (8.329 - number(run.ideal) / 0.50) / 15 > 0.03


def test_periodic_stall(run: RunContext, repo: Path, bars: Bridge) -> None:
    with (repo / "examples" / "incident" / "steps.csv").open(encoding="utf-8") as file:
        seconds = np.array([float(row["step_time_s"]) for row in csv.DictReader(file)])
    assert seconds.mean() == pytest.approx(15.0, abs=0.001)
    assert len(seconds[19::20]) * (12 + 9) / len(seconds) == pytest.approx(1.04, abs=0.005)
    assert number(bars.bars[-1].seconds) == pytest.approx(1.04, abs=0.005)


def test_the_strip_chart_finds_that_stall(repo: Path) -> None:
    (log,) = read_log(repo / "examples" / "incident" / "steps.csv")
    assert isinstance(log, StepLog)
    chart = strip_chart(log)
    (stall,) = chart.stalls
    assert stall.period == 20
    assert stall.each_s == pytest.approx(21, abs=0.1)
    assert stall.per_step_s == pytest.approx(1.04, abs=0.02)


def test_the_twin_on_h100(tmp_path: Path) -> None:
    file = tmp_path / "worked-h100.toml"
    file.write_text('name = "Worked H100"\npeak.bf16 = 989e12\n', encoding="utf-8")
    twin = context(machine={"chips": f"256x{file}"}, observed={"step": "13.9s"})
    assert number(twin.ideal) == pytest.approx(3.48, abs=0.005)
    assert number(twin.mfu) == pytest.approx(25, abs=0.1)


def test_wave_quantization() -> None:
    found = waves(given("tiles", 452, "1"), given("slots", 132, "1"))
    assert number(found.count) == pytest.approx(3.42, abs=0.005)
    assert number(found.tail) == pytest.approx(42, abs=0.5)


def test_exposure() -> None:
    timing = Timing(kernel_s=1.30, exposed_wait_s=0.0, exposed_wire_s=0.85, wire_s=1.30, room_s=6.10)
    assert verdict(timing) == "scheduling"


def test_value(run: RunContext, bars: Bridge) -> None:
    found = value(bars, run)
    assert number(found.share) == pytest.approx(44, abs=0.5)
    assert number(found.chip_days) == pytest.approx(3400, abs=25)
    assert number(found.point) == pytest.approx(75, abs=0.5)
