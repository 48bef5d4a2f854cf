"""How large a model to train when it is served for long, for tokens that nobody knows yet.

At a fixed loss a smaller model trained on more tokens costs more to train and less to serve. With S served tokens the
cheapest (N, D) at that loss has eps_N/eps_D = 1 + S/(3D), where eps_x = -d ln L/d ln x (Sardana et al. 2023,
arXiv:2401.00448: minimize 6ND + 2NS subject to L(N, D) = l). In dollars the problem is the same one with S counted in
training tokens of equal price. S is a guess at the time of the decision, so the answer is a table of regrets.

The other limit is the corpus: with U unique tokens the best run of a budget is smaller and repeats them, for as long as
a repeat is still worth its compute (Muennighoff et al. 2023, arXiv:2305.16264).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.budget import lifetime_compute
from ridgeline.arithmetic.inputs import require_not_negative, require_positive
from ridgeline.arithmetic.napkin import tokens_per_param
from ridgeline.core.case import Column, Table
from ridgeline.core.errors import InputError
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.forecast.deciding.worth import Machine
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.laws.data_constrained import FORM as REPEATS

SIZES = 1200  # candidates between the floor of the loss and its compute-optimal size
BISECTIONS = 80


@dataclass(frozen=True)
class Scenario:
    """Served tokens over the model's life, prefilled and decoded, and the weight of this future."""

    key: str
    prefilled: Quantity
    decoded: Quantity
    weight: float = 1.0


@dataclass(frozen=True)
class Rates:
    """Whose chip-hours pay for training, for prefill and for decoding: a decoded token reaches far less of peak."""

    training: Machine
    prefill: Machine
    decode: Machine


@dataclass(frozen=True)
class Choice:
    """One (N, D) at the loss: its cost in each scenario (FLOP or USD) and its regret (percent over the best there)."""

    key: str
    params: Quantity
    tokens: Quantity
    ratio: Quantity
    costs: Mapping[str, Quantity]
    regrets: Mapping[str, Quantity]
    expected: Quantity
    worst: Quantity


@dataclass(frozen=True)
class Regrets:
    """Every scenario's own best, the compute-optimal model, the least expected cost and the least worst regret."""

    law: Law
    target: Quantity
    scenarios: tuple[Scenario, ...]
    choices: tuple[Choice, ...]

    def of(self, key: str) -> Choice:
        """A choice by its key: ``compute-optimal``, ``best.<scenario>``, ``expected``, ``minimax``."""
        return next(choice for choice in self.choices if choice.key == key)

    def table(self) -> Table:
        """One row a choice: its size, its regret in every scenario, its expected cost and its worst regret."""
        head = (
            Column("choice", "choice", "", "what this (N, D) is the best for"),
            Column("N", "N", "param", "parameters"),
            Column("D", "D", "token", "tokens to the target loss"),
            Column("ratio", "D/N", "1", "tokens per parameter"),
        )
        each = [Column(s.key, f"regret, {s.key}", "%", "cost above the best for this scenario") for s in self.scenarios]
        unit = self.choices[0].expected.unit
        tail = (Column("expected", "expected cost", unit, ""), Column("worst", "worst regret", "%", ""))
        rows = [
            (c.key, c.params, c.tokens, c.ratio, *(c.regrets[s.key] for s in self.scenarios), c.expected, c.worst)
            for c in self.choices
        ]
        place = [c.key for c in self.choices].index("minimax")
        return Table("Regret by choice", (*head, *each, *tail), tuple(rows), place, "least worst regret")


def condition(law: Law, params: Quantity, tokens: Quantity, served: Quantity, name: str) -> tuple[Quantity, Quantity]:
    """Both sides of the first-order condition: ``<name>.elasticities`` eps_N/eps_D, ``<name>.wanted`` 1 + S/(3D).

    For L = E + (A/N^alpha + B/D^beta)^gamma the power and the derivative of the bracket cancel in the ratio.
    """
    require_positive(params, tokens)
    require_not_negative(served)
    inputs = {symbol: law.constants[symbol] for symbol in ("A", "alpha", "B", "beta")}
    text = "(alpha*A/N**alpha)/(beta*B/D**beta)"
    left = derive(f"{name}.elasticities", text, "1", N=params, D=tokens, **inputs)
    return left, derive(f"{name}.wanted", "1 + S/(3*D)", "1", S=served, D=tokens)


def cheapest(law: Law, target: Quantity, served: Quantity, name: str) -> tuple[Quantity, Quantity]:
    """``<name>.params`` and ``<name>.tokens``: the (N, D) of least 6ND + 2NS at the target loss.

    By bisection on the first-order condition between the floor of N and the law's compute-optimal size at that loss.
    ``law`` must be parametric or coupled. Raises `InputError` for one that is not, or for a target at or below E.
    """
    floor = laws.floor_params(law, target, f"{name}.floor")
    low, high = -36.0, 36.0  # of ln(N/floor - 1)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        params, tokens = _at(law, target, float(floor.value) * (1 + np.exp(middle)), name)
        left, wanted = condition(law, params, tokens, served, name)
        low, high = (middle, high) if float(left.value) > float(wanted.value) else (low, middle)
    params, tokens = _at(law, target, float(floor.value) * (1 + np.exp(0.5 * (low + high))), name)
    return params.titled("Cheapest size at that loss"), tokens.titled("Tokens to that loss")


def _at(law: Law, target: Quantity, size: float, name: str) -> tuple[Quantity, Quantity]:
    source = Source("search", "first-order condition of the lifetime cost")
    params = leaf(f"{name}.params", float(size), "param", "specified", source)
    return params, laws.tokens_to_reach(law, params, target, f"{name}.tokens")


def equivalent_tokens(scenario: Scenario, rates: Rates | None, name: str) -> Quantity:
    """The served tokens that count in 6ND + 2NS (token): all of them, or with ``rates`` those of a training price.

    A served token weighs its chip-hour price over MFU and peak, against that of a training FLOP.
    """
    require_not_negative(scenario.prefilled, scenario.decoded)
    tokens = {"prefilled": scenario.prefilled, "decoded": scenario.decoded}
    if rates is None:
        return derive(name, "prefilled + decoded", "token", **tokens)
    unit = {key: flop_price(on, f"{name}.{key}_price") for key, on in _named(rates).items()}
    text = "(prefilled*prefill + decoded*decode)/training"
    return derive(name, text, "token", **tokens, **unit).titled("Served tokens, in training tokens of equal price")


def _named(rates: Rates) -> dict[str, Machine]:
    return {"training": rates.training, "prefill": rates.prefill, "decode": rates.decode}


def flop_price(on: Machine, name: str) -> Quantity:
    """USD/FLOP of a machine: price/(peak*mfu). Raises `InputError` without a price."""
    if on.price is None:
        raise InputError.expected("a price per chip-hour", None, where=name)
    return derive(name, "price/(peak*mfu)", "USD/FLOP", price=on.price, peak=on.peak, mfu=on.mfu)


def lifetime_cost(params: Quantity, tokens: Quantity, scenario: Scenario, rates: Rates | None, name: str) -> Quantity:
    """``<name>`` over the model's life: FLOP, or USD with ``rates``: 6ND c + 2N (in c_in + out c_out)."""
    if rates is None:
        served = equivalent_tokens(scenario, None, f"{name}.served")
        return lifetime_compute(params, tokens, served, name)
    unit = {key: flop_price(on, f"{name}.{key}_price") for key, on in _named(rates).items()}
    text = "6*N*D*training + 2*N*(prefilled*prefill + decoded*decode)"
    inputs = {"N": params, "D": tokens, "prefilled": scenario.prefilled, "decoded": scenario.decoded, **unit}
    return derive(name, text, "USD", **inputs).titled("Dollars over the model's life")


def regrets(law: Law, target: Quantity, scenarios: Sequence[Scenario], rates: Rates | None = None) -> Regrets:
    """The regret of each scenario's best, of the compute-optimal model, and of two robust choices, in all scenarios.

    Regret is the cost above the best for a scenario, in percent of that best: scenarios that differ by factors of a
    hundred would otherwise be decided by the largest alone. The expected cost is in FLOP or dollars, and is so decided.
    Raises `InputError` for no scenario, two of one key, or weights that are not positive.
    """
    _check(scenarios)
    optimal = cheapest(law, target, given("served.none", 0, "token"), "regret.compute-optimal")
    own = {}
    for s in scenarios:
        own[s.key] = cheapest(
            law, target, equivalent_tokens(s, rates, f"regret.{s.key}.served"), f"regret.best.{s.key}"
        )
    best = {s.key: lifetime_cost(*own[s.key], s, rates, f"regret.best.{s.key}.cost") for s in scenarios}
    floor = float(laws.floor_params(law, target, "regret.floor").value)
    smallest = min(float(params.value) for params, _ in own.values())
    sizes = np.geomspace(max(floor * (1 + 1e-9), smallest), float(optimal[0].value), SIZES)
    params = leaf("regret.sizes", sizes, "param", "specified", Source("search", "sizes that reach the loss"))
    tokens = laws.tokens_to_reach(law, params, target, "regret.tokens")
    every = _choice("candidates", (params, tokens), scenarios, rates, best)
    picked = {
        "expected": int(np.argmin(every.expected.value)),
        "minimax": int(np.argmin(every.worst.value)),
    }
    pairs = {"compute-optimal": optimal, **{f"best.{key}": pair for key, pair in own.items()}}
    for key, index in picked.items():
        pairs[key] = (_one(params, index, key), _one(tokens, index, key))
    choices = tuple(_choice(key, pair, scenarios, rates, best) for key, pair in pairs.items())
    return Regrets(law, target, tuple(scenarios), choices)


def _one(every: Quantity, index: int, key: str) -> Quantity:
    return every.at(index, lambda name: name.replace("regret.", f"regret.{key}.", 1))


def _check(scenarios: Sequence[Scenario]) -> None:
    if not scenarios:
        raise InputError.expected("at least one scenario of served tokens", [], where="the scenarios")
    keys = [s.key for s in scenarios]
    if len(set(keys)) < len(keys):
        raise InputError.expected("scenarios of different names", keys, where="the scenarios")
    for s in scenarios:
        if not s.weight > 0:
            raise InputError.expected("a weight above zero", s.weight, where=f"scenario {s.key}")


def _choice(
    key: str, pair: tuple[Quantity, Quantity], scenarios: Sequence[Scenario], rates: Rates | None,
    best: Mapping[str, Quantity],
) -> Choice:  # fmt: skip
    params, tokens = pair
    name = f"regret.{key}"
    costs = {s.key: lifetime_cost(params, tokens, s, rates, f"{name}.cost.{s.key}") for s in scenarios}
    losses = {
        s.key: derive(f"{name}.regret.{s.key}", "cost/best - 1", "%", cost=costs[s.key], best=best[s.key])
        for s in scenarios
    }
    weights = {f"w_{i}": given(f"regret.weight.{s.key}", float(s.weight), "1") for i, s in enumerate(scenarios)}
    terms = {f"c_{i}": costs[s.key] for i, s in enumerate(scenarios)}
    text = f"({' + '.join(f'{w}*{c}' for w, c in zip(weights, terms, strict=True))})/({' + '.join(weights)})"
    unit = next(iter(costs.values())).unit
    expected = derive(f"{name}.expected", text, unit, **weights, **terms).titled("Expected cost")
    each = {f"r_{i}": losses[s.key] for i, s in enumerate(scenarios)}
    text = f"max({', '.join(each)})" if len(each) > 1 else "r_0"
    worst = derive(f"{name}.worst", text, "%", **each).titled("Worst regret")
    return Choice(key, params, tokens, tokens_per_param(params, tokens, name), costs, losses, expected, worst)


@dataclass(frozen=True)
class Repeated:
    """The best run of a budget with a limited corpus, beside the one with as much fresh data as it wants.

    ``penalty`` (nat) is what the limit costs; ``epochs`` the passes over the corpus, below one where it is not used up.
    """

    params: Quantity
    tokens: Quantity
    epochs: Quantity
    loss: Quantity
    fresh_params: Quantity
    fresh_tokens: Quantity
    fresh_loss: Quantity
    penalty: Quantity


def data_constrained(law: Law, compute: Quantity, unique: Quantity, prefix: str = "repeated") -> Repeated:
    """The (N, D) of least loss at C = 6ND from ``unique`` tokens, repeated as often as it pays.

    ``law`` is of kind ``data_constrained`` (Muennighoff et al. 2023, arXiv:2305.16264). Raises `InputError` for a law
    of another kind.
    """
    if law.kind != REPEATS.kind:
        raise InputError.expected(f"a law of kind {REPEATS.kind}", law.kind, where=law.slug)
    require_positive(compute, unique)
    theta = REPEATS.internal({symbol: float(law.constants[symbol].value) for symbol in REPEATS.symbols})
    flops, supply = float(compute.base), float(unique.base)
    here = _run(law, compute, unique, float(optimum(REPEATS, flops, theta, {"U": supply})[0]), prefix)
    endless = given(f"{prefix}.fresh.unique", flops, "token", "no limit", "more tokens than the budget could read")
    there = _run(law, compute, endless, float(optimum(REPEATS, flops, theta, {"U": flops})[0]), f"{prefix}.fresh")
    epochs = derive(f"{prefix}.epochs", "D/U", "1", D=here[1], U=unique).titled("Passes over the corpus")
    penalty = derive(f"{prefix}.penalty", "loss - fresh", "nat", loss=here[2], fresh=there[2])
    return Repeated(*here[:2], epochs, here[2], *there, penalty.titled("Loss that the limited corpus costs"))


def _run(law: Law, compute: Quantity, unique: Quantity, size: float, name: str) -> tuple[Quantity, Quantity, Quantity]:
    params = leaf(f"{name}.params", size, "param", "specified", Source("search", "least loss along C = 6ND"))
    tokens = derive(f"{name}.tokens", "C/(6*N)", "token", C=compute, N=params)
    inputs = {symbol: law.constants[symbol] for symbol in REPEATS.symbols}
    loss = derive(f"{name}.loss", REPEATS.formula, "nat", N=params, D=tokens, U=unique, **inputs)
    return params, tokens, loss.titled("Predicted loss", law.name)


def effective_tokens(unique: Quantity, epochs: Quantity, length: Quantity, name: str) -> Quantity:
    """What ``epochs`` passes over ``unique`` tokens are worth (token): pass k counts exp(-(k - 1)/length).

    A toy: the geometric sum U (1 - exp(-R/h))/(1 - exp(-1/h)). ``length`` is the number of passes after which one
    more is worth 1/e of the first; the worth halves every 0.69 of it.
    """
    require_positive(unique, epochs, length)
    text = "U*(1 - exp(-R/h))/(1 - exp(-1/h))"
    return derive(name, text, "token", U=unique, R=epochs, h=length).titled("Effective tokens")
