"""The memo: a study's plan, with the evidence that other tools have dropped into its folder.

The seam: any Case in ``<study>/evidence/*.json`` becomes a section of its own, in the order of the file names.
A file that is not a case is named among what was lost, and the memo is written all the same.
"""

import shlex
from pathlib import Path

from ridgeline.core.case import Case, InputFile, load
from ridgeline.core.config import load as load_config
from ridgeline.core.errors import InputError, located
from ridgeline.plan.case import case_of
from ridgeline.plan.plan import make_plan
from ridgeline.plan.study import read_study


def memo_case(folder: str | Path) -> Case:
    """The case of a study folder (or its ``study.toml``). Raises `InputError` for a study that cannot be used."""
    study, file = read_study(folder)
    command, config = shlex.join(["ridgeline", "memo", str(folder)]), load_config(file.parent)
    with located(str(file)):
        plan = make_plan(study)
    case = case_of(plan, command=command, config=config)
    case.tool = "memo"
    case.inputs = [InputFile.of(file)]
    for path in sorted((file.parent / "evidence").glob("*.json")):
        try:
            case.evidence.append(load(path))
        except InputError as error:
            case.lost.append(f"evidence not read: {error.message}")
        else:
            case.inputs.append(InputFile.of(path))
    return case
