"""The memo: a study's plan, with the evidence that other tools have dropped into its folder.

The seam: any Case in ``<study>/evidence/*.json`` becomes a section of its own, in the order of the file names. The
first that prices served tokens (`ridgeline.plan.served`) also sets what a life of serving costs.
A file that is not a case is named among what was lost, and the memo is written all the same.
"""

import shlex
from pathlib import Path

from ridgeline.core.case import Case, InputFile, Json, load
from ridgeline.core.config import load as load_config
from ridgeline.core.errors import InputError, located
from ridgeline.plan.case import case_of
from ridgeline.plan.plan import make_plan
from ridgeline.plan.served import served_price
from ridgeline.plan.study import read_study


def memo_case(folder: str | Path) -> Case:
    """The case of a study folder (or its ``study.toml``). Raises `InputError` for a study that cannot be used."""
    study, file = read_study(folder)
    command, config = shlex.join(["ridgeline", "memo", str(folder)]), load_config(file.parent)
    found, lost = _evidence(file.parent)
    priced, unused = served_price([(path.name, document) for path, document in found])
    with located(str(file)):
        plan = make_plan(study, priced)
    case = case_of(plan, command=command, config=config)
    case.tool = "memo"
    case.inputs = [InputFile.of(path) for path in (file, *(path for path, _ in found))]
    case.evidence = [document for _, document in found]
    case.lost += lost + (unused if priced is None else [])
    return case


def _evidence(folder: Path) -> tuple[list[tuple[Path, Json]], list[str]]:
    """The cases among the evidence with their files, and what was not read."""
    found: list[tuple[Path, Json]] = []
    lost = []
    for path in sorted((folder / "evidence").glob("*.json")):
        try:
            found.append((path, load(path)))
        except InputError as error:
            lost.append(f"evidence not read: {error.message}")
    return found, lost
