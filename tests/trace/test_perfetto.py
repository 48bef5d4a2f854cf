"""The annotated trace is valid, keeps every nanosecond, and reads back with the same device time."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.trace.kineto_job import HOSTILE, write_job
from tests.trace.synthetic import Table

from ridgeline.trace import perfetto
from ridgeline.trace.analyse import analyse
from ridgeline.trace.case import trace_case
from ridgeline.trace.events import Category, Events
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.perfetto import CATEGORY, Slice, _threads, _us, write
from ridgeline.trace.read import read_trace


def written(folder: Path, place: Path, part: Slice | None = None) -> tuple[TraceFacts, list[dict[str, Any]]]:
    """The facts of a folder and the events of its annotated trace."""
    facts = analyse(folder)
    write(facts, trace_case(facts), place, part)
    found: list[dict[str, Any]] = json.loads(place.read_text(encoding="utf-8"))["traceEvents"]
    return facts, found


def device_ns(tables: list[Events]) -> dict[str, int]:
    """Device time by name."""
    total: dict[str, int] = defaultdict(int)
    for table in tables:
        for row in np.flatnonzero(table.on_device).tolist():
            total[table.name_of(row)] += int(table.dur[row])
    return total


def no_overlap(found: list[dict[str, Any]]) -> None:
    """The viewer drops an event that begins before the one before it on its track has ended."""
    tracks = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((round(event["ts"] * 1e3), round(event["dur"] * 1e3)))
    for spans in tracks.values():
        spans.sort()
        for (start, dur), (following, _) in pairwise(spans):
            assert start + dur <= following


def test_it_reads_back_with_the_same_device_time(tmp_path: Path) -> None:
    facts, found = written(write_job(tmp_path / "job"), tmp_path / "out.json")
    assert facts.run is not None
    assert device_ns([read_trace(tmp_path / "out.json")]) == device_ns(list(facts.run))
    no_overlap(found)


def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, _ = written(write_job(tmp_path / "job"), tmp_path / "one.json")
    monkeypatch.setattr(perfetto, "BLOCK_ROWS", 7)
    write(facts, trace_case(facts), tmp_path / "many.json")
    assert (tmp_path / "many.json").read_bytes() == (tmp_path / "one.json").read_bytes()


def test_tracks_of_ours(tmp_path: Path) -> None:
    facts, found = written(write_job(tmp_path / "job"), tmp_path / "out.json")
    processes = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert set(processes.values()) == {
        "rank0", "rank0, ridgeline", "rank1", "rank1, ridgeline", "ridgeline findings",
    }  # fmt: skip
    ours = [e for e in found if e.get("cat") == CATEGORY]
    pid = next(pid for pid, name in processes.items() if name == "rank0, ridgeline")
    buckets = sum(e["dur"] for e in ours if e["pid"] == pid and e["tid"] == 1)
    assert buckets == pytest.approx(1e6 * facts.l0[0].whole_s("span"), rel=0.01)
    names = {e["name"] for e in ours}
    assert {"Compute", "Exposed communication"} <= names
    assert any(name.startswith("step 3") for name in names)
    assert any(name.startswith("T152") for name in names)
    exposed = [e for e in ours if e["pid"] == pid and e["tid"] == 2]
    assert len(exposed) == 12
    assert exposed[0]["args"]["of it wait"] == "2.00 ms"


def test_a_slice_holds_only_what_touches_it(tmp_path: Path) -> None:
    part = Slice(20_000_000, 30_000_000, ("rank1",))
    _, found = written(write_job(tmp_path / "job"), tmp_path / "out.json", part)
    kernels = [e for e in found if e.get("cat") == "kernel"]
    assert 2 <= len(kernels) <= 4
    assert all(e["ts"] + e["dur"] >= 0 and e["ts"] <= 10_000 for e in kernels)
    assert {e["args"]["name"] for e in found if e["name"] == "process_name"} >= {"rank1"}
    assert "rank0" not in {e["args"]["name"] for e in found if e["name"] == "process_name"}


def test_names_are_text_whatever_they_hold(tmp_path: Path) -> None:
    _, found = written(write_job(tmp_path / "job", kernel=HOSTILE), tmp_path / "out.json")
    assert HOSTILE in {e["name"] for e in found}


def test_times_keep_their_nanoseconds() -> None:
    assert [_us(ns) for ns in (0, 1, 999, 1_000, 1_234_567, -1, -1_500)] == [
        "0.000", "0.001", "0.999", "1.000", "1234.567", "-0.001", "-1.500",
    ]  # fmt: skip


def test_overlapping_work_of_a_stream_gets_tracks_of_its_own() -> None:
    table = Table()
    for start, dur in ((0, 100), (50, 100), (60, 10), (200, 10)):
        table.work("k", start, dur)
    events = table.build()
    rows = np.flatnonzero(events.category == Category.KERNEL)
    assert _threads(events, rows).tolist() == [7, 1007, 2007, 7]


def test_without_a_trace_there_are_findings_alone(tmp_path: Path) -> None:
    rows = "\n".join(f"{step},{0.010 if step % 10 else 0.050}" for step in range(1, 201))
    (tmp_path / "steps.csv").write_text(f"step,step_time_s\n{rows}\n")
    _, found = written(tmp_path / "steps.csv", tmp_path / "out.json")
    assert {e["args"]["name"] for e in found if e["name"] == "process_name"} == {"ridgeline findings"}


@pytest.mark.data
@pytest.mark.parametrize("name", ["gpt_8xh100", "event_sync_multi_stream.json.gz", "ns_resolution.json.gz"])
def test_real_traces(data_dir: Path, tmp_path: Path, name: str) -> None:
    facts, found = written(data_dir / "trace" / name, tmp_path / "out.json")
    assert facts.run is not None
    assert device_ns([read_trace(tmp_path / "out.json")]) == device_ns(list(facts.run))
    no_overlap(found)
