"""The expected step time and MFU of a plan, with intervals that were measured on published runs.

`step` adds up a step under named constants. Their values in ``core/data/expected.toml`` are fitted to published runs by
``scripts/fit_expected.py``: one value for all, times a factor per family of frameworks, framework, chip with data
type, family on a chip generation, class of plan (dense or mixture of experts, one node or many) and published site;
each factor is drawn towards 1 by as much as its runs allow. What was never seen has factor 1.

Intervals are quantiles of ln(actual/predicted) over held-out groups of runs, split-conformal: a configuration counts
once, and the rank is that of n + 1. A named site takes the residuals of grouped cross-validation, everything else
those of leaving a whole source out, which are wider.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ridgeline.arithmetic import conventions
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.spec import ModelSpec, MoE
from ridgeline.core import figures
from ridgeline.core.catalog import DATA, constants
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.machine import Array, Machine, Software
from ridgeline.plan.steps.step import Constants, Steps, combine
from ridgeline.plan.steps.work import work

LEVELS = ("family", "framework", "chip", "generation", "plan", "site")
SHARES = ("hidden", "beside")  # between 0 and 1: their factors multiply the odds
INTERVALS = (0.80, 0.95)
_NARROW = {"fp8": "fp8", "fp4": "fp4", "int8": "fp8"}


@dataclass(frozen=True)
class Residuals:
    """ln(actual/predicted) of held-out runs of one class: ``groups`` configurations, quantiles by level."""

    name: str
    groups: int
    low: Mapping[float, float]
    high: Mapping[float, float]

    @property
    def spread(self) -> float:
        """Half the width of the 80% interval, as a logarithm, in standard deviations of a normal."""
        return (self.high[0.80] - self.low[0.80]) / 2 / _NORMAL_80


_SOURCE = Source("step model fitted to published runs", "core/data/expected.toml")
_NORMAL_80 = 1.2815515655446004  # the 90th percentile of a standard normal


@dataclass(frozen=True)
class Calibration:
    """What the user's own runs say: one ``factor`` on every step time, and how much narrower intervals become.

    ``runs`` measured steps; ``shrink`` multiplies the logarithmic width. `calibrate` makes it.
    """

    factor: float
    shrink: float
    runs: int


@dataclass(frozen=True)
class Expected:
    """Step times of many plans with their intervals.

    ``steps`` are the most likely times, calibrated where a calibration was given. ``residuals`` name the class of
    published runs that the intervals come from.
    """

    steps: Steps
    residuals: Residuals
    spec: ModelSpec
    cluster: Cluster
    batch: tuple[int, int]
    dtype: str
    calibration: Calibration | None = None

    def interval(self, level: float = 0.80) -> tuple[Array, Array]:
        """Lower and upper step time (s) of every plan at 80% or 95%."""
        if level not in INTERVALS:
            raise InputError.expected("a level of 0.80 or 0.95", level, where="the interval")
        low, high = self.residuals.low[level], self.residuals.high[level]
        if self.calibration is not None:  # its factor has taken the bias out: the width alone is left
            half = (high - low) / 2 * self.calibration.shrink
            low, high = -half, half
        return self.steps.step_s * np.exp(low), self.steps.step_s * np.exp(high)

    def at(self, row: int, convention: str, prefix: str = "expected") -> dict[str, Quantity]:
        """One plan as quantities: ``step``, ``mfu`` and both ends of their intervals, in a named FLOPs convention.

        Names are ``<prefix>.step.low80`` and so on. MFU is useful FLOPs over peak while training runs: restarts, stalls
        and evaluation are goodput, which is another number. Raises `InputError` for an unknown convention.
        """
        counted = conventions.evaluate(conventions.find(convention), self.spec, Batch.of(self.batch[1], self.batch[0]))
        peak = self.cluster.device.peak(self.dtype)
        assert peak is not None, "the machine checked it"
        chips = leaf(f"{prefix}.chips", self.steps.peak_flops_per_s[row] / float(peak.base), "chip")
        inputs = {"flops": counted.sequence, "chips": chips, "peak": peak}
        found: dict[str, Quantity] = {}
        for name, (other, value) in self._ends(row).items():
            step = leaf(f"{prefix}.{name}", value, "s", "measured", _SOURCE, note=f"residuals {self.residuals.name}")
            mfu = derive(f"{prefix}.{other}", "flops/(step*chips*peak)", "%", step=step, **inputs)
            found[name] = step.titled("Expected step time")
            found[other] = mfu.titled(f"Expected MFU as {counted.convention.title} counts it")
        return found

    def _ends(self, row: int) -> dict[str, tuple[str, float]]:
        """Step time and its ends by name, each with the name of the MFU that it gives: a long step is a low MFU."""
        found = {"step": ("mfu", float(self.steps.step_s[row]))}
        for level in INTERVALS:
            low, high = self.interval(level)
            found[f"step.low{level * 100:.0f}"] = (f"mfu.high{level * 100:.0f}", float(low[row]))
            found[f"step.high{level * 100:.0f}"] = (f"mfu.low{level * 100:.0f}", float(high[row]))
        return found


def expect(
    spec: ModelSpec,
    cluster: Cluster,
    batch: tuple[int, int],
    layouts: Layout,
    software: Software | None = None,
    *,
    site: str = "",
    calibration: Calibration | None = None,
) -> Expected:
    """Expected step times of all plans; ``batch`` is (sequences a step, tokens a sequence).

    ``site`` names a published system of ``expected.toml`` that this cluster is: its own factors and residuals apply.
    Raises `InputError` for an unknown site or framework.
    """
    chosen = software or Software()
    steps = combine(work(spec, Machine(cluster, chosen), batch, layouts), fitted(spec, cluster, chosen, site=site))
    if calibration is not None:
        steps = scaled(steps, calibration.factor)
    return Expected(steps, residuals(spec, site), spec, cluster, batch, chosen.dtype, calibration)


def scaled(steps: Steps, factor: float) -> Steps:
    """The same steps, every second of them times ``factor``."""
    terms, wire = ({name: value * factor for name, value in part.items()} for part in (steps.terms, steps.wire))
    return replace(steps, terms=terms, wire=wire, step_s=steps.step_s * factor)


def keys(
    spec: ModelSpec, cluster: Cluster, software: Software, site: str = "", by_framework: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The class of this job at every level, empty where it has none; ``by_framework`` replaces `families`."""
    family = (families() if by_framework is None else by_framework).get(software.framework, software.framework)
    slug = cluster.device.slug
    chip = slug.partition("-sxm")[0]
    return {
        "family": family,
        "framework": software.framework,
        "chip": f"{chip}/{_NARROW.get(software.dtype, '16')}",
        "generation": f"{family}/{slug.partition('-')[0]}",
        "plan": f"{'moe' if is_moe(spec) else 'dense'}/{'one' if cluster.nodes == 1 else 'many'}",
        "site": site,
    }


def is_moe(spec: ModelSpec) -> bool:
    """Whether any layer has routed experts."""
    return any(isinstance(ffn, MoE) for kind in spec.kinds for ffn in kind.ffns)


def fitted(spec: ModelSpec, cluster: Cluster, software: Software, *, site: str = "") -> Constants:
    """The fitted constants of this job. Raises `InputError` for an unknown site or framework."""
    names = families()
    if software.framework not in {*names, *names.values()}:
        hint = did_you_mean(software.framework, names, "one of " + ", ".join(names))
        raise InputError.expected("a known framework", software.framework, where="the framework", hint=hint)
    if site and site not in _table("factors", "site"):
        hint = did_you_mean(site, _table("factors", "site"), "one of " + ", ".join(_table("factors", "site")))
        raise InputError.expected("a published site", site, where="the site", hint=hint)
    found = keys(spec, cluster, software, site)
    values = _bases()
    for level in LEVELS:
        for name, factor in _table("factors", level).get(found[level], {}).items():
            values[name] = apply(name, values[name], float(factor))
    return Constants(**values)


def apply(name: str, value: float, factor: float) -> float:
    """A constant times a factor; for a share, its odds times the factor."""
    if name not in SHARES:
        return value * factor
    odds = value / (1 - value) * factor
    return odds / (1 + odds)


def residuals(spec: ModelSpec, site: str = "") -> Residuals:
    """The class of held-out residuals that a job's interval comes from."""
    kind = "moe" if is_moe(spec) else "dense"
    names = (f"site/{site}", f"known/{kind}") if site else (f"unseen/{kind}",)
    return _residuals(next(name for name in names if name in _table("residuals")))


def known(spec: ModelSpec) -> Residuals:
    """The residuals of jobs of this kind on systems that were fitted."""
    return _residuals("known/moe" if is_moe(spec) else "known/dense")


def _residuals(name: str) -> Residuals:
    entry = _table("residuals", name)
    ends = {level: tuple(float(x) for x in entry[f"q{level * 100:.0f}"]) for level in INTERVALS}
    low, high = ({level: pair[side] for level, pair in ends.items()} for side in (0, 1))
    return Residuals(name, int(entry["groups"]), low, high)


def families() -> Mapping[str, str]:
    """Every framework with the family that it belongs to."""
    return {name: str(family) for name, family in _table("families").items()}


def sites() -> tuple[str, ...]:
    """The published systems that have factors of their own."""
    return tuple(_table("factors", "site"))


def _bases() -> dict[str, float]:
    prefix = "expected.constants."
    every = constants("expected").items()
    return {name.removeprefix(prefix): float(item.base) for name, (item, _) in every if name.startswith(prefix)}


@lru_cache(maxsize=1)
def _file() -> Mapping[str, Any]:
    return figures.read(DATA / "expected.toml")


def _table(*path: str) -> Mapping[str, Any]:
    found: Any = _file()
    for key in path:
        found = figures.table(found.get(key, {}), "$." + ".".join(path))
    return found  # type: ignore[no-any-return]
