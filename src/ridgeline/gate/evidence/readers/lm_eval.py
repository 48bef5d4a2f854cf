"""lm-evaluation-harness: ``samples_<task>_<time>.jsonl`` beside ``results_<time>.json``; a file of either, or a folder.

One line is a document under one filter. Rows are told apart by task, filter and the hashes of document and target;
``doc_id`` is a hint only, which the harness itself logs wrongly for unsorted ``--samples``.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.choices import Choices, choices
from ridgeline.gate.evidence.files import Records, digest, document, first, records
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.evidence.values import score

_TIME = r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)"
_SAMPLES = re.compile(rf"^samples_(.+)_{_TIME}\.jsonl(?:\.gz)?$")
_RESULTS = re.compile(rf"^results_{_TIME}\.json$")
_FIELDS = frozenset((
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash",
))  # fmt: skip
HASH = 16  # hexadecimal digits of a SHA-256 that a key keeps
_NEEDED = frozenset(("doc", "filtered_resps"))
_LABELS = ("subject", "category", "type", "level", "difficulty", "domain", "language", "source")
_TOP = (
    "model_name", "git_hash", "lm_eval_version", "transformers_version", "tokenizer_pad_token", "tokenizer_eos_token",
    "tokenizer_bos_token", "eot_token_id", "max_length", "system_instruction_sha", "chat_template_sha",
    "fewshot_as_multiturn",
)  # fmt: skip
_CONFIG = (
    "model", "model_args", "batch_size", "limit", "gen_kwargs", "random_seed", "numpy_seed", "torch_seed",
    "fewshot_seed", "use_cache",
)  # fmt: skip
_OF_TASK = {"n-shot": "n_shot", "versions": "task_version", "task_hashes": "task_hash"}


def sniff(path: Path) -> bool:
    """A folder with sample files, a results file, or lines that have a document and filtered responses."""
    if path.is_dir():
        return any(_SAMPLES.match(file.name) for file in path.rglob("samples_*"))
    if _RESULTS.match(path.name):
        return True
    return first(path).keys() >= _NEEDED


def read(path: Path, wanted: Wanted) -> Samples:
    """The rows of every task: of a folder the newest file of each, of a results file those of its time.

    Raises `InputError` for several runs in one folder, for two filters of a document of which none was chosen, and for
    a score that is no finite number.
    """
    files, lost = _files(path)
    read_ = {task: records(file, _NEEDED) for task, file in files.items()}
    settings, inputs, more, directions = _settings(files)
    losses = [*lost, *more, *(loss for held in read_.values() for loss in held.lost)]
    chosen = wanted.filter or wanted.columns.get("filter", "")
    _refuse_unknown_filter(chosen, read_, path)
    rows: list[Row] = []
    for task, held in read_.items():
        kept = _filtered(held, chosen, files[task])
        losses += _missing(task, kept, settings, files[task])
        rows += _rows(task, kept, wanted, files[task], losses)
    source = Source(
        path.name, (*inputs, *(held.file for held in read_.values())), tuple(losses), settings, (), directions
    )
    return gathered(rows, source, wanted)


def _files(path: Path) -> tuple[dict[str, Path], list[Loss]]:
    """The sample file of every task."""
    if path.is_file() and not _RESULTS.match(path.name):
        named = _SAMPLES.match(path.name)
        return {named[1] if named else path.name.partition(".")[0]: path}, []
    folder, time = path, ""
    if path.is_file():
        folder, time = path.parent, _RESULTS.match(path.name)[1]  # type: ignore[index]
    found = [(match, file) for file in sorted(folder.rglob("samples_*")) if (match := _SAMPLES.match(file.name))]
    found = [(match, file) for match, file in found if not time or (match[2] == time and file.parent == folder)]
    if not found:
        hint = "the harness writes them with --log_samples"
        raise InputError.expected("files samples_<task>_<time>.jsonl", "none", where=str(path), hint=hint)
    homes = sorted({str(file.parent.relative_to(folder)) for _, file in found})
    if len(homes) > 1:
        raise InputError.expected("one run", f"{len(homes)} folders", where=str(path), hint=", ".join(homes[:6]))
    newest: dict[str, Path] = {}
    for match, file in sorted(found, key=lambda item: item[0][2]):
        newest[match[1]] = file
    older = len(found) - len(newest)
    lost = [Loss("older sample files of a task that has a newer one", older, path.name)] if older else []
    return newest, lost


def _refuse_unknown_filter(chosen: str, read_: Mapping[str, Records], path: Path) -> None:
    known = {str(row.get("filter", "none")) for held in read_.values() for row in held.rows}
    if chosen and chosen not in known:
        hint = did_you_mean(chosen, known, "filters: " + ", ".join(sorted(known)))
        raise InputError.expected("a filter of these files", chosen, where=str(path), hint=hint)


def _filtered(held: Records, chosen: str, path: Path) -> list[dict[str, Any]]:
    """Rows under one filter: the chosen one, or the only one."""
    names = sorted({str(row.get("filter", "none")) for row in held.rows})
    if len(names) == 1:
        return held.rows
    if chosen not in names:
        hint = f"choose one: filter={' or filter='.join(names)} (on the command line --column filter={names[0]})"
        raise InputError.expected("one filter a document", ", ".join(names), where=str(path), hint=hint)
    return [row for row in held.rows if str(row.get("filter", "none")) == chosen]


def _missing(task: str, kept: list[dict[str, Any]], settings: Mapping[str, str], path: Path) -> list[Loss]:
    """Documents that the results file counts and the sample file does not hold."""
    counted = settings.get(f"samples_effective of {task}", settings.get("samples_effective", ""))
    held = len({str(row.get("doc_id")) for row in kept})
    missing = int(counted) - held if counted.isdecimal() else 0
    return (
        [Loss("documents that the results file counts and the samples lack", missing, path.name)] if missing > 0 else []
    )


def _rows(task: str, raw: list[dict[str, Any]], wanted: Wanted, path: Path, lost: list[Loss]) -> list[Row]:
    plural: dict[str, int] = {}
    unknown = 0
    found = []
    for row in raw:
        place = f"{path.name}, doc_id {row.get('doc_id')}"
        scores = _scores(row, wanted, place, plural)
        odds = choices(row, place)
        if isinstance(odds, Choices):
            scores |= odds.scores
        unknown += odds is None
        found.append(_row(task, row, scores))
    lost += [
        Loss(f"values of {name}, which is no single number an example", n, path.name) for name, n in plural.items()
    ]
    if unknown:
        lost.append(Loss("choices of which the right one cannot be told: no log-loss", unknown, path.name))
    return found


def _scores(row: Mapping[str, Any], wanted: Wanted, place: str, plural: dict[str, int]) -> dict[str, float | None]:
    names = row.get("metrics") or [name for name in row if name not in _FIELDS]
    found: dict[str, float | None] = {}
    for name in names:
        value = row.get(name)
        if isinstance(value, dict) or (isinstance(value, list | tuple) and len(value) != 1):
            if name in wanted.metrics or name in wanted.columns.values():
                score(value, where=f"{place}, {name}")  # refused with the reason
            plural[name] = plural.get(name, 0) + 1
        else:
            found[name] = score(value, where=f"{place}, {name}")
    return found


def _row(task: str, row: Mapping[str, Any], scores: Mapping[str, float | None]) -> Row:
    doc = row.get("doc")
    doc_hash = row.get("doc_hash") or digest("doc", doc)
    target_hash = row.get("target_hash") or digest("target", row.get("target"))
    filter_ = str(row.get("filter", "none"))
    labels = {"task": task, "document": f"{task}|{doc_hash}", "doc_id": str(row.get("doc_id", ""))}
    if isinstance(doc, dict):
        labels |= {name: str(doc[name]) for name in _LABELS if isinstance(doc.get(name), str | int)}
    prompt = row.get("prompt_hash") or digest("prompt", row.get("arguments"))
    key = (str(doc_hash)[:HASH], str(target_hash)[:HASH], task, filter_)
    said = None if row.get("resps") is None else digest("out", row["resps"])
    return Row(key, scores, False, labels, str(prompt), said)


def _settings(
    files: Mapping[str, Path],
) -> tuple[dict[str, str], tuple[InputFile, ...], list[Loss], dict[str, bool]]:
    """What the results files of these times say: settings, with the task where it matters, and which way is better."""
    by_task: dict[str, dict[str, str]] = {}
    inputs: dict[Path, InputFile] = {}
    lost: dict[str, Loss] = {}
    directions: dict[str, bool] = {}
    for task, file in files.items():
        named = _SAMPLES.match(file.name)
        results = file.with_name(f"results_{named[2]}.json") if named else file
        if not named or not results.is_file():
            where = file.name
            lost[where] = Loss("results file that is not there: no settings to compare", 1, where)
            continue
        value, inputs[results], damaged = document(results)
        lost |= {f"{results}{n}": item for n, item in enumerate(damaged)}
        known = value if isinstance(value, dict) else {}
        by_task[task] = _of_results(known, task)
        said = (known.get("higher_is_better") or {}).get(task) or {}
        directions |= {name: bool(way) for name, way in said.items() if way is not None}
    names = dict.fromkeys(name for known in by_task.values() for name in known)
    found: dict[str, str] = {}
    for name in names:
        values = {task: known[name] for task, known in by_task.items() if name in known}
        if len(set(values.values())) == 1:
            found[name] = next(iter(values.values()))
        else:
            found |= {f"{name} of {task}": value for task, value in values.items()}
    return found, tuple(inputs.values()), list(lost.values()), directions


def _of_results(value: Mapping[str, Any], task: str) -> dict[str, str]:
    config = value.get("config") or {}
    found = {name: value.get(name) for name in _TOP} | {name: config.get(name) for name in _CONFIG}
    found |= {ours: (value.get(theirs) or {}).get(task) for theirs, ours in _OF_TASK.items()}
    counted = (value.get("n-samples") or {}).get(task) or {}
    found |= {f"samples_{name}": counted.get(name) for name in ("original", "effective")}
    found["tokenizer"] = _argument(str(config.get("model_args") or ""), "tokenizer")
    return {name: "none" if item is None or item == "" else str(item) for name, item in found.items()}


def _argument(text: str, name: str) -> str | None:
    found = re.search(rf"(?:^|,){name}=([^,]*)", text)
    return found[1] if found else None


READER = Reader("lm_eval", "lm-evaluation-harness results and samples", sniff, read)
