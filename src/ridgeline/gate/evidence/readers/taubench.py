"""tau-bench: a list of ``{task_id, trial, reward, info, traj}``. Trials of one task are a cluster, never averaged."""

from pathlib import Path
from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.actions import action_hash
from ridgeline.gate.evidence.files import digest, document, first, head, records
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.evidence.values import score

_NEEDED = frozenset(("task_id", "reward"))


def sniff(path: Path) -> bool:
    """An array of trajectories with a task and a reward, or lines of them."""
    start = head(path).lstrip()
    if start.startswith(b"["):
        return all(name in start for name in (b'"task_id"', b'"reward"', b'"info"'))
    return {"task_id", "reward", "traj"} <= first(path).keys()


def read(path: Path, wanted: Wanted) -> Samples:
    """One row a trial; the cluster is its task. A trial that crashed is marked, and has no reward.

    Raises `InputError` for no trajectory, or a reward that is no number.
    """
    if head(path).lstrip().startswith(b"["):
        value, file, lost = document(path)
        items = (
            [item for item in value if isinstance(item, dict) and item.keys() >= _NEEDED]
            if isinstance(value, list)
            else []
        )
        if isinstance(value, list) and len(items) < len(value):
            lost = (*lost, Loss("items that are no trajectory", len(value) - len(items), path.name))
    else:
        held = records(path, _NEEDED)
        items, file, lost = held.rows, held.file, held.lost
    if not items:
        raise InputError.expected("a list of trajectories", "none", where=str(path))
    return gathered([_row(item, path) for item in items], Source(path.name, (file,), lost), wanted)


def _row(item: dict[str, Any], path: Path) -> Row:
    info, task, trial = item.get("info") or {}, item.get("task_id"), item.get("trial", 0)
    failed = bool(info.get("error")) or item.get("reward") is None
    place = f"{path.name}, task {task}, trial {trial}"
    reward = None if failed else score(item["reward"], where=place)
    trace = item.get("traj") or []
    asked = (info.get("task") or {}).get("instruction")
    labels = {"task": str(task), "cluster": str(task), "trial": str(trial)}
    prompt = digest("prompt", trace[0].get("content"), asked) if trace else None
    said = digest("out", [message.get("content") for message in trace], action_hash(trace)) if trace else None
    return Row((task, trial), {"reward": reward}, failed, labels, prompt, said)


READER = Reader("taubench", "tau-bench trajectories", sniff, read)
