"""A study of two populations as a `Case`: the strategies side by side, and what the tables hold and send."""

from collections.abc import Sequence

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Column, InputFile, Section, Table
from ridgeline.core.format import show
from ridgeline.core.quantity import Quantity
from ridgeline.plan.layouts.populations import Populations, Strategy
from ridgeline.plan.layouts.sparse import Sparse


def populations_case(found: Populations, *, command: str = "", inputs: Sequence[InputFile] = ()) -> Case:
    """The case of a study. Raises `InfeasibleError` where no strategy runs."""
    best = found.best
    assert best.step is not None, "the best one runs"
    case = Case("plan", f"{found.study.name} on {found.study.cluster.name}", command=command, inputs=list(inputs))
    case.add(found.bytes, best.step)
    case.add(*(item.step for item in found.strategies if item.step is not None))
    case.sections = [_strategies(case, found), *_tables(case, best)]
    case.decision = f"Run {best.name}: {{{best.step.name}}} a step. {best.how}."
    case.because = _because(found)
    return case


def _because(found: Populations) -> str:
    best = found.best
    said = [f"The tables take {{{found.bytes.name}}}"]
    for item in found.strategies:
        if not item.name.startswith("uniform"):
            continue
        if item.step is None:
            said.append(f"{item.name} does not run ({item.binding})")
        elif best.step is not None:
            said.append(f"{item.name} takes {float(item.step.base) / float(best.step.base):.1f} times as long")
    return "; ".join(said) + "."


def _strategies(case: Case, found: Populations) -> Section:
    columns = (
        Column("strategy", "Strategy"),
        Column("step", "Step", "s"),
        Column("held", "Held", "B", "on the fullest chip"),
        Column("trunk", "Trunk", "s"),
        Column("exchange", "Exchange", "s", "exposed"),
        Column("sparse", "Tables", "s", "reads and updates of rows"),
        Column("binding", "What binds"),
        Column("how", "How"),
    )
    rows = tuple(_row(item) for item in found.strategies)
    place = found.strategies.index(found.best)
    case.add_table("recommender.strategies", Table("Strategies", columns, rows, highlight=place, mark="fastest"))
    text = (
        "Tables cost memory, random reads and exchanges; the trunk costs matmuls. Two populations give each its own "
        "sharding on the same fabric; a uniform strategy gives both the same."
    )
    return Section("Two populations against one strategy", (text,), ("recommender.strategies",))


def _row(item: Strategy) -> tuple[object, ...]:
    times = [_cell(part) for part in (item.trunk, item.exchange, item.sparse)]
    return (item.name, _cell(item.step), item.held, *times, item.binding or "nothing", item.how)


def _cell(quantity: Quantity | None) -> object:
    return "" if quantity is None else quantity


def _tables(case: Case, best: Strategy) -> list[Section]:
    if best.tables is None:
        return []
    sparse: Sparse = best.tables
    case.add(sparse.held, sparse.sent, sparse.exchange)
    parts = {
        "ids to the owners": (sparse.ids, 1),
        "partial sums inside a group": (sparse.partial, 2),
        "pooled vectors and their gradients": (sparse.pooled, 2),
        "touched rows between replicas": (sparse.touched, 1),
    }
    columns = (
        Column("what", "Exchange"),
        Column("once", "Once", "s"),
        Column("times", "Times"),
        Column("all", "Step", "ms"),
    )
    rows = tuple(
        (name, part, times, float(f"{1e3 * float(part.base) * times:.4g}")) for name, (part, times) in parts.items()
    )
    case.add_table("recommender.exchanges", Table("What the tables exchange in a step", columns, rows))
    spec = charts.bars(case.tables["recommender.exchanges"], "what", "all")
    title = f"A chip sends {show(sparse.sent)} for the tables in a step"
    alt = "Milliseconds of each exchange of the embedding tables."
    case.charts["recommender.exchanges"] = Chart(title, alt, spec, "recommender.exchanges")
    text = f"{sparse.split}: {{{sparse.held.name}}} of tables on a chip."
    return [Section("The tables", (text,), ("recommender.exchanges",))]
