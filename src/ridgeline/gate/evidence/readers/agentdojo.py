"""AgentDojo: one JSON file a run, ``<pipeline>/<suite>/<user task>/<attack>/<injection>.json``, or JSON lines of them.

``security`` means *the injection was executed* where there is one and nothing where there is none, and it is True for
runs that crashed. It is therefore read as ``resisted``, for injected runs alone, and never for one that failed.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.actions import action_hash
from ridgeline.gate.evidence.files import digest, document, first, head, records
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.evidence.values import score

_TOLD_BY = ("suite_name", "user_task_id")
KINDS = ("injected", "benign")


def sniff(path: Path) -> bool:
    """A run with a suite and a user task: in a file, in the lines of one, or in the first file of a folder."""
    if path.is_dir():
        files = (file for file in sorted(path.rglob("*.json")) if file.is_file())
        path = next(files, path)
    if set(_TOLD_BY) <= first(path).keys():
        return True
    return path.suffix == ".json" and all(f'"{name}"'.encode() in head(path) for name in _TOLD_BY)


def read(path: Path, wanted: Wanted) -> Samples:
    """One row a run; the cluster is its user task. Metrics: ``utility``, and ``resisted`` where all runs are injected.

    Runs of both kinds are told apart by the filter ``injected`` or ``benign``, runs of several pipelines by a
    pipeline's name. Raises `InputError` where they are mixed and a metric needs one kind.
    """
    runs, inputs, lost = _runs(path)
    chosen = wanted.filter or wanted.columns.get("filter", "")
    runs = _chosen(runs, chosen, path)
    kinds = {_kind(run) for run in runs}
    asked = {*wanted.metrics, *wanted.columns.values()}
    if len(kinds) > 1 and asked & {"resisted", "security"}:
        hint = "choose the runs: filter=injected (on the command line --column filter=injected)"
        raise InputError.expected("injected runs alone", "benign ones among them", where=str(path), hint=hint)
    injected = kinds == {"injected"}
    if len(kinds) > 1 and any("security" in run for run in runs):
        lost.append(Loss("benign and injected runs in one file: security is not read", len(runs), path.name))
    rows = [_row(run, injected, path) for run in runs]
    pipeline = str(runs[0].get("pipeline_name", ""))
    settings = {"model": pipeline, "benchmark": str(runs[0].get("benchmark_version", ""))}
    return gathered(rows, Source(path.name, tuple(inputs), tuple(lost), settings, ("resisted",)), wanted)


def _runs(path: Path) -> tuple[list[dict[str, Any]], list[InputFile], list[Loss]]:
    if path.is_file() and set(_TOLD_BY) <= first(path).keys():
        held = records(path)
        return [run for run in held.rows if _is_run(run)], [held.file], [*held.lost, *_others(held.rows, path)]
    found: list[dict[str, Any]] = []
    inputs: list[InputFile] = []
    lost: list[Loss] = []
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        try:
            value, read_, damaged = document(file)
        except InputError as error:
            lost.append(Loss(f"file that cannot be read: {error.message}", 1, file.name))
            continue
        inputs.append(read_)
        lost += [*damaged, *_others([value], file)]
        found += [value] if _is_run(value) else []
    if not found:
        raise InputError.expected("runs of agents", "none", where=str(path), hint=lost[0].what if lost else "")
    return found, inputs, lost


def _is_run(value: Any) -> bool:
    return isinstance(value, dict) and set(_TOLD_BY) <= value.keys()


def _others(values: Iterable[Any], path: Path) -> list[Loss]:
    others = sum(not _is_run(value) for value in values)
    return [Loss("objects that are no run of an agent", others, path.name)] if others else []


def _chosen(runs: list[dict[str, Any]], chosen: str, path: Path) -> list[dict[str, Any]]:
    pipelines = sorted({str(run.get("pipeline_name", "")) for run in runs})
    if chosen and chosen not in (*KINDS, *pipelines):
        hint = "filters: " + ", ".join((*KINDS, *pipelines))
        raise InputError.expected("a kind of runs or a pipeline", chosen, where=str(path), hint=hint)
    if chosen in pipelines and chosen:
        return [run for run in runs if str(run.get("pipeline_name", "")) == chosen]
    if len(pipelines) > 1:
        raise InputError.expected("one pipeline", ", ".join(pipelines), where=str(path), hint="give its folder")
    return [run for run in runs if chosen in ("", _kind(run))]


def _kind(run: Mapping[str, Any]) -> str:
    return "injected" if run.get("injection_task_id") else "benign"


def _row(run: Mapping[str, Any], injected: bool, path: Path) -> Row:
    told = [str(run.get(name) or "") for name in (*_TOLD_BY, "attack_type", "injection_task_id", "rationale_variant")]
    place, failed = f"{path.name}, {'/'.join(filter(None, told))}", run.get("error") not in (None, "", False)
    scores: dict[str, float | None] = {}
    if "utility" in run:
        scores["utility"] = None if failed else score(run["utility"], where=place)
    if injected and "security" in run:
        scores["resisted"] = None if failed else 1.0 - score(run["security"], where=place)
    labels = dict(zip(("suite", "user_task", "attack", "injection", "variant"), told, strict=True))
    labels |= {"kind": _kind(run), "cluster": f"{told[0]}/{told[1]}"}
    if "label_malicious" in run:
        labels["malicious"] = str(run["label_malicious"])
    messages = [message for message in run.get("messages") or [] if isinstance(message, dict)]
    prompt = digest("prompt", run.get("injections"), [m.get("content") for m in messages if m.get("role") == "user"])
    return Row(tuple(told), scores, failed, labels, prompt, action_hash(messages))


READER = Reader("agentdojo", "AgentDojo runs", sniff, read)
