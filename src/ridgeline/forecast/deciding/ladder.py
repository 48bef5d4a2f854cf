"""A ladder to buy: log-spaced budgets, sizes around the expected optimum, seeds for the noise, hours and dollars.

The variance of a straight line at x0 beyond its data is sigma^2 (1/n + (x0 - mean)^2 / Sxx) (ordinary least squares,
the leverage of the target): the spread of the budgets buys more than their number. It is a lower bound here, as it
takes the line for the truth.
"""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.inputs import require_fraction, require_positive
from ridgeline.arithmetic.napkin import tokens_per_param, training_compute
from ridgeline.core.case import Column, Table
from ridgeline.core.errors import InputError
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.forecast.deciding.worth import Bill, Machine, bill
from ridgeline.forecast.fitting.optimum import LEAST_SIZE

SHARE_OF_TOP = (
    0.5  # of the allowance, for the largest run: what is left is for the others, and for another size at the top
)
MOST = 200  # runs: more is a slip of the keyboard
HEADER = ("budget", "N", "D", "C", "tokens_per_param", "seed", "loss")
FEWEST = 3  # budgets: a line and one that can contradict it


@dataclass(frozen=True)
class Order:
    """What a ladder is for, and what it may cost.

    ``fraction`` of the ``flagship``'s FLOPs is the allowance, ``low`` (FLOP) the smallest run and ``top`` the largest
    run's share of the allowance. Every budget has ``sizes`` models, neighbours a factor ``step`` apart around
    the optimum of ``law``; the ``noisy`` smallest budgets repeat their middle size with ``seeds`` seeds.
    """

    flagship: Quantity
    fraction: Quantity
    low: Quantity
    law: Law
    budgets: int = 5
    top: float = SHARE_OF_TOP
    sizes: int = 1
    step: float = 2.0
    seeds: int = 1
    noisy: int = 2


@dataclass(frozen=True)
class Run:
    """One line of the table: N (param), D (token), C (FLOP), tokens per parameter, its budget's label and its seed."""

    budget: int
    params: Quantity
    tokens: Quantity
    compute: Quantity
    ratio: Quantity
    seed: int


@dataclass(frozen=True)
class Ladder:
    """A designed ladder. ``variance`` is that of a line at the flagship, in units of the noise of one run.

    ``limit`` says what set the largest budget: its share of the allowance, or the cost of all runs together.
    """

    order: Order
    budgets: tuple[Quantity, ...]
    runs: tuple[Run, ...]
    allowance: Quantity
    total: Quantity
    share: Quantity
    decades: Quantity
    variance: Quantity
    bill: Bill | None
    limit: str
    advice: tuple[str, ...]

    def table(self) -> Table:
        """The runs to start, one a row."""
        columns = (
            Column("budget", "budget", "", "label of runs of equal compute"),
            Column("N", "N", "param", "parameters, counted as the law counts them"),
            Column("D", "D", "token", "tokens, each seen once"),
            Column("C", "C", "FLOP", "6ND"),
            Column("tokens_per_param", "D/N", "1", "tokens per parameter"),
            Column("seed", "seed", "", "seed of the initial weights and of the data order"),
        )
        rows = [(str(r.budget), r.params, r.tokens, r.compute, r.ratio, str(r.seed)) for r in self.runs]
        note = "Every run on a schedule that ends at its own D."
        return Table("Ladder", columns, tuple(rows), note=note)

    def csv(self) -> str:
        """The runs as a file with the columns that `ridgeline forecast` reads, ``loss`` to be filled in."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADER)
        for r in self.runs:
            numbers = (f"{float(q.value):.6g}" for q in (r.params, r.tokens, r.compute, r.ratio))
            writer.writerow([r.budget, *numbers, r.seed, ""])
        return text.getvalue()


def filled(text: str) -> bool:
    """Whether a file's text is more than a ladder without its losses: a loss is filled in, or it is another table."""
    rows = list(csv.reader(io.StringIO(text)))
    return bool(rows) and (rows[0] != list(HEADER) or any(row[len(HEADER) - 1 :] not in ([], [""]) for row in rows[1:]))


def design_ladder(order: Order, on: Machine | None = None, prefix: str = "ladder") -> Ladder:
    """Log-spaced budgets from ``low`` to the top, the runs of each, and what they cost.

    The top budget is its share of the allowance, or less where all runs together would cost more than the allowance.
    Raises `InputError` for fewer than three budgets, for more runs than anybody starts, for smaller ones than say
    anything, and where the smallest run leaves no room for a larger one.
    """
    _check(order)
    inputs = {"flagship": order.flagship, "fraction": order.fraction}
    allowance = derive(f"{prefix}.allowance", "flagship*fraction", "FLOP", **inputs).titled("Allowance of the ladder")
    top, limit = _top(order, allowance, prefix)
    budgets = _spaced(order, top, prefix)
    runs = [run for i, budget in enumerate(budgets) for run in _runs(order, i, budget, prefix)]
    symbols = {f"C_{i}": run.compute for i, run in enumerate(runs)}
    total = derive(f"{prefix}.total", " + ".join(symbols), "FLOP", **symbols).titled("Compute of all runs")
    share = derive(f"{prefix}.share", "total/flagship", "%", total=total, flagship=order.flagship)
    decades = derive(f"{prefix}.decades", "log10(top/low)", "1", top=budgets[-1], low=budgets[0])
    variance = extrapolation_variance([run.compute for run in runs], order.flagship, f"{prefix}.variance")
    return Ladder(
        order, budgets, tuple(runs), allowance, total, share.titled("Share of the flagship"),
        decades.titled("Decades of compute"), variance, bill(total, on, prefix) if on else None, limit,
        spread_advice(budgets, order.flagship),
    )  # fmt: skip


def _check(order: Order) -> None:
    require_positive(order.flagship, order.low)
    require_fraction(order.fraction)
    for value, least, what in (
        (order.budgets, FEWEST, "budgets"), (order.sizes, 1, "sizes"), (order.seeds, 1, "seeds")
    ):  # fmt: skip
        if value < least:
            raise InputError.expected(f"at least {least} {what}", value, where=f"--{what}")
        if value > MOST:
            raise InputError.expected(f"at most {MOST} {what}", value, where=f"--{what}")
    if sum(_counts(order)) > MOST:
        hint = "fewer of --budgets, --sizes or --seeds"
        raise InputError.expected(f"at most {MOST} runs", sum(_counts(order)), where="the ladder", hint=hint)
    if not order.step > 1:
        raise InputError.expected("a factor above 1 between sizes", order.step, where="the ladder's step")
    if not 0 < order.top <= 1:
        raise InputError.expected("a share above 0 and at most 1", order.top, where="--top")


def _counts(order: Order) -> list[int]:
    """Runs of each budget, smallest first."""
    return [order.sizes + (order.seeds - 1 if i < order.noisy else 0) for i in range(order.budgets)]


def _top(order: Order, allowance: Quantity, prefix: str) -> tuple[Quantity, str]:
    """The largest budget (FLOP) and what limits it."""
    share = given(f"{prefix}.top_share", order.top, "1", "the ladder's top share")
    top = derive(f"{prefix}.top", "allowance*share", "FLOP", allowance=allowance, share=share)
    low_flops, all_flops = float(order.low.base), float(allowance.base)
    counts = np.array(_counts(order))

    def cost_flops(top_flops: float) -> float:
        return float(counts @ np.geomspace(low_flops, top_flops, order.budgets))

    if float(top.base) <= low_flops or cost_flops(low_flops) > all_flops:
        hint = "a larger --fraction, a smaller --smallest, or fewer runs"
        raise InputError.expected(
            f"a smallest budget with room above it within {all_flops:.3g} FLOP",
            f"{int(counts.sum())} runs from {low_flops:.3g} FLOP up", where="the ladder", hint=hint,
        )  # fmt: skip
    if cost_flops(float(top.base)) <= all_flops:
        return top, "its share of the allowance"
    low, high = math.log(low_flops), math.log(float(top.base))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if cost_flops(math.exp(middle)) <= all_flops else (low, middle)
    found = given(
        f"{prefix}.top", math.exp(low), "FLOP", "search", "the largest top budget that all runs together allow"
    )
    return found, "the cost of all runs together"


def _spaced(order: Order, top: Quantity, prefix: str) -> tuple[Quantity, ...]:
    last = given(f"{prefix}.steps", order.budgets - 1, "1", "the ladder's budgets")
    found = []
    for i in range(order.budgets):
        step = given(f"{prefix}.step.{i + 1}", i, "1", "the order of the budgets")
        inputs = {"low": order.low, "top": top, "step": step, "steps": last}
        name = f"{prefix}.budget.{i + 1}"
        found.append(derive(name, "low*(top/low)**(step/steps)", "FLOP", **inputs).titled(f"Budget {i + 1}"))
    return tuple(found)


def _runs(order: Order, index: int, budget: Quantity, prefix: str) -> list[Run]:
    """The sizes of one budget around the law's optimum; seeds repeat the middle one."""
    name = f"{prefix}.budget.{index + 1}"
    best = laws.optimum(order.law, budget, f"{name}.optimum")
    runs = []
    for place in range(order.sizes):
        at = f"{name}.size.{place + 1}"
        steps = given(f"{at}.steps", place - (order.sizes - 1) / 2, "1", "the order of the sizes")
        step = given(f"{prefix}.size_step", float(order.step), "1", "the ladder's step")
        params = derive(f"{at}.params", "best*step**steps", "param", best=best.params, step=step, steps=steps)
        tokens = derive(f"{at}.tokens", "C/(6*N)", "token", C=budget, N=params)
        if min(float(params.base), float(tokens.base)) < LEAST_SIZE:
            raise InputError.expected(
                f"runs of at least {LEAST_SIZE:g} parameters and tokens",
                f"{float(params.base):.3g} parameters on {float(tokens.base):.3g} tokens",
                where="--smallest", hint="a larger --smallest, or fewer --sizes",
            )  # fmt: skip
        compute = training_compute(params, tokens, at)
        ratio = tokens_per_param(params, tokens, at)
        repeats = order.seeds if index < order.noisy and place == (order.sizes - 1) // 2 else 1
        runs += [Run(index + 1, params, tokens, compute, ratio, seed) for seed in range(repeats)]
    return runs


def extrapolation_variance(computes: Sequence[Quantity], target: Quantity, name: str) -> Quantity:
    """The variance of a line in log10 C at the target, in units of one run's: 1/n + (x0 - mean)^2/Sxx.

    Ordinary least squares. Raises `InputError` where all runs have one compute.
    """
    require_positive(target, *computes)
    symbols = {f"C_{i}": item for i, item in enumerate(computes)}
    logs = [f"log10({symbol})" for symbol in symbols]
    count = given(f"{name}.runs", len(computes), "1", "the number of runs")
    centre = derive(f"{name}.mean", f"({' + '.join(logs)})/n", "1", n=count, **symbols)
    squares = " + ".join(f"({log} - mean)**2" for log in logs)
    spread = derive(f"{name}.spread", squares, "1", mean=centre, **symbols)
    if not float(spread.value) > 0:
        raise InputError.expected("runs of at least two computes", "one compute", where="the ladder")
    text = "1/n + (log10(target) - mean)**2/spread"
    found = derive(name, text, "1", n=count, target=target, mean=centre, spread=spread)
    return found.titled("Variance at the target, in that of one run")


def spread_advice(budgets: Sequence[Quantity], target: Quantity) -> tuple[str, ...]:
    """What the placement of the budgets costs, in sentences with numbers."""
    x = [math.log10(float(item.base)) for item in budgets]
    goal = math.log10(float(target.base))
    reach, span = goal - x[-1], x[-1] - x[0]
    half = len(x) // 2
    ends = [x[0]] * (len(x) - half - 1) + [x[half]] + [x[-1]] * half
    upper = np.linspace(x[0] + span / 2, x[-1], len(x)).tolist()
    now, best, narrow = (_variance(place, target) for place in (x, ends, upper))
    advice = [
        f"The flagship lies {reach:.1f} decades above a ladder of {span:.1f} decades.",
        (
            f"The variance of a line at the flagship is {now:.2f} that of one run; over the upper half of the decades "
            f"alone the same number of budgets would give {narrow:.2f}."
        ),
        (
            f"With the budgets at both ends and one in the middle it would be {best:.2f}, but one budget between "
            "the ends then has to show every curvature."
        ),
    ]
    if reach > span:
        advice.append("The extrapolation is longer than the ladder: lower the smallest budget or raise the largest.")
    return tuple(advice)


def _variance(log10_computes: Sequence[float], target: Quantity) -> float:
    runs = [given(f"C.{i}", 10.0**x, "FLOP") for i, x in enumerate(log10_computes)]
    return float(extrapolation_variance(runs, target, "variance").value)
