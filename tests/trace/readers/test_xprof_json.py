"""The trace viewer's JSON: told from Kineto's, the same rows as the protobuf, damage."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.events import Category, Kind
from ridgeline.trace.intervals import union
from ridgeline.trace.read import read_run, read_trace, sniff
from ridgeline.trace.readers import xprof_json


def named(pid: int, process: str, **threads: str) -> list[dict[str, Any]]:
    rows = [{"args": {"name": process}, "name": "process_name", "ph": "M", "pid": pid}]
    return rows + [
        {"args": {"name": name}, "name": "thread_name", "ph": "M", "pid": pid, "tid": int(tid[1:])}
        for tid, name in threads.items()
    ]


def event(pid: int, tid: int, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": args}


def write(path: Path, events: list[dict[str, Any]], *, packed: bool = True) -> Path:
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": [*events, {}]}).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


EVENTS = [
    *named(3, "/device:TPU:0", t1="Steps", t2="XLA Ops", t3="Source code"),
    *named(701, "/host:CPU", t9="python"),
    event(3, 1, "5", 100.0, 20.0),
    event(3, 2, "all-reduce.1", 101.0005, 4.0, long_name="%all-reduce.1 = f32[8]{0} all-reduce(f32[8]{0} %x)"),
    event(3, 3, "model.py:3", 101.0, 4.0),
    event(701, 9, "train", 90.0, 40.0, step_num="5"),
]


@pytest.mark.parametrize("packed", [True, False])
def test_rows(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path / "a.trace.json.gz", EVENTS, packed=packed)
    assert sniff(path) is xprof_json.READER
    events = read_trace(path)
    found = {events.name_of(i): (Category(events.category[i]).name, int(events.ts[i])) for i in range(len(events))}
    assert found == {"train 5": ("ANNOTATION", 0), "step 5": ("STEP", 10_000), "all-reduce.1": ("KERNEL", 11_000)}
    row = int(np.flatnonzero(events.kind == Kind.COMM)[0])
    assert events.metas[int(events.meta[row])]["out_numel"] == 8
    assert events.info.extra["skipped"] == {"events of line Source code": 1}
    assert events.info.lost == ()


def test_names_may_follow_their_events(tmp_path: Path) -> None:
    moved = [*EVENTS[6:], *EVENTS[:6]]
    first, second = (
        read_trace(write(tmp_path / f"{i}.json", events, packed=False)) for i, events in enumerate((EVENTS, moved))
    )
    assert first.ts.tolist() == second.ts.tolist()
    assert first.category.tolist() == second.category.tolist()


def test_kineto_is_not_taken(tmp_path: Path) -> None:
    kineto = [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]
    found = sniff(write(tmp_path / "a.json", [*named(0, "python"), *kineto], packed=False))
    assert found is not None
    assert found.name == "kineto"


def test_cut_off_and_times_that_cannot_be(tmp_path: Path) -> None:
    bad = [event(3, 2, "fusion", -5.0, 1.0), event(3, 2, "fusion", 5.0, -1.0), event(3, 2, "fusion", 1e18, 1.0)]
    path = write(tmp_path / "a.json", [*EVENTS, *bad, event(3, 2, "last", 120.0, 3.0)], packed=False)
    text = path.read_bytes()
    path.write_bytes(text[: text.index(b'"last"')])
    events = read_trace(path)
    lost = {loss.what: loss.count for loss in events.info.lost}
    assert lost["events whose times cannot be"] == 3
    assert len(lost) >= 2
    assert "all-reduce.1" in {events.name_of(i) for i in range(len(events))}


def test_nothing_in_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a profile with events"):
        read_trace(write(tmp_path / "a.json", named(3, "/device:TPU:0"), packed=False))


@pytest.mark.data
def test_same_kernels_as_the_protobuf(data_dir: Path) -> None:
    tables = [read_trace(data_dir / f"trace/xplane/jax_te_fused_attn.{end}") for end in ("trace.json.gz", "xplane.pb")]
    first, second = (t.where(t.category == Category.KERNEL) for t in tables)
    assert np.abs((first.ts - first.ts[0]) - (second.ts - second.ts[0])).max() <= 1
    assert np.abs(first.dur - second.dur).max() <= 1
    assert [first.name_of(i) for i in range(150)] == [second.name_of(i) for i in range(150)]
    assert first.corr.tolist() == second.corr.tolist()


@pytest.mark.data
def test_offloading_on_a_tpu_is_copies_not_compute(data_dir: Path) -> None:
    run = read_run(data_dir / "trace/xplane/tpu_v6e_inference.trace.json.gz")
    assert len(run) == 4
    rank = run.ranks[0]
    sums = {kind: union(rank.ts[rank.kind == kind], rank.dur[rank.kind == kind]).total / 1e6 for kind in Kind}
    assert sums[Kind.COMPUTE] == pytest.approx(2371.48, abs=0.01)
    assert sums[Kind.COMM] == pytest.approx(365.08, abs=0.01)
    assert sums[Kind.H2D] > 50_000
    assert sums[Kind.D2H] > 50_000
    assert sums[Kind.UNCLASSIFIED] == 0
    assert (rank.category == Category.STEP).sum() == 100
