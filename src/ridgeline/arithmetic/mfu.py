"""MFU, HFU, and where the time of a step goes.

MFU is model FLOPs (6N per token, or a named convention) over what the chips could do in the time taken; HFU counts
recomputed FLOPs too. Neither means anything without its FLOP convention: pass the FLOPs that you mean.
Chowdhery et al., "PaLM", 2022, appendix B.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ridgeline.arithmetic.inputs import require_at_least, require_not_negative, require_positive, under
from ridgeline.arithmetic.napkin import training_compute
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive

MATMUL = "matmul"


def step_flops(params: Quantity, tokens: Quantity, prefix: str = "") -> Quantity:
    """``step.flops`` (FLOP) of ``tokens`` a step: 6 N D, as for a whole run."""
    return training_compute(params, tokens).named(under(prefix, "step.flops")).titled("FLOPs per step")


def ideal_time(flops: Quantity, chips: Quantity, peak: Quantity, prefix: str = "") -> Quantity:
    """``step.ideal`` (s): the FLOPs at peak, ``peak`` in FLOP/s/chip."""
    require_positive(flops, chips, peak)
    text = "flops/(chips*peak)"
    found = derive(under(prefix, "step.ideal"), text, "s", flops=flops, chips=chips, peak=peak)
    return found.titled("Ideal step time")


def mfu(flops: Quantity, chips: Quantity, peak: Quantity, step_time: Quantity, prefix: str = "") -> Quantity:
    """``mfu`` (percent): model FLOPs of a step over what ``chips`` could do in ``step_time`` (s)."""
    return _utilization(under(prefix, "mfu"), flops, chips, peak, step_time).titled("MFU")


def hfu(flops: Quantity, chips: Quantity, peak: Quantity, step_time: Quantity, prefix: str = "") -> Quantity:
    """``hfu`` (percent): the same for the FLOPs that the hardware executes, recomputation included."""
    return _utilization(under(prefix, "hfu"), flops, chips, peak, step_time).titled("HFU")


def _utilization(name: str, flops: Quantity, chips: Quantity, peak: Quantity, step_time: Quantity) -> Quantity:
    require_positive(flops, chips, peak, step_time)
    return derive(name, "flops/(chips*peak*step)", "%", flops=flops, chips=chips, peak=peak, step=step_time)


def points_of(ideal: Quantity, step: Quantity, lost: Quantity, name: str) -> Quantity:
    """``name`` (percent): MFU points that ``lost`` seconds of a step are worth alone: ideal/(step - lost) - ideal/step.

    MFU is not linear in the step: the same seconds are worth more points on a shorter one.
    """
    inputs = {"ideal": ideal, "step": step, "lost": lost}
    found = derive(name, "ideal/(step - lost) - ideal/step", "%", **inputs)
    return found.titled("MFU points that the seconds are worth", "alone, from the step as it is")


def hfu_of_mfu(model_flops_utilization: Quantity, recomputed: Quantity, prefix: str = "") -> Quantity:
    """``hfu.with_recompute`` (percent): HFU = MFU*(3 + recomputed)/3.

    ``recomputed`` is the share of the forward pass done again in the backward: 1 for full recomputation (4/3), 0 for
    none. The forward is one third of the 6N.
    """
    require_positive(model_flops_utilization)
    require_not_negative(recomputed)
    name, text = under(prefix, "hfu.with_recompute"), "mfu*(3 + recomputed)/3"
    return derive(name, text, "%", mfu=model_flops_utilization, recomputed=recomputed).titled("HFU with recomputation")


@dataclass(frozen=True)
class MfuBudget:
    """Seconds by bucket, their ``total``, each one's ``share`` in percent, and the biggest ``lever``.

    The lever is the largest bucket that is not useful work; empty where every other bucket is zero.
    ``without_lever`` is the total (s) if that bucket were gone.
    """

    buckets: Mapping[str, Quantity]
    total: Quantity
    shares: Mapping[str, Quantity]
    lever: str
    without_lever: Quantity | None


def budget(buckets: Mapping[str, Quantity], useful: Collection[str] = (MATMUL,), prefix: str = "") -> MfuBudget:
    """``budget.total`` (s), ``budget.share.<bucket>`` (percent) and ``budget.without_lever`` (s) of one step.

    ``buckets`` maps a bucket to its seconds (plain numbers, not candidates); those in ``useful`` are never the lever.
    Raises `InputError` for no bucket, a negative one, or a total of zero.
    """
    if not buckets:
        raise InputError.expected("at least one bucket of time", {}, where="the MFU budget")
    require_not_negative(*buckets.values())
    symbols = {f"t_{number}": item for number, item in enumerate(buckets.values())}
    total = derive(under(prefix, "budget.total"), " + ".join(symbols), "s", **symbols).titled("Step time, all buckets")
    require_positive(total)
    shares = {
        bucket: derive(under(prefix, f"budget.share.{bucket}"), "part/total", "%", part=item, total=total).titled(
            f"Share of {bucket.replace('_', ' ')}"
        )
        for bucket, item in buckets.items()
    }
    lever = _lever(buckets, useful)
    without = None
    if lever:
        name = under(prefix, "budget.without_lever")
        without = derive(name, "total - lever", "s", total=total, lever=buckets[lever])
        without = without.titled(f"Step time without {lever.replace('_', ' ')}")
    return MfuBudget(buckets, total, shares, lever, without)


def _lever(buckets: Mapping[str, Quantity], useful: Collection[str]) -> str:
    losses = {bucket: item.base for bucket, item in buckets.items() if bucket not in useful and item.base > 0}
    return max(losses, key=lambda bucket: float(losses[bucket])) if losses else ""


def pipeline_utilization(
    microbatches: Quantity, stages: Quantity, chunks: Quantity | None = None, prefix: str = ""
) -> Quantity:
    """``pipeline.utilization`` (percent): M/(M + S - 1) for GPipe and 1F1B; interleaved: M/(M + (S - 1)/v).

    ``chunks`` is v, the model chunks each stage holds. Equal stages, no transfer time: an upper bound.
    Narayanan et al., 2021, section 2.2.
    """
    require_at_least(microbatches, 1)
    require_at_least(stages, 1)
    name = under(prefix, "pipeline.utilization")
    if chunks is None:
        found = derive(name, "M/(M + S - 1)", "%", M=microbatches, S=stages)
    else:
        require_at_least(chunks, 1)
        found = derive(name, "M/(M + (S - 1)/v)", "%", M=microbatches, S=stages, v=chunks)
    return found.titled("Pipeline utilization")
