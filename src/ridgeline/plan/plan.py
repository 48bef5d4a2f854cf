"""The plan itself: from a `Study` to everything that the case and the rules look at."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.energy import training_energy
from ridgeline.arithmetic.laws import Optimum
from ridgeline.arithmetic.money import cost_of_compute, electricity, rent
from ridgeline.core.catalog import constant, law
from ridgeline.core.errors import InfeasibleError, InputError, located
from ridgeline.core.quantity import Quantity, Source, given
from ridgeline.plan.budget import Cluster, cluster
from ridgeline.plan.candidates import (
    Candidate,
    Product,
    candidate,
    fits_need,
    key_of,
    largest_servable,
    product,
    sized,
)
from ridgeline.plan.lifetime import EqualLoss, Scenario, equal_loss, scenarios
from ridgeline.plan.recipe_facts import RecipeFacts, recipe_facts, state_share
from ridgeline.plan.served import Served
from ridgeline.plan.study import Study

# The laws compared where a study names none. The first one decides the compute-optimal size: the field's rule.
LAWS = ("tokens-per-param-20", "besiroglu-2024", "hoffmann-2022", "llama3-2024", "deepseek-2024")
FRACTIONS = (2, 4, 8)  # without candidates of its own, a study compares these parts of the optimum


@dataclass(frozen=True)
class Money:
    """What the training run costs. Entries are None where a price or a power is not known."""

    rent: Quantity | None
    per_1e21: Quantity | None
    energy: Quantity | None
    electricity: Quantity | None


@dataclass(frozen=True)
class Plan:
    """All that is known. ``optima`` are by law slug in the study's order; ``judge`` is the law that gives losses."""

    study: Study
    cluster: Cluster
    optima: Mapping[str, Optimum]
    judge: Optimum
    optimum: Candidate
    candidates: tuple[Candidate, ...]
    product: Product | None
    servable: Quantity | None
    choice: Candidate
    scenarios: tuple[Scenario, ...]
    equal: Mapping[str, EqualLoss]
    recipes: tuple[RecipeFacts, ...]  # empty where no aligned shape has the chosen size: see ``no_shape``
    no_shape: str
    state_share: Quantity | None
    money: Money
    unique_tokens: Quantity
    priced: Served | None = None

    @property
    def everyone(self) -> tuple[Candidate, ...]:
        """The compute-optimal model and the candidates, largest first."""
        return tuple(sorted((self.optimum, *self.candidates), key=lambda c: -float(c.params.value)))

    @property
    def middle(self) -> Scenario:
        """The scenario in the middle of the served tokens; the upper one of two."""
        return sorted(self.scenarios, key=lambda s: float(s.served.value))[len(self.scenarios) // 2]

    @property
    def deviates(self) -> bool:
        """Whether the choice is not the compute-optimal model."""
        return self.choice is not self.optimum


def make_plan(study: Study, priced: Served | None = None) -> Plan:
    """Work out the whole plan. Raises `InputError` for a study that cannot be used.

    ``priced`` is what serving costs by a case among the evidence, in place of the assumed MFU.
    """
    machine = cluster(study)
    optima = _optima(study, machine.compute)
    losing = {slug: best for slug, best in optima.items() if best.loss is not None}
    if not losing:
        raise InputError.expected("at least one law that predicts loss", list(optima), where="$.laws",
                                  hint="add besiroglu-2024 or hoffmann-2022")  # fmt: skip
    need = product(study.need, machine.device, study.budget.dtype) if study.need else None
    first = next(iter(optima.values()))
    best = candidate(first.params, machine.compute, losing, need, key="optimum")
    servable = largest_servable(need) if need else None
    others = tuple(
        candidate(size, machine.compute, losing, need, key=key_of(float(size.value)))
        for size in _sizes(study, best, servable)
    )
    judge = next(iter(losing.values()))
    chosen = _choice(study, best, others, need)
    equal = {c.key: equal_loss(c, best, machine.compute, judge) for c in others}
    return Plan(
        study, machine, optima, judge, best, others, need, servable, chosen,
        tuple(scenarios(study.traffic, machine, best, others, judge, priced)),
        {key: item for key, item in equal.items() if item is not None},
        *_recipes(study, machine, chosen, judge, need), state_share(machine, chosen),
        _money(machine), _unique_tokens(study), priced,
    )  # fmt: skip


def _recipes(
    study: Study, machine: Cluster, chosen: Candidate, judge: Optimum, need: Product | None
) -> tuple[tuple[RecipeFacts, ...], str]:
    try:
        return recipe_facts(study, machine, chosen, judge.law, need), ""
    except InfeasibleError as error:
        return (), error.message


def _optima(study: Study, compute: Quantity) -> dict[str, Optimum]:
    names = study.laws or LAWS
    found = {}
    for number, name in enumerate(names):
        with located("$.laws"):
            chosen = law(name)
        if chosen.slug in found:
            raise InputError.expected("each law once", name, where="$.laws", hint=f"{name} is {chosen.slug}")
        if chosen.kind not in laws.OPTIMUM_KINDS:
            hint = "laws with an optimum: " + ", ".join(LAWS)
            raise InputError.expected("a law that says where the optimum lies", name, where="$.laws", hint=hint)
        found[chosen.slug] = laws.optimum(chosen, compute, f"law.{chosen.slug}.optimum" if number else "optimum")
    return found


def _sizes(study: Study, best: Candidate, servable: Quantity | None) -> list[Quantity]:
    """The candidates of the study, or parts of the optimum; none twice, none equal to the optimum."""
    largest = float(best.params.value)
    sizes = [(size, Source("given by the user", "candidates")) for size in study.candidates]
    if not sizes:
        part_of = Source("chosen by the plan", "a round part of the compute-optimal size")
        sizes = [(float(f"{largest / part:.2g}"), part_of) for part in FRACTIONS]
        if servable is not None and float(servable.value) < largest:
            source = Source("chosen by the plan", "the largest servable size, rounded down")
            sizes.append((_rounded_down(float(servable.value)), source))
    if study.choice is not None:
        sizes.append((study.choice, Source("given by the user", "choice")))
    unique = {key_of(size): sized(size, source) for size, source in reversed(sizes)}
    unique.pop(key_of(largest), None)
    return sorted(unique.values(), key=lambda q: -float(q.value))


def _rounded_down(size: float) -> float:
    step = 10.0 ** (math.floor(math.log10(size)) - 1)
    return math.floor(size / step) * step


def _choice(study: Study, best: Candidate, others: tuple[Candidate, ...], need: Product | None) -> Candidate:
    """The study's own choice, else the largest candidate that is a product, else the compute-optimal model."""
    if study.choice is not None:
        wanted = key_of(study.choice)
        return next((c for c in others if c.key == wanted), best)
    if need is None or fits_need(best, need):
        return best
    return next((c for c in others if fits_need(c, need)), best)


def _money(machine: Cluster) -> Money:
    cost = rent(machine.chips, machine.time, machine.price) if machine.price else None
    energy = None
    if machine.device.power is not None:
        energy = training_energy(machine.chips, machine.device.power, machine.time, machine.pue)
    bill = electricity(energy, machine.electricity) if energy else None
    return Money(cost, cost_of_compute(cost, machine.compute) if cost else None, energy, bill)


def _unique_tokens(study: Study) -> Quantity:
    value = study.budget.unique_tokens
    if value is None:
        return constant("token_supply.plan").titled("Unique tokens within reach")
    return given("data.unique_tokens", value, "token", "budget.unique_tokens").titled("Unique tokens available")
