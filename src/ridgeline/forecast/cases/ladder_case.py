"""A designed ladder as a `Case`: the budgets, the runs to start, what they cost, and what their spread is worth."""

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Column, Section, Table
from ridgeline.forecast.deciding.ladder import Ladder, Order, design_ladder
from ridgeline.forecast.deciding.worth import Machine


def ladder_case(order: Order, on: Machine | None = None, *, command: str = "") -> tuple[Case, str]:
    """The case of a ladder, and its runs as a CSV with an empty column of losses.

    Raises `InputError` as `design_ladder` does.
    """
    made = design_ladder(order, on)
    case = Case("forecast ladder", f"a ladder of {len(made.runs)} runs", command=command)
    bill = made.bill
    known = (made.allowance, made.total, made.share, made.decades, made.variance)
    case.add(*known, *made.budgets, *((bill.chip_hours,) if bill else ()))
    if bill and bill.dollars:
        case.add(bill.dollars)
    case.decision, case.because = _decision(made), _because(made)
    case.add_table("ladder.budgets", budget_table(made))
    case.add_table("ladder.runs", made.table())
    case.charts["ladder.runs"] = _chart(made)
    alone = "Where the budgets lie, with one run at each:"
    case.sections = [
        Section("What it tells about the flagship", (alone, *made.advice), ("ladder.budgets",)),
        Section("The runs", ("Every run has a learning-rate schedule of its own, which ends with its tokens.",),
                ("ladder.runs",)),
    ]  # fmt: skip
    return case, made.csv()


def budget_table(made: Ladder) -> Table:
    """Budgets with their runs, smallest first."""
    columns = (
        Column("budget", "Budget"),
        Column("C", "Compute each", "FLOP"),
        Column("runs", "Runs", meaning="sizes, and seeds of the middle one"),
        Column("N", "Middle size", "param", f"compute-optimal under {made.order.law.name}"),
        Column("D", "Its tokens", "token"),
    )
    rows = []
    for index, budget in enumerate(made.budgets):
        runs = [run for run in made.runs if run.budget == index + 1]
        middle = runs[(made.order.sizes - 1) // 2]
        rows.append((str(index + 1), budget, len(runs), middle.params, middle.tokens))
    return Table("The ladder", columns, tuple(rows))


def _decision(made: Ladder) -> str:
    cost = ", {ladder.cost.rent} of chip-hours" if made.bill and made.bill.dollars else ""
    return (
        f"Start {len(made.runs)} runs over {{ladder.decades|2}} decades: {{ladder.total}} in all, {{ladder.share}} of "
        f"the flagship{cost}."
    )


def _because(made: Ladder) -> str:
    return (
        f"What limits the largest run is {made.limit}. A straight line through these runs has {{ladder.variance}} "
        "times the variance of one run at the flagship; curvature that the runs cannot show comes on top."
    )


def _chart(made: Ladder) -> Chart:
    table = made.table()
    spec = charts.points(table, "C", "N", look=charts.Look(log_x=True, log_y=True))
    title = f"{len(made.runs)} runs, each budget around the size that {made.order.law.name} calls optimal"
    alt = "Parameters against compute of every run of the ladder, both on logarithmic axes."
    return Chart(title, alt, spec, "ladder.runs")
