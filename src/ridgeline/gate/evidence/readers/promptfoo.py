"""promptfoo: JSON lines, one result of a test under a prompt and a provider each, or its JSON document of them."""

from pathlib import Path
from typing import Any

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.gate.evidence.files import digest, document, first, head, records
from ridgeline.gate.evidence.reader import Reader, Wanted
from ridgeline.gate.evidence.rows import Row, Source, gathered
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.evidence.values import score

_FAILED = 2  # failureReason: 0 none, 1 an assertion, 2 an error


def sniff(path: Path) -> bool:
    """Lines with a test and a prompt index, or a document with an evalId and results."""
    row = first(path)
    if {"testIdx", "promptIdx"} <= row.keys() or ({"evalId", "results"} <= row.keys()):
        return True
    start = head(path).lstrip()
    return start.startswith(b"{") and b'"evalId"' in start and b'"results"' in start and b'"testIdx"' in start


def read(path: Path, wanted: Wanted) -> Samples:
    """One row a result; repeats of a test are told apart by occurrence and share a cluster.

    Raises `InputError` for results of several providers of which none was chosen.
    """
    items, file, lost = _results(path)
    names = sorted({_provider(item) for item in items})
    chosen = wanted.filter or wanted.columns.get("filter", "")
    if (len(names) > 1 and not chosen) or (chosen and chosen not in names):
        hint = "choose one: filter=NAME (on the command line --column filter=NAME)"
        raise InputError.expected("one provider", chosen or ", ".join(names), where=str(path), hint=hint)
    kept = [item for item in items if chosen in ("", _provider(item))]
    rows = [_row(item, path) for item in kept]
    return gathered(rows, Source(path.name, (file,), lost, {"model": chosen or names[0]}), wanted)


def _results(path: Path) -> tuple[list[dict[str, Any]], InputFile, tuple[Loss, ...]]:
    if {"testIdx", "promptIdx"} <= first(path).keys():
        held = records(path, frozenset(("testIdx", "promptIdx")))
        return held.rows, held.file, held.lost
    value, file, lost = document(path)
    results = value.get("results") if isinstance(value, dict) else None
    items = results.get("results") if isinstance(results, dict) else results
    found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    if not found:
        raise InputError.expected("results of tests", "none", where=str(path))
    return found, file, lost


def _provider(item: dict[str, Any]) -> str:
    provider = item.get("provider")
    return str((provider.get("label") or provider.get("id")) if isinstance(provider, dict) else provider or "unnamed")


def _row(item: dict[str, Any], path: Path) -> Row:
    place = f"{path.name}, test {item.get('testIdx')}, prompt {item.get('promptIdx')}"
    answer = item.get("response")
    response: dict[str, Any] = answer if isinstance(answer, dict) else {}
    reason = item.get("failureReason")
    failed = reason == _FAILED or (reason is None and bool(item.get("error")) and not response)
    named = item.get("namedScores") or {}
    values = {"score": item.get("score"), "success": item.get("success")} | dict(named)
    scores = {n: None if failed else score(v, where=f"{place}, {n}") for n, v in values.items() if v is not None}
    prompt = (item.get("prompt") or {}).get("raw") if isinstance(item.get("prompt"), dict) else item.get("prompt")
    test = digest("test", item["vars"]) if item.get("vars") else f"test {item.get('testIdx')}"
    said = None if response.get("output") is None else digest("out", response["output"])
    labels = {"cluster": test, "prompt_index": str(item.get("promptIdx", ""))}
    return Row((test, item.get("promptIdx", 0)), scores, failed, labels, digest("prompt", prompt), said)


READER = Reader("promptfoo", "promptfoo results", sniff, read)
