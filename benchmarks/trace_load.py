"""How fast large profiler traces load, against HolisticTraceAnalysis (HTA).

    python benchmarks/trace_load.py TRACE.json.gz --mib 1024 [--steps N] [--out big.json] [--peer /path/to/python]

Replicates a real trace in time until the file has the wanted size: every copy is shifted by the length of the trace
and gets its own correlation, external, flow and step numbers, so that no id occurs twice. ``--steps N`` spreads N steps
over the whole file instead of the trace's own; cost must not grow with N. Each measurement runs in a fresh process; CPU
time is user + system of that process without imports, memory its peak resident set. ``--peer`` names the Python of an
environment with HolisticTraceAnalysis; without it, or where the package is absent, the comparison is left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ridgeline.trace import salvage

_IDS = ("correlation", "External id", "external id", "Ev Idx", "Sequence number", "Record function id")
_STEP = "ProfilerStep#"
_OURS = """
import json, resource, sys, time
from pathlib import Path
import numpy as np
from ridgeline.trace.read import read_trace
begin = time.process_time()
events = read_trace(Path(sys.argv[1]))
load = time.process_time() - begin
work = events.on_device
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu_s": load, "peak_mib": peak / 1024, "rows": len(events), "device": int(work.sum()),
    "device_us": float(events.dur[work].sum()) / 1000, "lost": len(events.info.lost)}))
"""
_LEVELS = """
import json, resource, sys, time
from ridgeline.trace.analyse import analyse
stages = {}
begin = time.process_time()
facts = analyse(sys.argv[1], tell=lambda what, seconds: stages.__setitem__(what, round(seconds, 2)))
cpu = time.process_time() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu_s": cpu, "peak_mib": peak / 1024, "wall_s": stages}))
"""
_PEER = """
import json, resource, sys, time
from pathlib import Path
begin = time.process_time()
from hta.trace_analysis import TraceAnalysis
run = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=str(Path(sys.argv[1]).parent))
load = time.process_time() - begin
run.get_temporal_breakdown(visualize=False)
run.get_comm_comp_overlap(visualize=False)
cpu = time.process_time() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu_s": cpu, "load_s": load, "peak_mib": peak / 1024}))
"""


def replicate(source: Path, target: Path, size_bytes: int, steps: int | None = None) -> dict[str, int]:
    """Write copies of a trace one after the other until ``size_bytes`` is reached; what was written."""
    document = json.loads(b"".join(salvage.blocks(source, salvage.Ledger())))
    originals = [e for e in document.pop("traceEvents") if e.get("ph") != "M"]
    timed = [e for e in originals if e.get("ph") == "X" and e.get("cat") != "Trace"]
    first = min(e["ts"] for e in timed)
    length = max(e["ts"] + e.get("dur", 0) for e in timed) - first
    names = [e["name"] for e in timed if str(e.get("name", "")).startswith(_STEP)]
    numbers = [int(name.removeprefix(_STEP)) for name in names if name.removeprefix(_STEP).isdigit()]
    per_copy = max(numbers, default=0) - min(numbers, default=0) + 1
    events = written = copies = 0
    with target.open("wb") as out:
        written += out.write(msgspec.json.encode(document).removesuffix(b"}") + b',"traceEvents":[\n')
        while written < size_bytes:
            batch = list(_shifted(originals, copies, length, per_copy, own_steps=steps is None))
            text = b",\n".join(map(msgspec.json.encode, batch))
            written += out.write((b",\n" if copies else b"") + text)
            events, copies = events + len(batch), copies + 1
        for number in range(steps or 0):
            span = copies * length / (steps or 1)
            step = {"ph": "X", "cat": "user_annotation", "name": f"{_STEP}{number}", "pid": 1, "tid": 1}
            written += out.write(b",\n" + msgspec.json.encode(step | {"ts": first + number * span, "dur": span}))
        written += out.write(b"\n]}\n")
    return {"bytes": written, "events": events + (steps or 0), "copies": copies}


def _shifted(events: list[Any], copy: int, length: float, per_copy: int, *, own_steps: bool) -> Iterator[Any]:
    """One copy with times and ids of its own."""
    add = copy * 10_000_000
    for event in events:
        new = dict(event)
        name = str(event.get("name", ""))
        if name.startswith(_STEP):
            if not own_steps:
                continue
            new["name"] = f"{_STEP}{int(name.removeprefix(_STEP)) + copy * per_copy}"
        new["ts"] = round(event["ts"] + copy * length, 3)
        if isinstance(event.get("id"), int):
            new["id"] = event["id"] + add
        if isinstance(event.get("args"), dict):
            moved = {k: event["args"][k] + add for k in _IDS if type(event["args"].get(k)) is int}
            new["args"] = event["args"] | moved
        yield new


def measure(code: str, python: str, path: Path) -> dict[str, Any] | None:
    """Run one measurement in a fresh process; None, with the reason on stderr, where it fails."""
    done = subprocess.run([python, "-c", code, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1:] or "killed", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Build the file, measure, print one line per tool."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peer", default="", help="Python of an environment with HolisticTraceAnalysis")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = given.out or Path(folder) / "big.json"
        if not target.exists():
            print("file", replicate(given.source, target, given.mib << 20, given.steps))
        mib = target.stat().st_size / (1 << 20)
        runs = [("load", _OURS, sys.executable), ("load + levels", _LEVELS, sys.executable)]
        runs += [("HTA", _PEER, given.peer)] if given.peer else []
        for label, code, python in runs:
            if (found := measure(code, python, target)) is not None:
                speed = mib / found.get("load_s", found["cpu_s"])
                print(f"{label:14s} {mib:7.0f} MiB  {speed:6.1f} MiB/CPU-s  {found}")


if __name__ == "__main__":
    main()
