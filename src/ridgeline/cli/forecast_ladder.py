"""``ridgeline forecast ladder``."""

from typing import Annotated

import typer

from ridgeline.cli import _forecast, _report, _talk


def command(
    flagship: Annotated[
        str, typer.Option("--flagship", metavar="FLOP", help="Compute of the run to forecast, such as 1e25.")
    ],
    fraction: Annotated[float, typer.Option("--fraction", help="Share of it that the ladder may cost, 0 to 1.")] = 0.03,
    smallest: Annotated[str, typer.Option("--smallest", metavar="FLOP", help="Compute of the smallest run.")] = "1e18",
    budgets: Annotated[int, typer.Option("--budgets", help="Budgets, spaced evenly in log compute.")] = 5,
    top: Annotated[float, typer.Option("--top", help="Largest run's share of the allowance.")] = 0.5,
    sizes: Annotated[int, typer.Option("--sizes", help="Sizes of each budget.")] = 3,
    seeds: Annotated[int, typer.Option("--seeds", help="Seeds of the two smallest budgets' middle size.")] = 3,
    law: Annotated[str, typer.Option("--law", help="Published law that places the sizes.")] = "hoffmann-2022",
    chip: Annotated[str, typer.Option("--chip", help="Device that prices the ladder, such as H100.")] = "",
    output: _report.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Runs to start before a flagship: sizes, tokens, seeds, dollars, and what their spread is worth.

    Beside the report (ladder.html, ladder.json), ladder.csv has one line a run with the loss left to fill in: the file
    that `ridgeline forecast` reads.
    """
    from ridgeline.core.catalog import law as published
    from ridgeline.core.errors import InputError
    from ridgeline.core.quantity import given
    from ridgeline.forecast.cases.ladder_case import ladder_case
    from ridgeline.forecast.deciding.ladder import Order, filled
    from ridgeline.forecast.deciding.worth import machine

    if not 0 < fraction <= 1:
        raise InputError.expected("a share of the flagship above 0 and at most 1", fraction, where="--fraction",
                                  hint="3% is 0.03")  # fmt: skip
    order = Order(
        flagship=given("flagship", _forecast.flops(flagship, "--flagship"), "FLOP", "--flagship"),
        fraction=given("fraction", fraction, "1", "--fraction"),
        low=given("smallest", _forecast.flops(smallest, "--smallest"), "FLOP", "--smallest"),
        law=published(law),
        budgets=budgets,
        top=top,
        sizes=sizes,
        seeds=seeds,
    )
    line = _report.words(
        [("", ["ridgeline", "forecast", "ladder"]), ("--flagship", flagship), ("--fraction", fraction),
         ("--smallest", smallest), ("--budgets", budgets), ("--top", top), ("--sizes", sizes), ("--seeds", seeds),
         ("--law", law), ("--chip", chip)]
    )  # fmt: skip
    case, table = ladder_case(order, machine(chip) if chip else None, command=line)
    place = output or _forecast.REPORT
    folder = place.parent if place.suffix == ".json" else place
    folder.mkdir(parents=True, exist_ok=True)
    runs = folder / "ladder.csv"
    if runs.exists() and filled(runs.read_text(encoding="utf-8", errors="replace")):
        raise InputError.expected("a ladder without losses", "one in which they are filled in", where=f"-o, {runs}",
                                  hint="name another folder with -o, or move that file away")  # fmt: skip
    runs.write_text(table, encoding="utf-8")
    _report.written(case, place, "ladder", as_json=as_json)
