"""The tables of a ledger, from which its card, report and charts are made."""

from collections.abc import Iterator

import numpy as np

from ridgeline.core.case import Column, Table
from ridgeline.core.format import significant, value
from ridgeline.core.quantity import Quantity
from ridgeline.serve.levers.acceptance import chance_for
from ridgeline.serve.levers.facts import LeverFacts
from ridgeline.serve.levers.ledger import Row
from ridgeline.serve.levers.outcome import Outcome

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_DRAFTED = (1, 3, 5, 8)


def ledger_table(facts: LeverFacts) -> Table:
    """A row for every lever: open ones by what they save, then those in use, then the others."""
    columns = (
        Column("lever", "Lever"),
        Column(
            "status",
            "Status",
            meaning="in use: already priced in; loses: dearer than without; design: decided before training",
        ),
        Column("share", "Alone", "%", "of the cost without it"),
        Column("marginal", "Together", facts.unit, "what it adds at its turn"),
        Column("quality", "Risk to quality"),
        Column("rate", "Tokens/s", "token/(s*chip)", "output tokens a second and chip with the lever alone"),
        Column("sequences", "Fit", "request", "sequences that fit with it"),
        Column("ttft", "TTFT", "ms", "mean, at the ledger's rate"),
        Column("tpot", "TPOT", "ms", "mean, at the ledger's rate"),
        Column("stall", "Stall", "ms", "longest wait for the next token while a long prompt is computed"),
        Column("note", "Note"),
    )
    rows = tuple(_row(facts, row) for row in facts.ledger.ranked)
    marked = bool(rows) and facts.ledger.ranked[0].status == "open"
    return Table(
        "What each lever buys", columns, rows, highlight=0 if marked else None, mark="largest" if marked else ""
    )


def _row(facts: LeverFacts, row: Row) -> tuple[object, ...]:
    share = facts.share(row)
    marginal: Quantity | str = facts.marginal(row) if row.after is not None else ""
    return (row.lever.title, row.status, "" if share is None else share, marginal, row.lever.quality,
            *_figures(row.alone.with_), row.why)  # fmt: skip


def _figures(found: Outcome | None) -> tuple[object, ...]:
    """Rate, sequences, TTFT, TPOT and stall; gaps where nothing fits or the rate is above the largest."""
    if found is None:
        return ("",) * 5
    ttft = "" if found.ttft_s is None else _digits(1e3 * found.ttft_s)
    return (
        _digits(found.tokens_s_chip),
        found.sequences,
        ttft,
        _digits(1e3 * found.tpot_s),
        _digits(1e3 * found.stall_s),
    )


def sides_table(facts: LeverFacts) -> Table:
    """As it is, and with every open lever."""
    columns = (
        Column("setup", "Setup"),
        Column("cost", "Cost", facts.unit),
        Column("rate", "Tokens/s", "token/(s*chip)"),
        Column("sequences", "Fit", "request"),
        Column("ttft", "TTFT", "ms"),
        Column("tpot", "TPOT", "ms"),
        Column("stall", "Stall", "ms"),
    )
    rows = (
        ("as it is", facts.baseline, *_figures(facts.ledger.baseline)),
        ("every open lever", facts.final, *_figures(facts.ledger.final)),
    )
    return Table("As it is, and with every open lever", columns, rows)


def bar_table(facts: LeverFacts) -> Table:
    """From, to and the words of every bar of the waterfall."""
    columns = (
        Column("what", "Lever"),
        Column("low", "Cost", facts.unit),
        Column("high", "to", facts.unit),
        Column("kind", "Kind"),
        Column("text", "Change"),
    )
    return Table("The cost, lever by lever", columns, tuple(_bars(facts)))


def _bars(facts: LeverFacts) -> Iterator[tuple[object, ...]]:
    at = float(facts.baseline.value)
    yield "as it is", 0.0, at, "level", value(at, facts.unit)
    for row in facts.ledger.rows:
        saved = float(facts.marginal(row).value)
        if row.after is not None and saved:
            kind = "quality kept" if row.lever.quality.startswith("none") else "needs a gate"
            yield row.lever.title, at - saved, at, kind, f"-{value(saved, facts.unit)}"
            at -= saved
    yield "every open lever", 0.0, float(facts.final.value), "level", value(float(facts.final.value), facts.unit)


def speculation_table(facts: LeverFacts) -> Table:
    """Speedup, best number of drafted tokens and break-even by batch."""
    columns = (
        Column("batch", "Batch", "request"),
        Column("speedup", f"Speed with {facts.drafted}", "1", "of a sequence, over that without speculation"),
        Column("best", "Best k", "1", "drafted tokens with the fewest seconds a token; 0: none"),
        Column("at_best", "Speed there", "1"),
        Column("break_even", "Break-even", "token", "acceptance length at which nothing is won"),
        Column("chance", "Chance", "1", "of acceptance that has this length; none: accepting every token loses"),
    )
    found, batches = facts.speculation, np.array(BATCHES, dtype=np.float64)
    bests = found.best_each(BATCHES, facts.context)
    speeds = found.speedup(batches, facts.context, facts.drafted)
    even = found.break_even_length(batches, facts.context, facts.drafted)
    found_chances = (chance_for(float(length), facts.drafted) for length in even)
    chances = ["none" if chance is None else round(chance, 3) for chance in found_chances]
    at_best = {count: found.speedup(batches, facts.context, count) for count in set(bests)}
    rows = tuple(
        (
            batch,
            _digits(speeds[row]),
            bests[row],
            _digits(at_best[bests[row]][row]),
            _digits(even[row]),
            chances[row],
        )
        for row, batch in enumerate(BATCHES)
    )
    at = int(np.argmin([abs(np.log(batch / max(1.0, facts.batch))) for batch in BATCHES]))
    title = f"Speculation at {facts.context:,.0f} cached tokens"
    return Table(title, columns, rows, highlight=at, mark="nearest to the batch served")


def speculation_curves(facts: LeverFacts) -> Table:
    """Speedup over the batch for a few numbers of drafted tokens."""
    columns = (
        Column("batch", "Batch", "request"),
        Column("speedup", "Speed with over without"),
        Column("drafted", "k"),
    )
    batches = np.array(BATCHES, dtype=np.float64)
    rows = []
    for count in sorted({*_DRAFTED, facts.drafted}):
        speeds = facts.speculation.speedup(batches, facts.context, count)
        rows += [(batch, _digits(float(speed)), f"k = {count}") for batch, speed in zip(BATCHES, speeds, strict=True)]
    return Table("Speculation by batch and drafted tokens", columns, tuple(rows))


def _digits(number: float) -> float:
    """Three significant digits: an estimate has no more."""
    return float(significant(number).replace(",", ""))
