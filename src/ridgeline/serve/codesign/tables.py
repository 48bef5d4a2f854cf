"""The tables of a co-design, from which its card, report and charts are made."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ridgeline.core.case import Column, Table
from ridgeline.core.catalog import constant
from ridgeline.core.format import significant
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.serve.codesign.evaluate import NAMES, Configuration, Group
from ridgeline.serve.codesign.facts import Bought, Designed
from ridgeline.serve.codesign.measured import Measured
from ridgeline.serve.steps.quantities import output_rate, per_million

_BINS = 20  # points of a curve of the map
DIGITS = 3


def front_table(facts: Designed) -> Table:
    """The front: no other configuration that keeps the limits has less loss, a lower TPOT and a lower price."""
    timed = "as measured operations make it" if facts.space.bench else "roofline: a lower bound"
    columns = [
        Column("model", "Layers x d_model"),
        Column("types", "Weights/KV"),
        Column("batch", "Batch", "1"),
        Column("params", "Parameters", "param"),
        Column("active", "Active", "param"),
        Column("loss", "Loss", "nat", facts.need.law.name),
        Column("ttft", "TTFT", "s", timed),
        Column("tpot", "TPOT", "s/token", timed),
    ]
    if facts.need.price is not None:
        columns.append(Column("price", "Price", "USD/(1e6*token)", "of output tokens, prompts included"))
    rows = tuple(_front_row(facts, n, one, seen) for n, (one, seen) in enumerate(facts.front))
    marked = [n for n, (one, _) in enumerate(facts.front) if one == facts.winner]
    return Table(
        "The front: loss, TPOT and price", tuple(columns), rows,
        highlight=marked[0] if marked else None, mark="chosen" if marked else "",
    )  # fmt: skip


def _front_row(facts: Designed, number: int, one: Configuration, seen: Measured | None) -> tuple[Any, ...]:
    prefix = f"front.r{number + 1}"
    figures = {name: one.figure(name, prefix) for name in ("total", "active", "loss", "prefill", "tpot")}
    price = one.figure("price", prefix) if facts.need.price is not None else None
    ttft, tpot = figures["prefill"], figures["tpot"]
    if seen is not None:
        ttft, tpot = (_looked_up(item, prefix) for item in (seen.latency.ttft, seen.latency.tpot))
        price = _price(facts, one, ttft, tpot, prefix)
    row = (one.shape, one.types, one.sides["batch"], figures["total"], figures["active"], figures["loss"], ttft, tpot)
    return row if price is None else (*row, price)


def _looked_up(item: Quantity, prefix: str) -> Quantity:
    """A time of the step model as one figure: `ridgeline serve latency` has its terms."""
    source = Source("serving surfaces", "docs/design/serving-surfaces.md")
    return leaf(f"{prefix}.{item.name}", float(item.value), item.unit, "measured", source).titled(item.label)


def _price(facts: Designed, one: Configuration, ttft: Quantity, tpot: Quantity, prefix: str) -> Quantity | None:
    need = facts.need
    batch = leaf(f"{prefix}.codesign.batch", one.sides["batch"], "1", "specified", Source("co-design", "batches"))
    rate = output_rate(batch, tpot, ttft, need.output, prefix)
    return per_million("dollars", "USD", need.price, need.chips, rate, prefix)


def bought_table(facts: Designed) -> Table:
    """The best configuration with one freedom at a time, and what it wins over the plain one."""
    columns = (
        Column("freedom", "Allowed", meaning="beside dense, grouped-query attention and 16 bits"),
        Column("model", "Best configuration"),
        Column("params", "Active", "param"),
        Column("loss", "Loss", "nat", facts.need.law.name),
        Column("won", "Wins", "nat", "over the plain design under the same limits"),
        Column("quality", "Known?"),
    )
    plain = facts.bought[0].walk.winner
    return Table("What each freedom buys back", columns, tuple(_bought_row(item, plain) for item in facts.bought))


def _bought_row(item: Bought, plain: Configuration | None) -> tuple[Any, ...]:
    one = item.walk.winner
    if one is None:
        return (item.name, "none does", "", "", "", "")
    loss = float(one.group.loss[one.index])
    won = round(float(plain.group.loss[plain.index]) - loss, 4) if plain is not None else ""
    active = float(one.figure("active").value)
    return (item.name, one.label, active, round(loss, 4), won, quality(one))


def quality(one: Configuration) -> str:
    """What of a configuration's loss no law here speaks of."""
    open_ = [name for name, there in (("bits", _narrow(one)), ("granularity", one.group.frame.mixture),
                                      ("MLA", one.group.frame.attention == "mla")) if there]  # fmt: skip
    return f"unknown: {', '.join(open_)}" if open_ else "by the law"


def _narrow(one: Configuration) -> bool:
    return any(dtype not in ("bf16", "fp16", "fp32") for dtype in (one.group.weights, one.group.kv))


def laws_table(facts: Designed) -> Table:
    """The winner under each law."""
    columns = (
        Column("law", "Law"),
        Column("model", "Best configuration"),
        Column("params", "Active", "param"),
        Column("same", "Same design"),
    )
    rows: list[tuple[Any, ...]] = []
    for slug, one in facts.by_law.items():
        if one is None:
            rows.append((slug, "none does", "", ""))
            continue
        active = float(significant(float(one.figure("active").value), DIGITS + 1).replace(",", ""))
        rows.append((slug, one.label, active, "yes" if facts.same(one) else "no"))
    return Table("The choice under other laws", columns, tuple(rows))


def limits_table(facts: Designed) -> Table:
    """Every limit, and what of it is used up: by the winner, or by the nearest miss."""
    seen = facts.walk.measured or (None if facts.winner else facts.walk.miss)
    one = facts.winner or facts.nearest_one
    roof, stress = one.stress, seen.stress if seen else {}
    columns = (
        Column("limit", "Limit"),
        Column("asked", "Asked for"),
        Column("measured", "Used up", "%", "by measured operations"),
        Column("roofline", "At least", "%", "by the roofline, a lower bound"),
    )
    rows = tuple((NAMES[name], facts.asked(name), _percent(stress.get(name)), _percent(roof[name])) for name in roof)
    whose = "the choice" if facts.winner else "the nearest miss"
    return Table(f"The limits and {whose}", columns, rows)


def _percent(share: float | None) -> float | str:
    if share is None or not np.isfinite(share):
        return "" if share is None else "does not fit"
    return float(significant(100 * share, DIGITS).replace(",", ""))


def map_table(facts: Designed) -> Table:
    """The least time that each loss takes, by kind of model, by the roofline: the edge of what can be had."""
    columns = (
        Column("time", facts.clock[1], facts.clock[2]),
        Column("loss", "Loss", "nat"),
        Column("kind", "Kind"),
    )
    return Table("Loss against time, by the roofline", columns, tuple(_curves(facts)))


def _curves(facts: Designed) -> Iterator[tuple[Any, ...]]:
    clock, _, _ = facts.clock
    low = min(float(np.nanmin(group.loss)) for group in facts.space.groups)
    edges = np.linspace(low, low + 2 * float(facts.reach), _BINS + 1)
    kinds: dict[str, list[Group]] = {}
    for group in facts.space.groups:
        mixed = "MoE" if group.frame.mixture else "dense"
        kinds.setdefault(f"{mixed}, {group.weights} weights", []).append(group)
    for kind, members in kinds.items():
        loss = np.concatenate([g.loss for g in members])
        time = np.concatenate([np.asarray(g.figures[clock].value, dtype=np.float64) for g in members])
        which = np.digitize(loss, edges)
        for bin_ in range(1, _BINS + 1):
            inside = np.flatnonzero(which == bin_)
            if len(inside):
                best = inside[np.argmin(time[inside])]
                yield float(significant(time[best], 4).replace(",", "")), round(float(loss[best]), 4), kind


def tie() -> Quantity:
    """The losses that count as the same."""
    return constant("codesign.tie")
