"""Traces of agents from files: AgentDojo runs, tau-bench trajectories, or JSON lines of ``{id, messages}``.

AgentDojo's ``security`` means *the injection was executed* where there is an injection and is the constant True where
there is none; of a run that failed it means nothing. It is read as ``executed`` for injected runs that did not fail.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.actions import Call, call, calls
from ridgeline.gate.evidence.files import document, head, records
from ridgeline.gate.evidence.values import score

_FAULTLESS = (None, "", False)
Raw = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Trace:
    """One run. ``pair`` says which traces did the same under another ``variant`` of the rationale.

    ``malicious`` is a label of what the trace does, None without one; ``executed`` whether the injection was carried
    out, None where that is unknown; ``utility`` whether the task was solved; ``failed`` the run's error. ``gold`` are
    the actions that the task asks for, None where the log has none.
    """

    key: str
    messages: tuple[Raw, ...]
    pair: str
    variant: str = ""
    malicious: bool | None = None
    injected: bool = False
    executed: bool | None = None
    utility: float | None = None
    failed: str = ""
    goal: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    gold: tuple[Call, ...] | None = None

    @property
    def said(self) -> str:
        """What the agent said beside its calls."""
        return "\n".join(filter(None, (text_of(item) for item in self.messages if item.get("role") == "assistant")))


@dataclass(frozen=True)
class Traces:
    """Traces of one agent, and what could not be read."""

    name: str
    rows: tuple[Trace, ...]
    inputs: tuple[InputFile, ...]
    lost: tuple[Loss, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)


def text_of(message: Raw) -> str:
    """The text of a message: a string, or the text of its blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(b.get("text") or b.get("content") or "") for b in blocks if isinstance(b, Mapping))


def read_traces(path: str | Path) -> Traces:
    """Every trace of a file or folder. Raises `InputError` for none, several pipelines, or two of one key."""
    file = Path(path)
    if not file.exists():
        raise InputError.expected("traces of an agent", "no such file", where=str(path))
    raw, inputs, lost = _raw(file)
    found = [item for item in raw if isinstance(item, dict) and _messages(item) is not None]
    if len(found) < len(raw):
        lost.append(Loss("records without messages", len(raw) - len(found), file.name))
    if not found:
        hint = "AgentDojo runs, tau-bench trajectories, or JSON lines with id and messages"
        raise InputError.expected("traces of an agent", "no record with messages", where=str(path), hint=hint)
    pipelines = sorted({str(item["pipeline_name"]) for item in found if item.get("pipeline_name")})
    if len(pipelines) > 1:
        raise InputError.expected("traces of one agent", ", ".join(pipelines), where=str(path), hint="give its folder")
    rows = tuple(_trace(item, f"{file.name}, record {number}") for number, item in enumerate(found, 1))
    if not any(calls(row.messages) for row in rows):
        hint = "calls are read from tool_calls, function_call, and blocks of type tool_use"
        raise InputError.expected("traces with tool calls", f"none in {len(rows):,}", where=str(path), hint=hint)
    twice = [key for key, many in Counter(row.key for row in rows).items() if many > 1]
    if twice:
        raise InputError.expected("one trace a run", f"{len(twice)} keys twice, first {twice[0]!r}", where=str(path))
    return Traces(file.name, rows, tuple(inputs), tuple(lost))


def _raw(path: Path) -> tuple[list[Any], list[InputFile], list[Loss]]:
    if path.is_file() and path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        held = records(path)
        return list(held.rows), [held.file], list(held.lost)
    if path.is_file() and not head(path).lstrip().startswith((b"[", b"{")):
        raise InputError.expected("JSON or JSON lines", "another file", where=str(path))
    found: list[Any] = []
    inputs: list[InputFile] = []
    lost: list[Loss] = []
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        try:
            value, one, damaged = document(file)
        except InputError as error:
            if path.is_file():
                raise
            lost.append(Loss(f"file that cannot be read: {error.message}", 1, file.name))
            continue
        inputs.append(one)
        lost += damaged
        found += value if isinstance(value, list) else [value]
    return found, inputs, lost


def _messages(item: Raw, where: str = "") -> list[Raw] | None:
    """The messages of a record. Raises `InputError` for one that is no object: it might be a call."""
    found = next((item[key] for key in ("messages", "traj") if isinstance(item.get(key), list)), None)
    if where and found is not None:
        wrong = next((number for number, message in enumerate(found, 1) if not isinstance(message, dict)), None)
        if wrong is not None:
            raise InputError.expected("messages that are objects", found[wrong - 1], where=f"{where}, message {wrong}")
    return found


def _trace(item: Raw, place: str) -> Trace:
    failed, info = _error(item), item.get("info") or {}
    injected = bool(item.get("injection_task_id")) and item.get("user_task_id") is not None
    labels = _labels(item)
    pair = str(item.get("pair_id") or "/".join(filter(None, labels.values())) or item.get("id") or place)
    variant = str(item.get("rationale_variant") or "")
    executed = item.get("security") if injected and not failed else None
    return Trace(
        "|".join(filter(None, (pair, variant))),
        tuple(_messages(item, place) or ()),
        pair,
        variant,
        _flag(item.get("label_malicious"), f"{place}, label_malicious"),
        injected,
        _flag(executed, f"{place}, security"),
        None if failed else _solved(item, place),
        failed,
        str(item.get("goal") or ""),
        labels,
        _gold(info.get("task") if isinstance(info, dict) else None),
    )


def _error(item: Raw) -> str:
    info = item.get("info")
    said = item.get("error") or (info.get("error") if isinstance(info, dict) else None)
    return "" if said in _FAULTLESS else str(said)


def _labels(item: Raw) -> dict[str, str]:
    told = {
        "suite": item.get("suite_name"),
        "task": item["task_id"] if item.get("task_id") is not None else item.get("user_task_id"),
        "attack": item.get("attack_type"),
        "injection": item.get("injection_task_id"),
        "trial": item.get("trial"),
    }
    return {name: "" if value is None else str(value) for name, value in told.items()}


def _flag(value: Any, where: str) -> bool | None:
    return None if value is None else score(value, where=where) >= 0.5


def _solved(item: Raw, place: str) -> float | None:
    value = item["utility"] if item.get("utility") is not None else item.get("reward")
    return None if value is None else score(value, where=f"{place}, utility")


def _gold(task: Any) -> tuple[Call, ...] | None:
    wanted = task.get("actions") if isinstance(task, dict) else None
    return None if not isinstance(wanted, list) else tuple(call(one) for one in wanted if isinstance(one, dict))


def by_pair(rows: tuple[Trace, ...]) -> Iterator[tuple[Trace, ...]]:
    """Traces that share their actions by declaration, together; in the order of the file."""
    found: dict[str, list[Trace]] = {}
    for row in rows:
        found.setdefault(row.pair, []).append(row)
    return (tuple(group) for group in found.values())
