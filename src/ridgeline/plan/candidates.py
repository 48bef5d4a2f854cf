"""Candidates: parameter counts on the same training budget, each with its tokens, loss and servability."""

from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.budget import tokens_for
from ridgeline.arithmetic.latency import Chip, ChipsNeeded, Served, Turn, chips_needed
from ridgeline.core import format as formats
from ridgeline.core.catalog import Device, constant, device
from ridgeline.core.errors import located
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.plan.study import Need


@dataclass(frozen=True)
class Product:
    """What one conversation needs, as quantities: the turn, the chips it may occupy, the serving chips by name."""

    turn: Turn
    chips_limit: Quantity
    bytes_per_param: Quantity
    chips: Mapping[str, Chip]  # by device slug; the first one decides
    devices: Mapping[str, Device]

    @property
    def main(self) -> str:
        """The slug of the device that decides."""
        return next(iter(self.chips))


@dataclass(frozen=True)
class Candidate:
    """One size on the training budget. ``losses`` and ``excess`` (over the law's own optimum) are by law slug.

    ``worth`` is the share of the budget with which an optimal run would have the same loss.
    """

    key: str
    label: str
    params: Quantity
    tokens: Quantity
    tokens_per_param: Quantity
    weights: Quantity
    losses: Mapping[str, Quantity]
    excess: Mapping[str, Quantity]
    worth: Mapping[str, Quantity]
    needed: Mapping[str, ChipsNeeded]

    @property
    def all(self) -> list[Quantity]:
        """Everything that a Case should carry."""
        serving = [
            q for n in self.needed.values() for q in (n.hold, n.exact, n.doubling, n.time.total) if q is not None
        ]
        by_law = [*self.losses.values(), *self.excess.values(), *self.worth.values()]
        return [self.params, self.tokens, self.tokens_per_param, self.weights, *by_law, *serving]


def product(need: Need, training: Device, dtype: str) -> Product:
    """The product need as quantities. Raises `InputError` for a serving chip with an unknown peak or memory."""
    overhead = constant("planning.turn_overhead").named("need.overhead")
    if need.overhead is not None:
        overhead = given("need.overhead", need.overhead, "s", "need.overhead")
    turn = Turn(
        _stated(need, "prefill", "token").titled("New tokens per turn"),
        _stated(need, "decode", "token").titled("Decoded tokens per turn"),
        overhead.titled("Fixed overhead of a turn"),
        _stated(need, "budget", "s").titled("Latency budget of a turn"),
    )
    with located("$.need"):
        machines = [device(need.chip) if need.chip else training, *(device(name) for name in need.also)]
    width = _stated(need, "weight_bits", "bit/param")
    width = derive("need.bytes_per_param", "bits", "B/param", bits=width)
    limit = _stated(need, "chips_per_conversation", "chip")
    return Product(
        turn, limit.titled("Chips one conversation may occupy"), width.titled("Bytes per weight when serving"),
        {m.slug: Chip.of(m, dtype) for m in machines}, {m.slug: m for m in machines},
    )  # fmt: skip


def _stated(need: Need, field: str, unit: str) -> Quantity:
    """What the study says, or the default of `Need`, which is an assumption."""
    name, value = f"need.{field}", getattr(need, field)
    if field in need.model_fields_set:
        return given(name, value, unit, name)
    return leaf(name, value, unit, "assumed", Source("the default turn of a study", name), "the study gives none")


def key_of(params: float) -> str:
    """A stable name part for a size: 30e9 -> ``30b``, 92.5e9 -> ``92_5b``."""
    return label_of(params).lower().replace(".", "_")


def label_of(params: float) -> str:
    """What people call a size: ``30B``, ``92.5B``, ``350M``."""
    number, letter = formats.stepped(params, formats.COUNT_STEPS, 3)
    return f"{float(number.replace(',', '')):g}{letter}"


def candidate(
    params: Quantity, compute: Quantity, loss_laws: Mapping[str, laws.Optimum], need: Product | None, *, key: str
) -> Candidate:
    """Evaluate one size. ``loss_laws`` are the optima of the laws that predict loss, by slug."""
    prefix = "optimum" if key == "optimum" else f"candidate.{key}"
    tokens = tokens_for(compute, params).named(f"{prefix}.tokens").titled("Tokens on this budget")
    ratio = derive(f"{prefix}.tokens_per_param", "tokens/params", "token/param", tokens=tokens, params=params)
    width = need.bytes_per_param if need else constant("planning.bytes_per_weight")
    weights = derive(f"{prefix}.weights", "params*width", "B", params=params, width=width).titled("Bytes of weights")
    by_law = {slug: _losses(best, params, tokens, f"{prefix}.{slug}") for slug, best in loss_laws.items()}
    return Candidate(
        key, label_of(float(params.value)), params, tokens, ratio.titled("Tokens per parameter"),
        weights,
        {slug: loss for slug, (loss, _, _) in by_law.items()},
        {slug: excess for slug, (_, excess, _) in by_law.items()},
        {slug: worth for slug, (_, _, worth) in by_law.items()},
        _needed(params, weights, need, prefix) if need else {},
    )  # fmt: skip


def _losses(best: laws.Optimum, params: Quantity, tokens: Quantity, prefix: str) -> tuple[Quantity, Quantity, Quantity]:
    assert best.loss is not None
    loss = laws.loss(best.law, params, tokens, f"{prefix}.loss")
    excess = derive(f"{prefix}.excess", "loss - best", "nat", loss=loss, best=best.loss)
    worth = laws.equivalent_compute(best.law, best.loss, loss, f"{prefix}.worth")
    return loss, excess.titled("Loss above the law's optimum", best.law.name), worth


def _needed(params: Quantity, weights: Quantity, need: Product, prefix: str) -> dict[str, ChipsNeeded]:
    model = Served(active=params, stored=weights)
    return {slug: chips_needed(model, chip, need.turn, prefix=f"{prefix}.{slug}") for slug, chip in need.chips.items()}


def largest_servable(need: Product) -> Quantity:
    """The N whose turn just fits the latency budget on the chips one conversation may occupy.

    Solves (2*N*prefill/peak + decode*N*width/bandwidth)/chips = budget - overhead for N, and caps it by memory.
    """
    chip, turn = need.chips[need.main], need.turn
    per_param = derive(
        "servable.seconds_per_param", "2*prefill/peak + count(decode)*width/bandwidth", "s*chip/param",
        prefill=turn.prefill, decode=turn.decode, width=need.bytes_per_param, peak=chip.peak, bandwidth=chip.bandwidth,
    )  # fmt: skip
    in_time = derive(
        "servable.in_time", "chips*(budget - overhead)/per_param", "param",
        chips=need.chips_limit, budget=turn.budget, overhead=turn.overhead, per_param=per_param,
    )  # fmt: skip
    in_memory = derive(
        "servable.in_memory", "chips*memory/width", "param",
        chips=need.chips_limit, memory=chip.memory, width=need.bytes_per_param,
    )  # fmt: skip
    largest = derive("servable.params", "min(in_time, in_memory)", "param", in_time=in_time, in_memory=in_memory)
    return largest.titled("Largest model that is a product")


def fits_need(item: Candidate, need: Product) -> bool:
    """Whether one conversation fits the chips it may occupy, on the serving chip that decides."""
    return float(item.needed[need.main].exact.value) <= float(need.chips_limit.value)


def sized(params: float, source: Source) -> Quantity:
    """A size to compare, from the study or chosen here."""
    return leaf(f"candidate.{key_of(params)}.params", params, "param", "specified", source).titled("Parameters")
