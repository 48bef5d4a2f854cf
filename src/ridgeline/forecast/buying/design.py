"""Sequential design: which runs, out of many that could be bought, say most about a forecast for their cost.

The mean squared prediction error over the targets is, with basins m of weights w (`ridgeline.forecast.buying.basins`),

    sum_m w_m mean_t J_t S_m J_t'  +  sum_{m<l} w_m w_l mean_t (f_m(t) - f_l(t))^2

within basins (V-optimality; J the derivatives of ln L, S the covariance) and between them. A run at x lowers the
first term by the rank-one update of S and the second by telling basins apart: each pair is scaled by the
Bhattacharyya coefficient of its two predictions at x, which bounds what remains of w_m w_l. Sets are built greedily
by reduction per cost^gamma for several gamma, and the set with the least error left is taken: the better of plain
and per-cost greedy is within a constant of the best set of a monotone submodular gain (Leskovec et al. 2007).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.buying.basins import Basin, Options, find, predict
from ridgeline.forecast.form import Array, Columns, Form

Index = NDArray[np.int64]
GAMMAS = (0.0, 0.4, 1.0)  # plain greedy, the exponent of arXiv 2604.22753, per-cost greedy
_START_SHARE = 0.25  # of the budget, for the runs before any fit
_SPARE = 3  # runs beyond the constants of the largest form, in the same


@dataclass(frozen=True)
class Candidates:
    """Runs that could be bought: ``columns`` as the forms read them (n,), ``cost`` (n,) in any one unit."""

    columns: Columns
    cost: Array

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self.columns.values()} | {len(self.cost)}
        if len(lengths) != 1 or not len(self.cost):
            raise InputError.expected("columns and costs of one length, not empty", sorted(lengths), where="candidates")
        if not np.all(np.isfinite(self.cost) & (self.cost > 0)):
            raise InputError.expected("positive finite costs", float(np.min(self.cost)), where="candidates.cost")

    def __len__(self) -> int:
        return len(self.cost)


@dataclass(frozen=True)
class Chosen:
    """A set of candidates in the order of choice, with the error (variance of ln L) before and after each of them."""

    picks: Index
    cost: float
    before: float
    left: Array
    gamma: float

    @property
    def after(self) -> float:
        """The mean squared prediction error with the whole set bought."""
        return float(self.left[-1]) if len(self.left) else self.before


class State:
    """What is left of the error while runs are added, their losses not yet known.

    Rows are the n candidates, then the T targets. Per basin (M): the covariance of ln L among rows (M, n+T, n+T),
    what theta has to do with it (rows' derivatives, lists of (n+T, P)), the noise of a new run (M,); per pair of basins
    how far apart they are at a row, and the error that not knowing which of them holds leaves at the targets.
    ``constants`` (P, P) and ``reach`` (P, n+T) are the covariance of the heaviest basin's theta and its covariance
    with ln L at the rows.
    """

    def __init__(self, basins: Sequence[Basin], candidates: Columns, targets: Columns) -> None:
        self.basins = tuple(basins)
        self.count = len(next(iter(candidates.values())))
        rows = {name: np.concatenate([values, targets[name]]) for name, values in candidates.items()}
        every = [basin.predict(rows) for basin in basins]
        self.weights = np.array([basin.weight for basin in basins])
        self.noise = np.array([basin.discrepancy.noise**2 for basin in basins])
        self.spread = np.array([error for _, error, _ in every])
        self.slopes = every[0][2]
        self.constants = np.array(basins[0].covariance)
        self.reach = self.constants @ self.slopes.T
        values = np.array([value for value, _, _ in every])
        self.apart = (values[:, None, : self.count] - values[None, :, : self.count]) ** 2
        goals = values[:, self.count :]
        between = np.mean((goals[:, None] - goals[None, :]) ** 2, axis=-1)
        self.pairs = np.triu(np.outer(self.weights, self.weights), 1) * between

    @property
    def own(self) -> Array:
        """The variance of ln L at every candidate, (M, n)."""
        found: Array = np.maximum(np.diagonal(self.spread, axis1=1, axis2=2)[:, : self.count], 0.0)
        return found

    @property
    def within(self) -> Array:
        """The mean variance at the targets, (M,)."""
        ahead: Array = np.maximum(np.diagonal(self.spread, axis1=1, axis2=2)[:, self.count :], 0.0)
        found: Array = np.mean(ahead, axis=1)
        return found

    @property
    def error(self) -> float:
        """The mean squared prediction error of ln L over the targets, as things stand."""
        return float(self.weights @ self.within + np.sum(self.pairs))

    def gains(self) -> tuple[Array, Array]:
        """What each candidate would take off the error, within (n,) and between (n,) basins."""
        noisy = self.own + self.noise[:, None]
        within = np.mean(self.spread[:, self.count :, : self.count] ** 2, axis=1) / noisy
        between = np.einsum("ml,mln->n", self.pairs, 1.0 - self._overlap(noisy))
        return self.weights @ within, between

    def add(self, pick: int) -> None:
        """Buy one candidate: a rank-one update of the covariances."""
        noisy = self.own + self.noise[:, None]
        self.pairs = self.pairs * self._overlap(noisy[:, pick, None], pick)[..., 0]
        column = self.spread[:, :, pick] / np.sqrt(noisy[:, pick, None])
        learnt = self.reach[:, pick] / np.sqrt(noisy[0, pick])
        self.spread -= column[:, :, None] * column[:, None, :]
        self.reach -= learnt[:, None] * column[0]
        self.constants -= learnt[:, None] * learnt

    def told(self, row: int) -> tuple[int, int]:
        """The pair of basins that a run at candidate ``row`` would tell apart most, by their place."""
        noisy = self.own[:, row, None] + self.noise[:, None]
        gain = self.pairs * (1.0 - self._overlap(noisy, row)[..., 0])
        first, second = np.unravel_index(int(np.argmax(gain)), gain.shape)
        return int(first), int(second)

    def pinned(self, row: int) -> tuple[int, float]:
        """The constant of the heaviest basin that candidate ``row`` pins most for the targets.

        Its place in theta, and the share (0 to 1) of the variance left to it that goes.
        """
        lost = self.reach[:, row] ** 2 / (self.own[0, row] + self.noise[0])
        place = int(np.argmax(np.mean(self.slopes[self.count :] ** 2, axis=0) * lost))
        return place, float(lost[place] / self.constants[place, place])

    def by_constants(self, row: int) -> float:
        """How much of what ``row`` says about the targets in the heaviest basin goes through its constants, 0 to 1.

        The rest is what the run says, being near them, about the error that the form leaves there.
        """
        through = self.slopes[self.count :] @ self.reach[:, row]
        around = self.spread[0, self.count :, row] - through
        both = float(np.sum(through**2) + np.sum(around**2))
        return float(np.sum(through**2)) / both if both > 0 else 1.0

    def _overlap(self, noisy: Array, pick: int | None = None) -> Array:
        """The Bhattacharyya coefficient of every pair's predictions, (M, M, n)."""
        total = noisy[:, None] + noisy[None, :]
        apart = self.apart if pick is None else self.apart[..., pick, None]
        width: Array = np.sqrt(2 * np.sqrt(noisy[:, None] * noisy[None, :]) / total)
        overlap: Array = width * np.exp(-apart / (4 * total))
        return overlap


def choose(
    basins: Sequence[Basin],
    candidates: Candidates,
    targets: Columns,
    budget: float,
    free: NDArray[np.bool_] | None = None,
    most: int = 0,
) -> Chosen:
    """The set within ``budget`` (unit of the costs) that leaves the least error at the targets: see the module.

    ``free`` (n,) masks candidates that may be bought; each is bought once. ``most`` bounds the size of the set (0: no
    bound). The set is empty where none is affordable.
    """
    allowed = np.ones(len(candidates), bool) if free is None else free.copy()
    sets = [_greedy(basins, candidates, targets, (budget, gamma, most), allowed) for gamma in GAMMAS]
    return min(sets, key=lambda one: (one.after, one.cost))


def _greedy(
    basins: Sequence[Basin],
    candidates: Candidates,
    targets: Columns,
    limit: tuple[float, float, int],
    free: NDArray[np.bool_],
) -> Chosen:
    budget, gamma, most = limit
    state = State(basins, candidates.columns, targets)
    before, spent, allowed = state.error, 0.0, free.copy()
    picks, left = list[int](), list[float]()
    while True:
        allowed &= candidates.cost <= budget - spent
        if not np.any(allowed) or len(picks) == (most or len(candidates)):
            break
        within, between = state.gains()
        score = np.where(allowed, (within + between) / candidates.cost**gamma, -np.inf)
        pick = int(np.argmax(score))
        if score[pick] <= 0:
            break
        state.add(pick)
        allowed[pick] = False
        spent += float(candidates.cost[pick])
        picks.append(pick)
        left.append(state.error)
    return Chosen(np.array(picks, np.int64), spent, before, np.array(left), gamma)


def first_runs(candidates: Candidates, budget: float, count: int, seed: int = 0) -> Index:
    """Up to ``count`` cheap candidates that spread over the logarithms of the columns, within ``budget``.

    Before any fit nothing says which run is informative, so none may cost more than its equal share: among those
    the next is the farthest from all chosen (Gonzalez 1985), each column scaled to its range; the first is drawn.
    Where too few are that cheap, the cheapest are taken.
    """
    cheap = np.flatnonzero(candidates.cost <= budget / count)
    if len(cheap) < count:
        order = np.argsort(candidates.cost, kind="stable")[:count]
        kept: Index = order[np.cumsum(candidates.cost[order]) <= budget]
        return kept
    place = _place(candidates.columns, cheap)
    picks = [int(np.random.default_rng(seed).integers(len(cheap)))]
    distance = np.linalg.norm(place - place[picks[0]], axis=1)
    while len(picks) < count:
        distance[picks] = -1.0
        picks.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(place - place[picks[-1]], axis=1))
    chosen: Index = cheap[np.array(picks)]
    return chosen


def _place(columns: Columns, rows: Index) -> Array:
    """Candidates in the unit cube of the logarithms of the columns, (n, columns)."""
    logs = np.array([np.log(values[rows]) for values in columns.values()]).T
    span = np.ptp(logs, axis=0)
    scaled: Array = (logs - np.min(logs, axis=0)) / np.where(span > 0, span, 1.0)
    return scaled


@dataclass(frozen=True)
class Plan:
    """How a sequential design spends: the forms, the share of rounds, and how basins are found."""

    forms: tuple[Form, ...]
    rounds: int = 6
    basins: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Bought:
    """Runs bought in order, their losses and total cost, and the basins fitted to all of them."""

    picks: Index
    losses: Array
    cost: float
    basins: tuple[Basin, ...]

    def predict(self, columns: Columns) -> tuple[Array, Array]:
        """The loss (n,) and the standard error of ln L (n,)."""
        mean, within, between = predict(self.basins, columns)
        return np.exp(mean), np.sqrt(within + between)


def sequential(
    candidates: Candidates, measure: Callable[[int], float], targets: Columns, budget: float, plan: Plan
) -> Bought:
    """Buy runs until the budget is gone: a spread of cheap ones, then rounds of fit, choice and purchase.

    ``measure(i)`` trains candidate i and gives its loss. Candidates that the columns do not tell apart are taken in a
    drawn order, not in the file's, which may hide what does tell them apart. In each round the best set for what is
    left is found, and its first runs are bought until that round's equal share is spent. Raises `InputError` where the
    budget does not buy a first run.
    """
    order = np.random.default_rng(plan.basins.seed).permutation(len(candidates))
    named = candidates
    candidates = Candidates({name: values[order] for name, values in named.columns.items()}, named.cost[order])
    largest = max(len(form.parameters) for form in plan.forms)
    picks = [int(i) for i in first_runs(candidates, _START_SHARE * budget, largest + _SPARE, plan.basins.seed)]
    if not picks:
        raise InputError.expected("a budget for one run or more", budget, where="budget")
    losses = [measure(int(order[i])) for i in picks]
    free = np.ones(len(candidates), bool)
    free[picks] = False
    left = budget - float(np.sum(candidates.cost[picks]))
    for rest in range(plan.rounds, 0, -1):
        found = _fit(candidates.columns, picks, losses, targets, plan)
        chosen = choose(found, candidates, targets, left, free)
        if not len(chosen.picks):
            break
        upto = np.searchsorted(np.cumsum(candidates.cost[chosen.picks]), left / rest * (1 - 1e-9)) + 1
        for pick in chosen.picks if rest == 1 else chosen.picks[:upto]:
            picks.append(int(pick))
            losses.append(measure(int(order[pick])))
            free[pick] = False
            left -= float(candidates.cost[pick])
    basins = _fit(candidates.columns, picks, losses, targets, plan)
    return Bought(order[np.array(picks)], np.array(losses), budget - left, basins)


def _fit(
    columns: Columns, picks: Sequence[int], losses: Sequence[float], targets: Columns, plan: Plan
) -> tuple[Basin, ...]:
    taken: Mapping[str, Array] = {name: values[np.array(picks)] for name, values in columns.items()}
    return find(taken, np.array(losses), plan.forms, targets, plan.basins)
