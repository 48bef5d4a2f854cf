"""The next runs as a `Case`: what to buy, what it does to the forecast, and what else was on the shelf."""

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Column, Section, Table
from ridgeline.core.format import count
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.forecast.buying.next_run import NextRun, NextRuns, Search, next_runs
from ridgeline.forecast.cases.derived import short
from ridgeline.forecast.deciding.scenarios import flop_price
from ridgeline.forecast.deciding.worth import Machine
from ridgeline.forecast.points import Points

_LANE_PX = 85  # a page's font is wider than the one that charts are measured with
SHOWN = 20  # candidates of the ranking
_METHOD = Source("design", "linearized error of the forecast at the target, over the basins of every law")


def next_case(
    points: Points, target_flops: float, budget_flops: float, *, on: Machine | None = None, command: str = ""
) -> Case:
    """The case of the runs worth buying for the forecast at a compute. Raises `InputError` as `next_runs` does."""
    price = flop_price(on, "next.flop_price") if on is not None else None
    found = next_runs(points, target_flops, budget_flops, Search(), price)
    case = Case("forecast next", f"the next run for {short(points)}", command=command)
    case.inputs = [points.source] if points.source else []
    case.lost = [*points.lost, *points.assumed]
    before, after = _errors(case, found)
    target, budget = (
        given("target", target_flops, "FLOP", "--target"),
        given("budget", budget_flops, "FLOP", "--budget"),
    )
    case.add(target, budget, before, after, *(_bought(run, i, price) for i, run in enumerate(found.best, 1)))
    case.decision, case.because = _decision(found), _because(found)
    _tables(case, found, price)
    case.sections = _sections(found)
    return case


def _errors(case: Case, found: NextRuns) -> tuple[Quantity, Quantity]:
    case.add(
        leaf("next.loss", found.loss, "nat", "measured", _METHOD).titled("Loss at the target, mean over the basins"),
        leaf("next.low", found.low, "nat", "measured", _METHOD).titled("95% interval now, low end"),
        leaf("next.high", found.high, "nat", "measured", _METHOD).titled("95% interval now, high end"),
    )
    before = leaf("next.before", 100 * found.before, "%", "measured", _METHOD)
    after = leaf("next.after", 100 * found.after, "%", "measured", _METHOD)
    return (
        before.titled("Standard error of the forecast now, share of the loss"),
        after.titled("Standard error with the runs bought, share of the loss"),
    )


def _bought(run: NextRun, number: int, price: Quantity | None) -> Quantity:
    """The cost of a run of the set, in dollars where there is a price, resting on its N and D."""
    name, search = f"next.{number}", Source("design", "grid of sizes and tokens per parameter within the budget")
    params = leaf(f"{name}.params", run.n, "param", "specified", search).titled(f"Parameters of run {number}")
    tokens = leaf(f"{name}.tokens", run.d, "token", "specified", search).titled(f"Tokens of run {number}")
    compute = derive(f"{name}.compute", "6*N*D", "FLOP", N=params, D=tokens).titled(f"Compute of run {number}")
    if price is None:
        return compute
    cost = derive(f"{name}.cost", "compute*price", "USD", compute=compute, price=price)
    return cost.titled(f"Cost of run {number}")


def _decision(found: NextRuns) -> str:
    if not found.helps:
        return (
            "No run within the budget helps materially: the standard error of the forecast would go from {next.before} "
            "to {next.after} of the loss."
        )
    first = "{next.1.params} on {next.1.tokens} ({next.1.compute})"
    more = f", then {len(found.best) - 1} more" if len(found.best) > 1 else ""
    return (
        f"Buy a run of {first}{more}: the standard error of the forecast goes from {{next.before}} to {{next.after}} "
        "of the loss."
    )


def _because(found: NextRuns) -> str:
    laws = sorted({basin.form.title for basin in found.basins})
    why = f"The first run {found.best[0].why}. " if found.best else ""
    rests = f"It rests on {count(len(found.basins), 'basin')} of {' and '.join(laws)}"
    change = "a law that none of them resembles would change it"
    return f"{why}{rests}; {change}. The noise of the flagship itself is not in the standard error."


def _row(run: NextRun, label: str, price: Quantity | None) -> tuple[object, ...]:
    dollars = (run.cost.value,) if price is not None and run.cost is not None else ()
    return (label, run.n, run.d, run.c, *dollars, 100 * run.after, run.low, run.high, run.why)


def _columns(price: Quantity | None, after: str) -> tuple[Column, ...]:
    dollars = (Column("cost", "Cost", "USD"),) if price is not None else ()
    return (
        Column("run", "Run"),
        Column("N", "Parameters", "param"),
        Column("D", "Tokens", "token"),
        Column("C", "Compute", "FLOP", "6ND"),
        *dollars,
        Column("after", "Error after", "%", after),
        Column("low", "Low", "nat", "95% interval of the loss at the target, if the forecast stayed where it is"),
        Column("high", "High", "nat"),
        Column("why", "What it does"),
    )


def _tables(case: Case, found: NextRuns, price: Quantity | None) -> None:
    bought = [_row(run, str(i), price) for i, run in enumerate(found.best, 1)]
    columns = _columns(price, "standard error of the forecast with this run and those above it, share of the loss")
    case.add_table("next.best", Table("What to buy, in order", columns, tuple(bought)))
    ranked = [_row(run, str(i), price) for i, run in enumerate(found.ranked[:SHOWN], 1)]
    columns = _columns(price, "standard error of the forecast with this run alone, share of the loss")
    title = f"Single runs by what they take off the variance for their cost, first {len(ranked)} of {len(found.ranked)}"
    case.add_table("next.ranked", Table(title, columns, tuple(ranked)))
    steps = [("now", found.low, found.high, "now")]
    steps += [
        (f"run{'s 1 to' if i > 1 else ''} {i}", run.low, run.high, "bought") for i, run in enumerate(found.best, 1)
    ]
    fan = Table(
        "Interval at the target",
        (
            Column("state", "State"),
            Column("low", "Low", "nat", "95% interval of the loss at the target"),
            Column("high", "High", "nat"),
            Column("when", "When"),
        ),
        tuple(steps),
    )
    case.add_table("next.fan", fan)
    spec = charts.spans(fan, "state", "low", "high", "when")
    spec["encoding"]["color"]["legend"] = None
    spec["encoding"]["x"]["title"] = "Loss at the target (nat)"
    spec["encoding"]["y"]["axis"] = {**spec["encoding"]["y"]["axis"], "minExtent": _LANE_PX}
    title = (
        f"The interval of the loss narrows from {100 * found.before:.2g}% to {100 * found.after:.2g}% standard error"
    )
    alt = "The 95% interval of the loss at the target now and after each run of the set, as horizontal bars."
    case.charts["next.fan"] = Chart(title, alt, spec, "next.fan")
    rows = tuple(
        (basin.form.title, 100 * basin.weight, ", ".join(f"{k} {float(v):.4g}" for k, v in
         basin.form.natural(basin.theta).items()))
        for basin in found.basins
    )  # fmt: skip
    names = (Column("law", "Law"), Column("weight", "Weight", "%"), Column("constants", "Constants"))
    case.add_table("next.basins", Table("Fits that the runs do not tell apart", names, rows))


def _sections(found: NextRuns) -> list[Section]:
    return [
        Section("What to buy", (found.says,), ("next.best", "next.fan")),
        Section("Single runs", ("A set is more than its best runs: two that pin the same constant are worth one.",),
                ("next.ranked",)),
        Section("What the runs are to tell apart",
                ("Every optimum of every law is followed; a run may be worth its price for telling two apart.",),
                ("next.basins",)),
    ]  # fmt: skip
