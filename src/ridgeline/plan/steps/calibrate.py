"""The user's own measured steps, folded into the expectation as one factor.

``run.json`` says what ran and how long a step took; everything but the seconds is read as a `job` file reads it::

    {
      "model": {"config": "config.json"},           or the keys of arithmetic.shape
      "cluster": "64xH100",                         and "network": "infiniband_ndr"
      "sequences": 256, "seq": 8192,
      "plan": {"tp": 4, "micro_batch": 1},          columns of plan.layout; dp is what remains
      "framework": "megatron-core", "dtype": "bf16",
      "step_s": [10.9, 11.0, 10.8]                  one number, or several steps
    }

A prediction misses a run by what its site has in common (links, clocks, a software release) and by what this
configuration has of its own. Widths of both are known from held-out published runs: the common part is what leaving
a source out adds to cross-validation inside it. Measured configurations say how large the common part is here: it is
their mean miss, drawn towards none as a normal prior of that width asks; the width that is left is that of the
posterior.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import Spec, build, read_json
from ridgeline.plan.steps import cluster as clusters
from ridgeline.plan.steps import layout
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.expected import Calibration, Residuals, expect, known, residuals
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.machine import Software

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class RunFile(Spec):
    """The keys above."""

    model: dict[str, Any]
    cluster: str
    network: str = ""
    sequences: Annotated[int, Field(gt=0)]
    seq: Annotated[int, Field(gt=0)]
    plan: dict[str, int | str] = Field(default_factory=dict)
    framework: str = "megatron-core"
    dtype: str = "bf16"
    attention: Literal["flash", "unfused"] = "flash"
    step_s: Seconds | list[Seconds]


@dataclass(frozen=True)
class Run:
    """One configuration that ran, and the seconds of its steps."""

    spec: ModelSpec
    cluster: Cluster
    batch: tuple[int, int]
    layout: Layout
    software: Software
    step_s: tuple[float, ...]


def read_run(path: str | Path) -> Run:
    """The run of a JSON file. Raises `InputError` with the place, `InfeasibleError` for a plan that cannot run."""
    file = Path(path)
    with located(file.name):
        given = build(RunFile, read_json(file, what="run file"))
        machine = clusters.parse(given.cluster, network=given.network)
        spec = _model(given.model, file)
        plan = _with_dp(given.plan, machine.chips)
        columns = Layout.of(**plan)
        layout.check(spec, given.sequences, given.seq, columns, machine.chips)
    software = Software(given.dtype, given.attention, framework=given.framework)
    steps = given.step_s if isinstance(given.step_s, list) else [given.step_s]
    if not steps:
        raise InputError.expected("at least one measured step", steps, where=f"{file.name}: $.step_s")
    return Run(spec, machine, (given.sequences, given.seq), columns, software, tuple(steps))


def _model(entry: dict[str, Any], file: Path) -> ModelSpec:
    if "config" in entry:
        return read_model(file.parent / str(entry["config"]))[0]
    return model(build(Shape, entry, where="$.model"))


def _with_dp(plan: dict[str, int | str], chips: int) -> dict[str, int | str]:
    """The plan with the data-parallel size that fills the chips."""
    if "dp" in plan:
        return plan
    used = int(np.prod([int(plan.get(name, 1)) for name in ("tp", "pp", "cp")]))
    if chips % used:
        raise InputError.expected(f"tp*pp*cp to divide the {chips} chips", used, where="$.plan")
    return plan | {"dp": chips // used}


def calibrate(runs: Iterable[Run], site: str = "") -> Calibration:
    """One factor from all runs of a user. Raises `InputError` for none.

    With common width t, own width w and n configurations the factor is exp(mean miss * t^2/(t^2 + w^2/n)), and what
    is left of the width is sqrt(w^2 + t^2*(w^2/n)/(t^2 + w^2/n)) over sqrt(w^2 + t^2).
    """
    every = list(runs)
    if not every:
        raise InputError.expected("at least one measured run", every, where="the calibration")
    misses = [_miss(run, site) for run in every]
    return _posterior(misses, residuals(every[0].spec, site), known(every[0].spec))


def _miss(run: Run, site: str) -> float:
    """ln(measured/predicted) of a run: the median of its steps, so that a stall counts little."""
    predicted = expect(run.spec, run.cluster, run.batch, run.layout, run.software, site=site).steps.step_s[0]
    return float(np.log(np.median(run.step_s) / predicted))


def _posterior(misses: Sequence[float], all_: Residuals, own: Residuals) -> Calibration:
    count = len(misses)
    within = min(own.spread, all_.spread) ** 2
    common = max(all_.spread**2 - within, 0.0)
    noise = within / count
    share = common / (common + noise)
    left = within + common * noise / (common + noise)
    return Calibration(float(np.exp(np.mean(misses) * share)), float(np.sqrt(left / (within + common))), count)
