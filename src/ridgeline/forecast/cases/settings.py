"""What ``ridgeline forecast`` may be told beside the file and the target: flags, or the same keys in a TOML file.

params = "total"            # which parameters N counts
objective = "huber"         # huber, lad, ls, logls or mle
laws = ["chinchilla"]       # empty: those that read N and D alone
interval = ""               # empty: the calibrated interval
level = 0.95
draws = 400                 # bootstrap samples
seed = 0
loss_unit = "nats"          # or bits
decimal = "."               # or a comma
keep_excluded = false       # keep rows that the file marks as excluded

[columns]                   # our name = "the file's header"
N = "model size"
[where]                     # header = value, or a list of values
recipe = "plain"
[scale]                     # a factor per column
N = 1e6
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import Spec, build, read_toml
from ridgeline.forecast.reading.read_points import ReadOptions, Wanted

MOST_DRAWS = 100_000


class Settings(Spec):
    """The keys above."""

    params: str = ""
    objective: str = "huber"
    laws: tuple[str, ...] = ()
    interval: str = ""
    level: float = Field(0.95, gt=0.5, lt=1)
    draws: int = Field(400, ge=20, le=MOST_DRAWS)
    seed: int = Field(0, ge=0)
    loss_unit: Literal["nats", "bits"] = "nats"
    decimal: str = ""
    keep_excluded: bool = False
    columns: dict[str, str] = Field(default_factory=dict)
    where: dict[str, str | float | list[str | float]] = Field(default_factory=dict)
    scale: dict[str, float] = Field(default_factory=dict)

    @property
    def reading(self) -> ReadOptions:
        """How the file is read."""
        where: dict[str, Wanted] = {**self.where}
        return ReadOptions(
            self.columns, self.params, where, self.loss_unit, self.scale, self.decimal, self.keep_excluded
        )


def settings_of(file: Path | None, **flags: Any) -> Settings:
    """The settings of a TOML file, flags on top of it; a flag that is empty was not given.

    Tables are joined key by key. Raises `InputError` with the place.
    """
    data = read_toml(file, what="forecast settings file") if file is not None else {}
    for name, value in flags.items():
        if isinstance(value, dict) and value and isinstance(data.get(name, {}), dict):
            data[name] = data.get(name, {}) | value
        elif value not in (None, "", (), {}):
            data[name] = value
    if file is None:
        return build(Settings, data)
    with located(str(file)):
        return build(Settings, data)


def pairs(items: Sequence[str], *, where: str) -> dict[str, Any]:
    """``NAME=VALUE`` items as a mapping; a name that comes twice holds a list. Raises `InputError` without the sign."""
    found: dict[str, Any] = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not (sign and name.strip() and value.strip()):
            raise InputError.expected("NAME=VALUE", item, where=where)
        known = found.get(name.strip())
        several = [*(known if isinstance(known, list) else [known]), value.strip()]
        found[name.strip()] = value.strip() if known is None else several
    return found
