"""What a compiler or framework team needs for one finding: the finding, its cost, the trace around it, the HLO.

A folder ``bug-<code>`` with ``README.md``, ``finding.json``, ``slice.json`` (opens in the Perfetto UI) and ``hlo/``.
"""

import json
import shutil
from pathlib import Path

import numpy as np

from ridgeline.core.case import Case
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.finding import Finding, Verdict
from ridgeline.trace.events import Events
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.perfetto import Slice, write

MARGIN_NS = 1_000_000  # shown before and behind the worst instance
_WORDS = {"seconds": "per step", "mfu_points": "of peak", "chip_hours": "a month", "dollars": "a month"}


def bug_package(facts: TraceFacts, case: Case, code: str, folder: Path) -> Path:
    """Write the package of the finding with that code below ``folder`` and return its place.

    Of several findings with the code the dearest that did not pass counts. Raises `InputError` where none has it.
    """
    finding = _find(case, code.upper())
    place = folder / f"bug-{finding.code.lower()}"
    (place / "hlo").mkdir(parents=True, exist_ok=True)
    part, where = worst_instance(facts, case.text(finding.sentence))
    write(facts, case, place / "slice.json", part)
    modules = [Path(module.path) for module in facts.l2.hlo if module.path] if facts.l2 else []
    kept = [file for file in modules if file.is_file()]
    for number, file in enumerate(kept):
        shutil.copyfile(file, place / "hlo" / f"{number:02d}-{file.name}")
    facts_of_it = _document(case, finding)
    (place / "finding.json").write_text(json.dumps(facts_of_it, indent=1) + "\n", encoding="utf-8")
    (place / "README.md").write_text(_readme(case, finding, where, len(kept)), encoding="utf-8")
    return place


def _find(case: Case, code: str) -> Finding:
    mine = [finding for finding in case.findings if finding.code == code]
    if not mine:
        known = sorted({finding.code for finding in case.findings})
        hint = did_you_mean(code, known, f"rules that have run: {', '.join(known)}")
        raise InputError.expected("a finding of this run", code, where="--bug", hint=hint)
    return next((finding for finding in mine if finding.verdict is not Verdict.PASS), mine[0])


def worst_instance(facts: TraceFacts, sentence: str) -> tuple[Slice, str]:
    """The longest event whose name stands in the sentence, with a margin; else the longest step of the rank."""
    if facts.run is None or not facts.l0:
        return Slice(), "no trace"
    label = facts.l2.rank if facts.l2 is not None else facts.l0[0].label
    labels = facts.run.labels()
    index = labels.index(label) if label in labels else 0
    events = facts.run.ranks[index]
    offset = facts.run.offset_ns[index] if facts.run.offset_ns else 0
    row = _longest_named(events, sentence)
    if row is not None:
        low, high = int(events.ts[row]) - MARGIN_NS, int(events.ts[row] + events.dur[row]) + MARGIN_NS
        return Slice(low + offset, high + offset, (labels[index],)), f"the longest `{_code(events.name_of(row))}`"
    rank = next((r for r in facts.l0 if r.label == labels[index]), facts.l0[0])
    at = int(np.argmax(rank.span))
    low, high = int(rank.steps.start[at]) + offset, int(rank.steps.end[at]) + offset
    return Slice(low, high, (labels[index],)), f"step {int(rank.steps.number[at])}, the longest"


def _longest_named(events: Events, sentence: str) -> int | None:
    """The longest device event named in the sentence, or launched under an operator that is."""
    wanted = [i for i, name in enumerate(events.names) if len(name) > 4 and name in sentence]
    rows = np.flatnonzero(np.isin(events.name, wanted))
    device = rows[events.on_device[rows]]
    rows = device if len(device) else rows
    return int(rows[np.argmax(events.dur[rows])]) if len(rows) else None


def _code(name: str) -> str:
    return " ".join(name.replace("`", "'").split())


def _document(case: Case, finding: Finding) -> dict[str, object]:
    whole = case.to_json()
    mine = next(item for item, own in zip(whole["findings"], case.findings, strict=True) if own is finding)
    names = {item.name for quantity in finding.quantities for item in quantity.walk()}
    return {
        "ridgeline": whole["version"], "command": case.command, "inputs": whole["inputs"], "finding": mine,
        "quantities": {name: whole["quantities"][name] for name in sorted(names)},
    }  # fmt: skip


def _readme(case: Case, finding: Finding, where: str, modules: int) -> str:
    costs = [f"- {case.text(f'{{{q.name}}}')} {_WORDS[key]}" for key, q in finding.cost.figures.items()]
    hlo = f"`hlo/` holds {modules} compiler dumps." if modules else "No HLO was given beside the trace."
    return "\n".join([
        f"# {finding.code}: {finding.title}", "", case.text(finding.sentence), "",
        "## What it costs the fleet", "", *(costs or ["Not known: give --run with machine, model and prices."]), "",
        "## What is here", "",
        f"- `slice.json`: {where}, with the buckets and exposed spans drawn in; opens in the Perfetto UI.",
        "- `finding.json`: the finding with every number and its derivation.", f"- {hlo}", "",
        "## First action", "", case.text(finding.fix) or "None.", "",
        "## How it was found", "", f"`{case.command}`", "",
    ])  # fmt: skip
