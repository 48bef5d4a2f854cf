"""T0, the audit that comes first: how the MFU was computed, whether other lenses agree, and what was ever possible.

Nothing here needs a trace. A reported MFU is compared with every published FLOP convention over every peak of the
device, dense and sparse. Three lenses look at the same run: the step against its analytic minimum, tokens per second
against a comparable run, and the matrix units' activity counter. Each is None where its input is missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ridgeline.arithmetic import conventions
from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.geometry import GeometryAudit
from ridgeline.arithmetic.mfu import mfu
from ridgeline.core.device import DTYPES
from ridgeline.core.format import parenthesised
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.trace.context import RunContext
from ridgeline.trace.events import Mask
from ridgeline.trace.geometry import audit_geometry
from ridgeline.trace.logs import DeviceSamples

Agreement = Literal["agree", "disagree", "unknown"]
Denominator = Literal["dense", "other dtype", "sparse", "none of the device's"]
IDLE = 0.05  # share of its processors below which a sampled device is not at work
SAME = 0.01  # relative: two roundings of one datasheet figure (989 and 989.4) are the same peak


@dataclass(frozen=True)
class Reading:
    """The run's MFU as one convention counts it over one peak; ``off`` is how far from the reported one (percent)."""

    convention: str
    title: str
    peak: Quantity
    denominator: Denominator
    mfu: Quantity
    off: Quantity | None
    hardware: bool  # recomputed FLOPs are in the number: an HFU


@dataclass(frozen=True)
class Lens:
    """One look at the run: the MFU it implies (percent). A ``bound`` says only that MFU cannot be above it."""

    name: str
    label: str
    implied: Quantity
    bound: bool = False


@dataclass(frozen=True)
class Audit:
    """Everything that the T0 rules look at.

    ``readings`` are sorted by distance from the reported MFU where there is one. ``spread`` is how far the lenses that
    are not bounds lie apart, relative to the first; ``excess`` how far MFU lies above the lowest bound (percent of it;
    negative below). ``hbm_active``: time that the HBM interface was busy (percent). ``perturbation`` is the profiler's
    share of the step, ``recompute`` what recomputation adds to the FLOPs (percent).
    """

    readings: tuple[Reading, ...]
    denominator: Denominator | None
    lenses: tuple[Lens, ...]
    spread: Quantity | None
    excess: Quantity | None
    hbm_active: Quantity | None
    geometry: GeometryAudit | None
    perturbation: Quantity | None
    recompute: Quantity | None

    def matches(self, within: float) -> tuple[Reading, ...]:
        """The readings whose MFU is within that many percent of the reported one, nearest first."""
        return tuple(r for r in self.readings if r.off is not None and abs(float(r.off.value)) <= within)

    def agreement(self, within: float) -> Agreement:
        """Whether the lenses agree to that many percent; one lens alone says nothing."""
        known = [float(q.value) for q in (self.spread, self.excess) if q is not None]
        if not known:
            return "unknown"
        return "agree" if max(known) <= within else "disagree"


def audit(context: RunContext, samples: Sequence[DeviceSamples] = ()) -> Audit:
    """The audit of a run, as far as the context goes.

    ``samples`` of the devices (DCGM) give the activity of matrix units and memory where the run file does not.
    """
    readings = tuple(_readings(context))
    active = _activity(context.file.counters.tensor_active, "tensor_active", "Matrix units active", samples)
    lenses = tuple(_lenses(context, active))
    return Audit(
        readings=tuple(sorted(readings, key=_distance)),
        denominator=_denominator(context),
        lenses=lenses,
        spread=_spread(lenses),
        excess=_excess(lenses),
        hbm_active=_activity(context.file.counters.hbm_active, "dram_active", "HBM active", samples),
        geometry=audit_geometry(context),
        perturbation=_perturbation(context),
        recompute=_recompute(context),
    )


def _readings(context: RunContext) -> Iterable[Reading]:
    """Every convention over every peak; the named peak alone where the run names one."""
    if context.step is None or context.chips is None or context.batch is None:
        return
    for name, title, hardware, total in _numerators(context):
        for slug, kind, peak in _peaks(context):
            prefix = f"audit.{name}.{slug}".replace("-", "_")
            found = mfu(total, context.chips, peak, context.step, prefix=prefix).titled(f"MFU as {title} counts it")
            yield Reading(name, title, peak, kind, found, _off(prefix, found, context.reported), hardware)


def _numerators(context: RunContext) -> Iterable[tuple[str, str, bool, Quantity]]:
    assert context.batch is not None
    if context.spec is not None:
        for counted in conventions.compare(context.spec, context.batch):
            rule = counted.convention
            yield rule.name, rule.title, rule.layer_passes > 1, counted.sequence
        return
    if context.params is None:
        return
    for name, title, passes in (("6n", "6N", 6), ("8n", "8N, full recomputation counted", 8)):
        inputs = {"N": context.params, "tokens": context.batch.tokens}
        yield name, title, passes > 6, derive(f"audit.flops.{name}", f"{passes}*N*tokens", "FLOP", **inputs)


def _peaks(context: RunContext) -> Iterable[tuple[str, Denominator, Quantity]]:
    stated = context.file.mfu.peak
    if stated is not None:
        peak = given("audit.stated_peak", stated, "FLOP/s/chip", "mfu.peak").titled("Peak of the reported MFU")
        yield "stated", _denominator(context) or "none of the device's", peak
        return
    if context.device is None or context.file.machine is None:
        return
    if context.peak is not None:
        yield "dense", "dense", context.peak
    sparse = context.device.sparse_peak(context.file.machine.dtype)
    if sparse is not None:
        yield "sparse", "sparse", sparse.titled("Peak with structured sparsity")


def _denominator(context: RunContext) -> Denominator | None:
    """What the stated peak is: None where none is stated or the device is not known."""
    stated, device, machine = context.file.mfu.peak, context.device, context.file.machine
    if stated is None or device is None or machine is None:
        return None

    def is_one_of(peaks: Mapping[str, Quantity], dtypes: Iterable[str]) -> bool:
        return any(d in peaks and abs(stated / float(peaks[d].base) - 1) <= SAME for d in dtypes)

    if context.peak is not None and abs(stated / float(context.peak.base) - 1) <= SAME:
        return "dense"
    if is_one_of(device.sparse, (machine.dtype,)):  # before other dtypes: 2x sparse bf16 is also dense fp8
        return "sparse"
    if is_one_of(device.peaks, DTYPES):
        return "other dtype"
    return "sparse" if is_one_of(device.sparse, DTYPES) else "none of the device's"


def _off(prefix: str, found: Quantity, reported: Quantity | None) -> Quantity | None:
    if reported is None:
        return None
    return derive(f"{prefix}.off", "mfu/reported - 1", "%", mfu=found, reported=reported)


def _distance(reading: Reading) -> float:
    return abs(float(reading.off.value)) if reading.off is not None else 0.0


def _activity(stated: float | None, column: str, label: str, samples: Sequence[DeviceSamples]) -> Quantity | None:
    """A share of time in percent: the run file's, else the mean of all samples in which the device was not idle."""
    if stated is not None:
        return given(f"audit.{column}", stated * 100, "%", "counters").titled(label)
    known = [table.of(column, _loaded(table)) for table in samples]
    values = np.concatenate(known) if known else np.empty(0)
    if not len(values):
        return None
    source = Source(samples[0].path, f"mean of {len(values)} samples under load, {len(samples)} hosts")
    return leaf(f"audit.{column}", float(values.mean()) * 100, "%", "measured", source).titled(label)


def _loaded(table: DeviceSamples) -> Mask:
    active = table.values.get("sm_active")
    return np.ones(len(table), dtype=np.bool_) if active is None else active > IDLE


def _lenses(context: RunContext, active: Quantity | None) -> Iterable[Lens]:
    if context.mfu is not None:
        yield Lens("step", "the step against its analytic minimum", context.mfu)
    implied = _against_comparable(context)
    if implied is not None:
        assert context.file.comparable is not None
        other = parenthesised(context.file.comparable.name)
        yield Lens("comparable", f"tokens per second against {other}", implied)
    if active is not None:
        yield Lens("counters", "time that the matrix units were active", active, bound=True)


def _against_comparable(context: RunContext) -> Quantity | None:
    """The expected MFU times the share of the comparable's tokens per second, scaled to equal sizes where known."""
    table, size = context.file.comparable, context.params
    if table is None or context.tokens_rate is None or context.expected is None:
        return None
    value = table.tokens_per_second_per_chip
    other = given("comparable.tokens_rate", value, "token/s/chip", "comparable.tokens_per_second_per_chip")
    inputs = {"expected": context.expected, "rate": context.tokens_rate, "other": other.titled("Tokens, comparable")}
    text = "expected*rate/other"
    if table.params is not None and size is not None:
        inputs |= {"N": size, "N_other": given("comparable.params", table.params, "param", "comparable.params")}
        text += "*N/N_other"
    return derive("audit.comparable_mfu", text, "%", **inputs).titled("MFU that the comparable implies")


def _spread(lenses: tuple[Lens, ...]) -> Quantity | None:
    plain = [lens.implied for lens in lenses if not lens.bound]
    if len(plain) < 2:
        return None
    found = derive("audit.lens_spread", "abs(a - b)/a", "%", a=plain[0], b=plain[1])
    return found.titled("How far the lenses lie apart")


def _excess(lenses: tuple[Lens, ...]) -> Quantity | None:
    step = [lens.implied for lens in lenses if lens.name == "step"]
    bounds = [lens.implied for lens in lenses if lens.bound]
    if not step or not bounds:
        return None
    found = derive("audit.lens_excess", "mfu/bound - 1", "%", mfu=step[0], bound=bounds[0])
    return found.titled("MFU above what the counters allow")


def _perturbation(context: RunContext) -> Quantity | None:
    if context.step is None or context.profiled is None:
        return None
    inputs = {"profiled": context.profiled, "step": context.step}
    return derive("audit.perturbation", "profiled/step - 1", "%", **inputs).titled("Step time that the profiler adds")


def _recompute(context: RunContext) -> Quantity | None:
    """HFU over MFU minus one: what recomputation adds to the FLOPs of a step, in percent."""
    if context.spec is None or context.batch is None:
        return None
    training = context.file.training
    counted = flops(context.spec, context.batch, mask=training.mask, recompute=training.recompute)
    inputs = {"again": counted.recompute, "step": counted.train_step}
    found = derive("audit.recompute", "again/step", "%", **inputs)
    return found.titled(f"FLOPs computed again, recompute {training.recompute}")
