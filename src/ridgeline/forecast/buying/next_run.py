"""The next run to buy: of a grid of sizes and tokens within the budget, what narrows the forecast at the target most.

Candidates, their error and the choice of a set are those of `forecast.buying.design`; basins of every form given
are followed together, so a run may be worth its price for a constant that it pins or for two forms that it tells
apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.forecast.buying.basins import Basin, Options, optima, predict
from ridgeline.forecast.buying.design import GAMMAS, Candidates, State, choose
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.form import Array, Columns, Form
from ridgeline.forecast.laws import chinchilla, coupled
from ridgeline.forecast.points import Points
from ridgeline.forecast.reach import require_reach

_MOSTLY = 0.5  # of what a run says
_SHOWN = 0.01  # the least share that is printed as a number
FORMS: tuple[Form, ...] = (chinchilla.FORM, coupled.FORM)  # of N and D alone, the second containing the first


@dataclass(frozen=True)
class Search:
    """What is searched and how it is judged.

    Sizes go from the ladder's smallest in steps of ``step`` (a factor) as far as the budget reaches, each with every
    ``ratios`` tokens per parameter; at most the budget each, at least the ladder's cheapest run. ``fixed`` gives
    columns beyond N and D that the forms read (the same for every candidate). ``gamma`` is the power of cost in
    the ranking; ``material`` the least share of the standard error that a purchase must remove to be worth naming,
    ``most`` the largest set.
    """

    forms: tuple[Form, ...] = FORMS
    step: float = 2**0.5
    ratios: tuple[float, ...] = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
    fixed: Mapping[str, float] = field(default_factory=dict)
    gamma: float = GAMMAS[1]
    level: float = 0.95
    material: float = 0.1
    most: int = 8
    basins: Options = field(default_factory=Options)


@dataclass(frozen=True)
class NextRun:
    """One candidate: N, D (tokens), C = 6ND (FLOP), its share of the budget, and what it would do to the forecast.

    ``after`` is the standard error of ln L at the target with it bought, ``low`` and ``high`` the interval of the
    loss if the forecast stayed where it is; ``per_cost`` the variance taken off per share of the budget.
    ``cost`` is in USD where a price was given.
    """

    n: float
    d: float
    c: float
    share: float
    after: float
    low: float
    high: float
    per_cost: float
    why: str
    cost: Quantity | None = None


@dataclass(frozen=True)
class NextRuns:
    """The ranked candidates, the best set within the budget, and whether any of it is worth the compute.

    ``ranked`` has those that help materially by themselves first, each part by variance taken off per cost^gamma;
    ``best`` is in the order of choice, ``after`` of each counting all before it.

    ``before`` and ``after`` are standard errors of ln L at the target now and with ``best`` bought; the noise of a
    run at the target is not in them.
    """

    target: Mapping[str, float]
    loss: float
    low: float
    high: float
    before: float
    after: float
    ranked: tuple[NextRun, ...]
    best: tuple[NextRun, ...]
    helps: bool
    says: str
    basins: tuple[Basin, ...]


def next_runs(
    points: Points,
    target: float | Mapping[str, float],
    budget_flops: float,
    search: Search | None = None,
    price: Quantity | None = None,
) -> NextRuns:
    """The runs worth buying for the forecast at ``target``: a compute in FLOP (its optimum N and D) or columns.

    ``price`` (USD per FLOP, such as `ridgeline.arithmetic.money.cost_of_compute`) adds dollars. Raises `InputError` for
    a target or a budget that is not positive and finite, a target below the ladder, a budget below the cheapest
    candidate, and a form whose inputs neither the ladder nor ``search.fixed`` has.
    """
    search = search or Search()
    if not isinstance(target, Mapping):
        require_reach(points, target)
    if not (np.isfinite(budget_flops) and budget_flops > 0):
        raise InputError.expected("a positive finite budget in FLOP", budget_flops, where="--budget")
    names = sorted({name for form in search.forms for name in form.inputs})
    columns = {name: points[name] for name in names}
    basins, goal = _fitted(columns, points["loss"], target, search)
    candidates = grid(points, budget_flops, search, names)
    mean, within, between = (float(part[0]) for part in predict(basins, goal))
    before = float(np.sqrt(within + between))
    state = State(basins, candidates.columns, goal)
    inside, apart = state.gains()
    score = (inside + apart) / candidates.cost**search.gamma
    helpful = state.error - inside - apart <= ((1 - search.material) * before) ** 2
    makes = _Maker(state, candidates, (mean, before), budget_flops, search, price)
    ranked = tuple(makes.alone(int(i), inside, apart) for i in np.lexsort((-score, ~helpful)))
    chosen = choose(basins, candidates, goal, budget_flops, most=search.most)
    best = tuple(makes.bought(int(pick)) for pick in chosen.picks)
    after = float(np.sqrt(max(chosen.after, 0.0)))
    helps = after <= (1 - search.material) * before
    low, high = makes.interval(before)
    where = {name: float(values[0]) for name, values in goal.items()}
    says = _says(best, before, after, helps, search.material)
    return NextRuns(where, float(np.exp(mean)), low, high, before, after, ranked, best, helps, says, basins)


def grid(points: Points, budget_flops: float, search: Search, names: Sequence[str]) -> Candidates:
    """The candidates of `Search`, cost in FLOP. Raises `InputError` where the budget reaches none."""
    smallest, cheapest = float(np.min(points["N"])), float(np.min(6 * points["N"] * points["D"]))
    largest = float(np.sqrt(budget_flops / (6 * min(search.ratios))))
    steps = np.arange(0.0, max(np.log(largest / smallest) / np.log(search.step), 0.0) + 1e-9)
    n, ratio = (part.ravel() for part in np.meshgrid(smallest * search.step**steps, search.ratios, indexing="ij"))
    cost = 6 * n * n * ratio
    keep = (cost <= budget_flops) & (cost >= cheapest * (1 - 1e-9))
    if not np.any(keep):
        raise InputError.expected(
            f"a budget of at least the ladder's cheapest run ({cheapest:.3g} FLOP)", budget_flops, where="--budget"
        )
    columns = {"N": n[keep], "D": (n * ratio)[keep]}
    for name in names:
        if name not in columns:
            columns[name] = np.full(int(np.sum(keep)), _fixed(search, name))
    return Candidates(columns, cost[keep])


def _fixed(search: Search, name: str) -> float:
    if name not in search.fixed:
        raise InputError.expected(f"a value of {name} for the candidates", sorted(search.fixed), where="search.fixed")
    return float(search.fixed[name])


def _fitted(
    columns: Columns, losses: Array, target: float | Mapping[str, float], search: Search
) -> tuple[tuple[Basin, ...], Columns]:
    """The basins, and the target as columns of one row."""
    if isinstance(target, Mapping):
        goal = {name: np.array([float(value)]) for name, value in target.items()}
        missing = sorted(set(columns) - set(goal))
        if missing or not all(np.isfinite(v[0]) and v[0] > 0 for v in goal.values()):
            raise InputError.expected(f"positive values of {', '.join(columns)}", dict(target), where="--target")
        return optima(columns, losses, search.forms, search.basins).basins(goal), goal
    fits = optima(columns, losses, search.forms, search.basins)
    first = fits.basins(columns)[0]
    n, d = optimum(first.form, float(target), first.theta, search.fixed)
    goal = {"N": np.array([float(n)]), "D": np.array([float(d)])}
    if not np.isfinite(goal["N"][0]):
        hint = "give the target as N and D: at this compute the fit has no best size"
        raise InputError.expected("a compute with an optimum", target, where="--target", hint=hint)
    goal |= {name: np.array([_fixed(search, name)]) for name in columns if name not in goal}
    return fits.basins(goal), goal


@dataclass
class _Maker:
    """Rows of the table, from the state of the design."""

    state: State
    candidates: Candidates
    forecast: tuple[float, float]
    budget_flops: float
    search: Search
    price: Quantity | None

    def interval(self, error: float) -> tuple[float, float]:
        """The interval of the loss at a standard error of ln L."""
        wide = NormalDist().inv_cdf(0.5 + self.search.level / 2) * error
        return float(np.exp(self.forecast[0] - wide)), float(np.exp(self.forecast[0] + wide))

    def alone(self, row: int, inside: Array, apart: Array) -> NextRun:
        """A candidate bought by itself."""
        return self._row(row, float(inside[row]), float(apart[row]), self.state)

    def bought(self, row: int) -> NextRun:
        """The next candidate of a set: the state moves on, and ``after`` counts all before it."""
        inside, apart = self.state.gains()
        made = self._row(row, float(inside[row]), float(apart[row]), self.state)
        self.state.add(row)
        return made

    def _row(self, row: int, inside: float, apart: float, state: State) -> NextRun:
        n, d = (float(self.candidates.columns[name][row]) for name in ("N", "D"))
        c = float(self.candidates.cost[row])
        after = float(np.sqrt(max(state.error - inside - apart, 0.0)))
        share = c / self.budget_flops
        why = _tells(state, row) if apart > inside else _pins(state, row)
        per_cost = (inside + apart) / share
        return NextRun(n, d, c, share, after, *self.interval(after), per_cost, why, self._dollars(c))

    def _dollars(self, flops: float) -> Quantity | None:
        if self.price is None:
            return None
        source = Source("the design's grid", "C = 6ND")
        compute = leaf("next.compute", flops, "FLOP", "assumed", source)
        return derive("next.cost", "price*compute", "USD", price=self.price, compute=compute).titled("Cost of the run")


def _tells(state: State, row: int) -> str:
    """The pair of basins that a run would tell apart most."""
    first, second = (state.basins[i] for i in state.told(row))
    if first.form.slug == second.form.slug:
        return f"tells two fits of {first.form.title} apart"
    return f"tells {first.form.title} from {second.form.title}"


def _pins(state: State, row: int) -> str:
    """The constant of the heaviest basin whose share of the error a run would lower most.

    Where most of what the run says is not about constants but about the law's own error near the target, that.
    """
    form = state.basins[0].form
    if state.by_constants(row) < _MOSTLY:
        return f"shows how far {form.title} is off on the way to the target"
    pinned, share = state.pinned(row)
    parameter = form.parameters[pinned]
    return f"pins {parameter.symbol} ({parameter.meaning}): {_fall(share)}"


def _fall(share: float) -> str:
    """What becomes of a variance of which a share in 0 to 1 goes."""
    return f"its variance falls by {share:.0%}" if share >= _SHOWN else f"its variance falls by less than {_SHOWN:.0%}"


def _says(best: Sequence[NextRun], before: float, after: float, helps: bool, material: float) -> str:
    change = f"the standard error of the forecast goes from {before:.2%} to {after:.2%} of the loss"
    if not helps:
        return f"No run in the budget helps materially: {change}, less than {material:.0%} of it removed."
    count = "1 run" if len(best) == 1 else f"{len(best)} runs"
    spent = f"{sum(run.c for run in best):.3g}".replace("e+", "e")
    return f"{count} for {spent} FLOP: {change}."
