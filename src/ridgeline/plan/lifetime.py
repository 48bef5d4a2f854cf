"""A model's whole life: training and serving together, over scenarios of served tokens.

Two questions, kept apart. At the *same training budget* a smaller model costs less to serve and has a higher
loss: what does the deviation buy? At the *same loss* it costs more to train and less to serve: from how many
served tokens on is it the cheaper one (Sardana et al. 2023, arXiv:2401.00448)?
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.budget import lifetime_compute
from ridgeline.core.catalog import constant
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.plan.budget import Cluster
from ridgeline.plan.candidates import Candidate
from ridgeline.plan.served import Served
from ridgeline.plan.study import Traffic

GRID = 600  # sizes between the smallest that reaches the loss and the optimum


@dataclass(frozen=True)
class Life:
    """One candidate under one scenario: compute over its life, what serving costs, and what it saves."""

    candidate: Candidate
    served: Quantity
    compute: Quantity
    serving_hours: Quantity
    serving_cost: Quantity | None
    saving: Quantity | None  # against the compute-optimal model, in dollars; negative where it costs more
    extra: Quantity | None = None  # the same with the other sign

    @property
    def difference(self) -> Quantity | None:
        """What is saved or added, whichever is positive."""
        return self.extra if self.word == "adds" else self.saving

    @property
    def word(self) -> str:
        """``saves``, or ``adds`` for a model that costs more to serve."""
        return "adds" if self.saving is not None and float(self.saving.value) < 0 else "saves"


@dataclass(frozen=True)
class EqualLoss:
    """A candidate trained until it has the optimum's loss, and the served tokens from which it is cheaper."""

    candidate: Candidate
    tokens: Quantity
    training: Quantity
    crossover: Quantity


@dataclass(frozen=True)
class Scenario:
    """One scenario: every candidate's life, and the size that is cheapest over it at the optimum's loss."""

    key: str
    name: str
    served: Quantity
    lives: tuple[Life, ...]
    best_params: Quantity
    best_tokens: Quantity
    best_compute: Quantity
    optimum_compute: Quantity

    def of(self, key: str) -> Life:
        """The life of one candidate."""
        return next(life for life in self.lives if life.candidate.key == key)


def scenario_key(number: int) -> str:
    """``s1``, ``s2``: the order of the study."""
    return f"s{number + 1}"


def scenarios(
    traffic: Sequence[Traffic],
    cluster: Cluster,
    optimum: Candidate,
    others: Sequence[Candidate],
    law: laws.Optimum,
    priced: Served | None = None,
) -> list[Scenario]:
    """Every scenario in the study's order. ``law`` must predict loss; ``optimum`` is what the plan compares with.

    ``priced`` is what serving costs by a case among the evidence; without it chips at an assumed MFU are rented.
    """
    return [_scenario(i, item, cluster, [optimum, *others], law, priced) for i, item in enumerate(traffic)]


def _scenario(
    number: int,
    item: Traffic,
    cluster: Cluster,
    candidates: Sequence[Candidate],
    law: laws.Optimum,
    priced: Served | None,
) -> Scenario:
    key = scenario_key(number)
    served = given(f"traffic.{key}.served", item.served, "token", f"traffic[{number}].served").titled("Served tokens")
    first = _life(candidates[0], served, cluster, key, None, priced)
    lives = (first, *(_life(c, served, cluster, key, first, priced) for c in candidates[1:]))
    target = candidates[0].losses[law.law.slug]
    best = _cheapest(served, law, target, key)
    return Scenario(key, item.name or key, served, lives, *best, first.compute)


def _life(
    item: Candidate, served: Quantity, cluster: Cluster, key: str, against: Life | None, priced: Served | None
) -> Life:
    prefix = f"life.{key}.{item.key}"
    compute = lifetime_compute(item.params, item.tokens, served, prefix)
    serving = derive(f"{prefix}.serving", "2*params*served", "FLOP", params=item.params, served=served)
    hours = derive(
        f"{prefix}.serving_hours", "serving/(peak*mfu)", "chip*h",
        serving=serving, peak=cluster.peak, mfu=constant("planning.serving_mfu"),
    ).titled("Chip-hours of serving")  # fmt: skip
    if priced is not None:
        cost = priced.cost(item.params, served, prefix)
    elif cluster.price is not None:
        cost = derive(f"{prefix}.serving_cost", "hours*price", "USD", hours=hours, price=cluster.price)
    else:
        return Life(item, served, compute, hours, None, None)
    cost = cost.titled("Cost of serving")
    if against is None or against.serving_cost is None:
        return Life(item, served, compute, hours, cost, None)
    saving = derive(f"{prefix}.saving", "optimum - this", "USD", optimum=against.serving_cost, this=cost)
    extra = derive(f"{prefix}.extra", "this - optimum", "USD", optimum=against.serving_cost, this=cost)
    return Life(
        item, served, compute, hours, cost, saving.titled("Saved against the compute-optimal model"),
        extra.titled("Added against the compute-optimal model"),
    )  # fmt: skip


def _cheapest(served: Quantity, law: laws.Optimum, target: Quantity, key: str) -> tuple[Quantity, Quantity, Quantity]:
    """The (N, D) of least lifetime compute among all that reach the target loss; an array search, then one row."""
    floor = laws.floor_params(law.law, target, f"scenario.{key}.floor")
    # the optimum lies between the floor, where D diverges, and the law's own optimum at any budget
    top = max(float(law.params.value), float(floor.value)) * 4
    sizes = np.geomspace(float(floor.value) * 1.02, top, GRID)
    params = leaf(f"scenario.{key}.params", sizes, "param", "specified", Source("search", "sizes that reach the loss"))
    tokens = laws.tokens_to_reach(law.law, params, target, f"scenario.{key}.tokens")
    total = lifetime_compute(params, tokens, served, f"scenario.{key}")
    best = int(np.argmin(total.value))
    chosen = total.at(best)
    return chosen.inputs["N"].titled("Cheapest size at equal loss"), chosen.inputs["trained"], chosen


def equal_loss(item: Candidate, optimum: Candidate, compute: Quantity, law: laws.Optimum) -> EqualLoss | None:
    """The candidate at the optimum's loss; None where no number of tokens gets it there, or it is not smaller."""
    target = optimum.losses[law.law.slug]
    prefix = f"equal_loss.{item.key}"
    floor = laws.floor_params(law.law, target, f"{prefix}.floor")
    if not float(floor.value) < float(item.params.value) < float(optimum.params.value):
        return None
    tokens = laws.tokens_to_reach(law.law, item.params, target, f"{prefix}.tokens").titled("Tokens to equal loss")
    training = derive(f"{prefix}.training", "6*params*tokens", "FLOP", params=item.params, tokens=tokens)
    crossover = derive(
        f"{prefix}.crossover", "max(0, (training - compute)/(2*(optimum - params)))", "token",
        training=training, compute=compute, optimum=optimum.params, params=item.params,
    )  # fmt: skip
    return EqualLoss(item, tokens, training, crossover.titled("Served tokens from which it is the cheaper one"))
