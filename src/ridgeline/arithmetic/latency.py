"""The interactive turn: prefill, decode, and how many chips a latency budget takes.

A napkin, and a lower bound: prefill at 2N FLOP per token and decode at one sweep of the weights (and the cache) per
token, both spread evenly over the chips at the rates given. Attention scores, communication and scheduling are left
out unless given: pass achievable rates rather than peaks for a forecast, and a `Turn.hop` for what grows with chips.
Pope et al., "Efficiently scaling transformer inference", 2022, has the same two terms.
"""

from dataclasses import dataclass, replace

import numpy as np

from ridgeline.arithmetic.inputs import known, one_chip, place, require_not_negative, require_positive, under
from ridgeline.core import format as formats
from ridgeline.core.device import Device
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.core.quantity import Quantity, derive

_ROUNDING = 1e-9  # a count that lands exactly on the budget still meets it


@dataclass(frozen=True)
class Served:
    """A model being served. Any of these may be an array of candidates.

    ``active`` parameters per token (param), ``stored`` bytes of all weights (B), ``swept`` bytes of weights that one
    decode step reads (B; None: all of them, right for a dense model and for a mixture at a large batch), ``cache``
    bytes of one sequence at the context in question (B; None: left out), ``batch`` sequences decoded together
    (None: one), ``forward`` FLOPs per token (FLOP/token; None: 2 per active parameter, attention left out).
    """

    active: Quantity
    stored: Quantity
    swept: Quantity | None = None
    cache: Quantity | None = None
    batch: Quantity | None = None
    forward: Quantity | None = None


@dataclass(frozen=True)
class Chip:
    """``peak`` (FLOP/s/chip), memory ``bandwidth`` (B/s/chip) and ``memory`` (B/chip) of the serving chip."""

    peak: Quantity
    bandwidth: Quantity
    memory: Quantity

    @classmethod
    def of(cls, device: Device, dtype: str) -> "Chip":
        """The dense figures of a device of the catalog. Raises `InputError` for one that no source states."""
        return cls(
            known(device.peak(dtype), f"the {dtype} peak of {device.name}"),
            known(device.hbm_bandwidth, f"the memory bandwidth of {device.name}"),
            known(device.hbm_bytes, f"the memory size of {device.name}"),
        )


@dataclass(frozen=True)
class Turn:
    """What the product needs of one turn.

    New ``prefill`` tokens, ``decode`` tokens (token), fixed ``overhead`` (s) and the latency ``budget`` (s). ``hop``
    (s/token/chip), when given, is what every decoded token waits for each chip in the ring.
    """

    prefill: Quantity
    decode: Quantity
    overhead: Quantity
    budget: Quantity
    hop: Quantity | None = None


@dataclass(frozen=True)
class TurnTime:
    """``prefill``, ``step`` (s/token), ``decode`` and ``total`` (s) of a turn on some chips."""

    prefill: Quantity
    step: Quantity
    decode: Quantity
    total: Quantity


@dataclass(frozen=True)
class ChipsNeeded:
    """``hold``: to hold the weights; ``exact``: the smallest count in time; ``doubling``: the same among 1, 2, 4, ...

    ``doubling`` is None where no power of two will do. ``time`` is the turn at ``doubling``, else at ``exact``;
    ``meets`` is 1 where that is within the budget and 0 elsewhere, which happens only in arrays of candidates.
    """

    hold: Quantity
    exact: Quantity
    doubling: Quantity | None
    time: TurnTime
    meets: Quantity


def prefill_time(model: Served, tokens: Quantity, chips: Quantity, chip: Chip, prefix: str = "") -> Quantity:
    """``turn.prefill`` (s): forward FLOPs of the new ``tokens`` at peak."""
    require_positive(model.active, tokens, chips, chip.peak)
    forward = _forward(model, prefix)
    name, text = under(prefix, "turn.prefill"), "forward*tokens/(chips*peak)"
    return derive(name, text, "s", forward=forward, tokens=tokens, chips=chips, peak=chip.peak).titled("Prefill")


def _forward(model: Served, prefix: str) -> Quantity:
    if model.forward is not None:
        require_positive(model.forward)
        return model.forward
    return derive(under(prefix, "serve.forward_per_token"), "2*N", "FLOP/token", N=model.active)


def decode_step(model: Served, chips: Quantity, chip: Chip, prefix: str = "") -> Quantity:
    """``turn.decode_step`` (s/token): one sweep of the weights, and of the cache of every sequence, over all chips.

    With a ``batch``, the larger of that sweep and the step's FLOPs at peak. One sequence is always bound by memory.
    """
    require_positive(chips, chip.bandwidth, model.stored)
    swept = _swept_bytes(model, prefix)
    name = under(prefix, "turn.decode_step")
    rates = {"chips": chips, "bandwidth": chip.bandwidth}
    if model.batch is None:
        return derive(name, "bytes/(chips*bandwidth)", "s/token", bytes=swept, **rates).titled("One decode step")
    require_positive(model.batch, model.active, chip.peak)
    text = "max(bytes/(chips*bandwidth), count(batch)*count(forward)/count(chips*peak))"
    found = derive(
        name, text, "s/token", bytes=swept, batch=model.batch, forward=_forward(model, prefix), peak=chip.peak, **rates
    )
    return found.titled("One decode step")


def _swept_bytes(model: Served, prefix: str) -> Quantity:
    weights = model.stored if model.swept is None else model.swept
    if model.cache is None:
        return weights
    require_not_negative(model.cache)
    name = under(prefix, "turn.swept")
    if model.batch is None:
        return derive(name, "weights + cache", "B", weights=weights, cache=model.cache)
    return derive(name, "weights + count(batch)*cache", "B", weights=weights, batch=model.batch, cache=model.cache)


def cache_sweep(cache: Quantity, bandwidth: Quantity, chips: Quantity, prefix: str = "") -> Quantity:
    """``decode.cache_sweep`` (s/token): reading ``cache`` (B) once, whatever the weights add."""
    require_positive(cache, bandwidth, chips)
    name, text = under(prefix, "decode.cache_sweep"), "cache/(chips*bandwidth)"
    found = derive(name, text, "s/token", cache=cache, chips=chips, bandwidth=bandwidth)
    return found.titled("Cache sweep per token")


def token_rate(step: Quantity, prefix: str = "") -> Quantity:
    """``decode.rate`` (token/s): the ceiling on tokens per second of one sequence, one over the step."""
    require_positive(step)
    return derive(under(prefix, "decode.rate"), "1/step", "token/s", step=step).titled("Tokens per second, ceiling")


def interactive_turn(model: Served, chip: Chip, turn: Turn, chips: Quantity, prefix: str = "") -> TurnTime:
    """``turn.prefill``, ``turn.decode_step``, ``turn.decode`` and ``turn.total`` (s) on ``chips``."""
    require_positive(turn.prefill, turn.decode)
    require_not_negative(turn.overhead)
    prefill = prefill_time(model, turn.prefill, chips, chip, prefix)
    step = decode_step(model, chips, chip, prefix)
    inputs = {"tokens": turn.decode, "step": step}
    text = "tokens*step"
    if turn.hop is not None:
        require_not_negative(turn.hop)
        text, inputs = "tokens*(step + hop*chips)", {**inputs, "hop": turn.hop, "chips": chips}
    decode = derive(under(prefix, "turn.decode"), text, "s", **inputs).titled("Decode")
    total = derive(
        under(prefix, "turn.total"),
        "prefill + decode + overhead",
        "s",
        prefill=prefill,
        decode=decode,
        overhead=turn.overhead,
    )
    return TurnTime(prefill, step, decode, total.titled("Turn"))


def chips_to_hold(stored: Quantity, memory: Quantity, prefix: str = "") -> Quantity:
    """``serve.chips_to_hold`` (chip): ``stored`` bytes over the memory of a chip (B/chip), rounded up.

    Nothing is left for cache or workspace: add them to ``stored`` where they count.
    """
    require_positive(stored, memory)
    name, text = under(prefix, "serve.chips_to_hold"), "ceil(stored/memory)"
    return derive(name, text, "chip", stored=stored, memory=memory).titled("Chips to hold the weights")


@dataclass(frozen=True)
class PipelinedPrefill:
    """``serial``: one chunk at a time through every stage; ``pipelined``: stages work at once (s)."""

    serial: Quantity
    pipelined: Quantity


def pipelined_prefill(
    stages: Quantity, chunks: Quantity, compute: Quantity, transfer: Quantity, prefix: str = ""
) -> PipelinedPrefill:
    """``prefill.serial`` and ``prefill.pipelined`` (s) of ``chunks`` through ``stages``.

    ``compute`` and ``transfer`` are the seconds of one chunk in one stage. Pipelined, the transfer hides under the
    next chunk's compute and the slower of the two sets the beat; equal stages and chunks.
    """
    require_positive(stages, chunks, compute)
    require_not_negative(transfer)
    inputs = {"stages": stages, "chunks": chunks, "compute": compute, "transfer": transfer}
    serial = derive(under(prefix, "prefill.serial"), "stages*chunks*(compute + transfer)", "s", **inputs)
    text = "(chunks + stages - 1)*max(compute, transfer)"
    pipelined = derive(under(prefix, "prefill.pipelined"), text, "s", **inputs)
    return PipelinedPrefill(serial.titled("Prefill, serial"), pipelined.titled("Prefill, pipelined"))


def chips_needed(
    model: Served, chip: Chip, turn: Turn, available: Quantity | None = None, prefix: str = ""
) -> ChipsNeeded:
    """The smallest chip count whose turn is within the budget and that holds the weights.

    ``serve.chips_to_hold``, ``serve.chips_exact``, ``serve.chips`` (doubling series), ``turn.*`` at the latter, and
    ``serve.meets``. The time on n chips is work/n + overhead + floor*n, with ``work`` in chip-seconds and ``floor``
    the decode tokens times ``hop``; the smaller root is the count.

    Raises `InputError` for a budget below the fixed overhead, and `InfeasibleError` where no count does: the budget
    equals the overhead, the latency per chip eats it, or ``available`` chips are too few. Arrays of candidates are
    not checked against ``available`` and raise nothing for a single candidate: where ``meets`` is 0 the counts do not.
    """
    slack = _slack(turn, prefix)
    hold = chips_to_hold(model.stored, chip.memory, prefix)
    need = _Need(model, chip, turn, prefix)
    exact = _exact_count(need, slack, hold).titled("Chips for the latency budget, smallest count")
    single = not isinstance(exact.value, np.ndarray)
    if single:
        _check_single(need, exact, hold, available)
    power = derive(under(prefix, "serve.chips"), "2**ceil(log2(exact))", "chip", exact=exact)
    power = power.titled("Chips for the latency budget, doubling")
    fits = not single or _fits(need, power, available)
    time = interactive_turn(model, chip, turn, power if fits else exact, prefix)
    return ChipsNeeded(hold, exact, power if fits else None, time, _meets(time, turn, prefix))


@dataclass(frozen=True)
class _Need:
    model: Served
    chip: Chip
    turn: Turn
    prefix: str

    def at(self, chips: Quantity) -> TurnTime:
        return interactive_turn(self.model, self.chip, self.turn, chips, under(self.prefix, "tried"))


def _slack(turn: Turn, prefix: str) -> Quantity:
    require_positive(turn.budget)
    require_not_negative(turn.overhead)
    name = under(prefix, "turn.slack")
    slack = derive(name, "budget - overhead", "s", budget=turn.budget, overhead=turn.overhead)
    slack = slack.titled("Latency budget left after the fixed overhead")
    if np.any(np.asarray(slack.value) < 0):
        raise InputError.expected(
            f"a latency budget above its fixed overhead of {formats.show(turn.overhead)}",
            formats.show(turn.budget),
            where=place(turn.budget),
            hint="no chip count shortens the overhead: raise the budget or cut the overhead",
        )
    if np.any(np.asarray(slack.value) == 0):
        raise InfeasibleError(
            f"Expected some chip count to answer within {formats.show(turn.budget)}, none does",
            limit=f"the fixed overhead of {formats.show(turn.overhead)} is the whole budget",
        )
    return slack


def _exact_count(need: _Need, slack: Quantity, hold: Quantity) -> Quantity:
    prefix, turn = need.prefix, need.turn
    alone = interactive_turn(need.model, need.chip, replace(turn, hop=None), one_chip(), under(prefix, "one_chip"))
    inputs = {"prefill": alone.prefill, "decode": alone.decode, "chips": one_chip()}
    work = derive(under(prefix, "serve.chip_seconds"), "(prefill + decode)*chips", "s*chip", **inputs)
    name = under(prefix, "serve.chips_exact")
    if turn.hop is None:
        return derive(name, "max(hold, ceil(work/slack))", "chip", hold=hold, work=work, slack=slack)
    inputs = {"work": work, "floor_per_chip": _floor(need), "slack": slack}
    # max(..., 0): where no count is fast enough this stays a number, and the turn there is over the budget
    text = "max(hold, ceil(2*work/(slack + sqrt(max(slack**2 - 4*work*floor_per_chip, 0)))))"
    return derive(name, text, "chip", hold=hold, **inputs)


def _floor(need: _Need) -> Quantity:
    assert need.turn.hop is not None
    name = under(need.prefix, "serve.floor_per_chip")
    return derive(name, "tokens*hop", "s/chip", tokens=need.turn.decode, hop=need.turn.hop)


def _fastest(need: _Need, exact: Quantity, hold: Quantity) -> Quantity:
    """The count with the shortest turn, where more chips stop helping."""
    floor, work = _floor(need), exact.inputs["work"]
    inputs = {"hold": hold, "work": work, "floor_per_chip": floor}
    return derive("tried.chips", "max(hold, ceil(sqrt(work/floor_per_chip)))", "chip", **inputs)


def _check_single(need: _Need, exact: Quantity, hold: Quantity, available: Quantity | None) -> None:
    if available is not None and hold.base > available.base:
        limit = f"memory: the weights need {formats.show(hold)}, {formats.show(available)} available"
        raise InfeasibleError("Expected the weights to fit in the chips available, they do not", limit=limit)
    if not _in_time(need, exact):
        nearest = _fastest(need, exact, hold)
        raise _none_does(need, nearest, "latency per chip: every further chip costs more waiting than it saves")
    if available is not None and exact.base > available.base:
        raise _none_does(need, available, f"{formats.show(available)} available, {formats.show(exact)} needed")


def _in_time(need: _Need, chips: Quantity) -> bool:
    return bool(need.at(chips).total.base <= need.turn.budget.base * (1 + _ROUNDING))


def _fits(need: _Need, chips: Quantity, available: Quantity | None) -> bool:
    return _in_time(need, chips) and (available is None or bool(chips.base <= available.base))


def _none_does(need: _Need, nearest: Quantity, limit: str) -> InfeasibleError:
    total = formats.show(need.at(nearest).total)
    return InfeasibleError(
        f"Expected some chip count to answer within {formats.show(need.turn.budget)}, none does",
        limit=limit,
        nearest=f"{total} a turn on {formats.show(nearest)}",
        hint="a smaller model, fewer decoded tokens or a larger budget",
    )


def _meets(time: TurnTime, turn: Turn, prefix: str) -> Quantity:
    text = "where(total <= budget*(1 + 1e-9), 1, 0)"
    return derive(under(prefix, "serve.meets"), text, "1", total=time.total, budget=turn.budget)
