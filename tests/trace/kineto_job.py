"""A small job as Kineto files: twelve steps of 10 ms, a matmul, a late collective, and a host gap on the last rank."""

import json
from pathlib import Path
from typing import Any

STEPS, STEP_US = 12, 10_000.0
HOSTILE = "gemm</script><img src=x onerror=alert(1)>\x1b[31m{rank0.span}{nothing}\u202e\x9b2J"


def rank_events(rank: int, ranks: int, kernel: str, comm_us: float) -> list[dict[str, Any]]:
    """The events of one rank. The last rank launches its matmul 2 ms later than the others, so they wait for it."""
    late = 2_000.0 if rank == ranks - 1 and ranks > 1 else 0.0
    made: list[dict[str, Any]] = []
    for step in range(STEPS):
        at, corr = step * STEP_US, 10 * step + 1
        made.append(_event("user_annotation", f"ProfilerStep#{step}", at, STEP_US, tid=1))
        for shift, (start, dur) in enumerate(
            ((100 + late, 9_900 - comm_us), (10_000 - comm_us + late, comm_us - late))
        ):
            made.append(_event("cuda_runtime", "cudaLaunchKernel", at + start - 20, 5, tid=1, correlation=corr + shift))
            args: dict[str, Any] = {"stream": 7 if shift == 0 else 20, "device": rank, "correlation": corr + shift}
            if shift == 0:
                made.append(_event("kernel", kernel, at + start, dur, tid=7, **args))
                continue
            args |= {"Collective name": "allreduce", "dtype": "BFloat16", "Group size": ranks, "In msg nelems": 1 << 20,
                     "Out msg nelems": 1 << 20, "Process Group Name": "0", "Seq": step}  # fmt: skip
            made.append(_event("kernel", "ncclDevKernel_AllReduce_Sum_bf16", at + start, dur, tid=20, **args))
    return made


def _event(cat: str, name: str, ts: float, dur: float, *, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}


def write_job(folder: Path, ranks: int = 2, kernel: str = "sm90_gemm_bf16", comm_us: float = 2_900) -> Path:
    """One file a rank in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        document = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
            "distributedInfo": {"rank": rank, "world_size": ranks},
            "traceEvents": rank_events(rank, ranks, kernel, comm_us),
        }
        (folder / f"rank{rank}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder
