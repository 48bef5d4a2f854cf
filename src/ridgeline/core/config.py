"""``ridgeline.toml``: which rules run and at which thresholds, as linters do it.

[rules]
select = ["P", "T1"]        # code prefixes; empty: every rule
ignore = ["P004"]

[rules.threshold]
P002 = 0.9                  # in the unit that the rule's page names

[trace.kernels]             # kernels that the trace reader does not know: expression -> kind or kind:family
"my_all_reduce" = "comm"
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StrictStr

from ridgeline.core.finding import RuleConfig
from ridgeline.core.specs import Spec, build, read_toml

NAME = "ridgeline.toml"
_Threshold = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class _Rules(Spec):
    select: tuple[StrictStr, ...] = ()
    ignore: tuple[StrictStr, ...] = ()
    threshold: Mapping[str, _Threshold] = Field(default_factory=dict)


class _Trace(Spec):
    kernels: Mapping[StrictStr, StrictStr] = Field(default_factory=dict)


class _File(Spec):
    rules: _Rules = _Rules()
    trace: _Trace = _Trace()


def find(start: str | Path = ".") -> Path | None:
    """The nearest ``ridgeline.toml`` in the folder ``start`` or above it."""
    folder = Path(start).resolve()
    for place in (folder, *folder.parents):
        if (place / NAME).is_file():
            return place / NAME
    return None


def load(start: str | Path = ".") -> RuleConfig:
    """The rule configuration that applies in the folder ``start``; the default one where there is no file.

    Raises `InputError`, with the place, for a file that does not parse, an unknown key or a value of the wrong type.
    """
    path = find(start)
    return RuleConfig() if path is None else rule_config(read_toml(path, what=NAME), where=str(path))


def rule_config(document: Mapping[str, Any], *, where: str = "") -> RuleConfig:
    """The ``[rules]`` table of a parsed document, checked; codes may be written in lower case."""
    rules = build(_File, document, where=where).rules
    return RuleConfig(
        select=tuple(code.upper() for code in rules.select),
        ignore=tuple(code.upper() for code in rules.ignore),
        thresholds={code.upper(): value for code, value in rules.threshold.items()},
    )


def kernels(start: str | Path = ".") -> Mapping[str, str]:
    """The ``[trace.kernels]`` table that applies in the folder ``start``: expression -> kind; empty without a file.

    Raises `InputError` as `load` does.
    """
    path = find(start)
    return {} if path is None else build(_File, read_toml(path, what=NAME), where=str(path)).trace.kernels
