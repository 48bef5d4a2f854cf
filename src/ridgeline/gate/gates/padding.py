"""`padding`: how many token slots of a real batch hold a token, what multiplies zeros, and what would recover it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import charts
from ridgeline.core.case import Chart, Column, InputFile, Section, Table
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import Check, Outcome, blocked
from ridgeline.gate.gate import Gate
from ridgeline.gate.judging.paired import rows_of
from ridgeline.gate.padding.layouts import BUCKETED, PACKED, PADDED, VARLEN, Layout, batches, layouts
from ridgeline.gate.padding.lengths import Counts, Lengths
from ridgeline.gate.padding.work import CORE, Work, on_zeros, work
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.catastrophe import clopper_pearson
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.paired import paired_mean
from ridgeline.gate.statistics.sizes import needed, variance_bound
from ridgeline.gate.statistics.slices import LOWEST, lowest_volume

GATE = Gate("padding", "Padding", "Paying for token slots that hold no token: a batch padded far past its sequences.")
METRIC = "utilisation"
BASIS = "if the utilisation stays as it is"
SHOWN = 1000  # batches that the table lists


@dataclass(frozen=True, eq=False)
class Setting:
    """``max_length`` in tokens, None for the width of the batch; sequences of a batch; the model, None without one."""

    max_length: int | None = None
    batch_size: int | None = None
    model: ModelSpec | None = None
    inputs: tuple[InputFile, ...] = ()


@dataclass(frozen=True, eq=False)
class _Batch:
    found: Lengths
    kept: Counts
    longest: int
    setting: Setting
    plan: Plan

    @property
    def shares(self) -> NDArray[np.float64]:
        return self.kept / self.longest


def decide(found: Lengths, setting: Setting, plan: Plan) -> Decided:
    """Ship a batch whose useful slots are above one less the tolerated waste, overall and in every slice.

    Raises `InputError` without a max length, where no sequence has a token, and for a margin that tolerates all.
    """
    if plan.margin >= 1:
        raise InputError.expected("a margin below 100%", f"{plan.margin:.0%}", where="--margin")
    longest = _max_length(found, setting)
    kept = np.minimum(found.true, longest)
    if not kept.any():
        raise InputError.expected("at least one token", "padding alone", where="the batch")
    batch = _Batch(found, kept, longest, setting, plan)
    laid = layouts(kept, longest, setting.batch_size)
    works = () if setting.model is None else tuple(work(setting.model, one, _prefix(one)) for one in laid)
    tables, drawn = _tables(batch, laid, works), {}
    for name, (label, value, title) in _CHARTS.items():
        if name in tables:
            drawn[f"{name}.chart"] = Chart(title, title, charts.bars(tables[name], label, value), name)
    return Decided(
        GATE,
        _subject(batch),
        (*_checks(batch), *_blocked(batch)),
        change=_change(laid),
        inputs=(*found.inputs, *setting.inputs),
        lost=(*found.lost, *_cut(batch)),
        quantities=(*_figures(batch), *_attention(laid, works)),
        sections=_sections(batch, tables),
        tables=tables,
        charts=drawn,
    )


def _max_length(found: Lengths, setting: Setting) -> int:
    longest = setting.max_length if setting.max_length is not None else found.width
    if longest is None:
        hint = "--max-length 4096: the length that every sequence is padded to"
        raise InputError.expected("a max length beside a list of lengths", None, where="--max-length", hint=hint)
    return longest


def _subject(batch: _Batch) -> str:
    name = batch.found.inputs[0].path if batch.found.inputs else "a batch"
    return f"{name}: {len(batch.kept):,} sequences in {batch.longest:,} token slots each"


def _prefix(layout: Layout) -> str:
    return "gate.padding." + "".join(letter if letter.isalnum() else "_" for letter in layout.name.lower()).strip("_")


def _cut(batch: _Batch) -> list[Loss]:
    """Sequences that do not fit, and those without a token: both stay in the count."""
    over = batch.found.true - batch.kept
    found = []
    if over.any():
        what = f"sequences above {batch.longest:,} tokens, counted as cut: {int(over.sum()):,} tokens lost"
        found.append(Loss(what, int((over > 0).sum())))
    if empty := int((batch.found.true == 0).sum()):
        found.append(Loss("sequences without a token, counted as padding alone", empty))
    return found


def _checks(batch: _Batch) -> tuple[Check, ...]:
    everything = np.arange(len(batch.kept), dtype=np.intp)
    found = [_check(batch, "overall", everything, batch.plan.margin)]
    if batch.found.slices is None:
        return tuple(found)
    rows = rows_of(batch.found.slices)
    found += [_check(batch, name, at, batch.plan.margin_of(name)) for name, at in rows.items()]
    chosen = sorted(lowest_volume({name: len(at) for name, at in rows.items()}))
    at = np.sort(np.concatenate([rows[name] for name in chosen]))
    note = ", ".join(chosen[:4]) + (" and more" if len(chosen) > 4 else "")
    return (*found, replace(_check(batch, LOWEST, at, batch.plan.margin_of(LOWEST)), note=note))


def _check(batch: _Batch, name: str, at: NDArray[np.intp], margin: float) -> Check:
    shares, plan = batch.shares[at], batch.plan
    found = Check(name, METRIC, _interval(shares, plan.alpha), 1 - margin, "%", level=True, counts="sequences")
    distance = abs(found.interval.estimate - found.margin)
    if found.outcome is not Outcome.INCONCLUSIVE or found.interval.degenerate or not distance:
        return found
    more = needed(variance_bound(shares), distance, alpha=plan.alpha, power=plan.power) - len(at)
    return replace(found, needed=max(1, more), basis=BASIS)


def _interval(shares: NDArray[np.float64], alpha: float) -> Interval:
    """Student's t over sequences. Of equal ones, the share that may be of another length bounds the mean."""
    n, first = len(shares), float(shares[0])
    if n > 1 and (shares == first).all():
        _, other = clopper_pearson(0.0, n, alpha)
        ends = first * (1 - float(other)), first + (1 - first) * float(other)
        return Interval(first, *ends, n, alpha, "Clopper-Pearson on sequences of another length")
    found = paired_mean(shares, alpha)
    why = "fewer than two sequences" if found.degenerate else ""
    low, high = max(found.low, 0.0), min(found.high, 1.0)
    return replace(found, low=low, high=high, method="Student's t over sequences", degenerate=why)


def _blocked(batch: _Batch) -> tuple[Check, ...]:
    """What no utilisation makes good: a mask that may be inverted, and slots that are full because texts were cut."""
    found = [blocked("the mask", batch.found.why)] if batch.found.why else []
    cut = 1 - float(batch.kept.sum()) / float(batch.found.true.sum())
    if cut > float(constant("gate.padding.cut").base):
        found.append(blocked("max length", f"{cut:.1%} of the tokens are cut at {batch.longest:,}"))
    return tuple(found)


def _change(laid: tuple[Layout, ...]) -> str:
    slots = {one.name: one.slots for one in laid}
    padded = slots[PADDED]
    words = {BUCKETED: "bucketing by length", PACKED: "packing", VARLEN: "no padding"}
    shares = [f"{word} {slots[name] / padded:.1%}" for name, word in words.items() if name in slots]
    return f"Of the slots as padded the same tokens would take: {', '.join(shares)}."


def _figures(batch: _Batch) -> tuple[Quantity, ...]:
    """Utilisation, and what is left of one: the padding ratio. Sources call either of them the padding ratio."""
    counted = Source(batch.found.said, "true positions, at most the max length of each sequence")
    n = leaf("gate.padding.sequences", len(batch.kept), "1", "measured", counted)
    true = leaf("gate.padding.true_tokens", int(batch.kept.sum()), "token", "measured", counted)
    longest = given("gate.padding.max_length", batch.longest, "token", "--max-length or the batch's width")
    text = "true/(sequences*max_length)"
    use = derive("gate.padding.utilisation", text, "%", true=true, sequences=n, max_length=longest)
    ratio = derive("gate.padding.padding_ratio", "1 - utilisation", "%", utilisation=use)
    return use.titled("Token slots that hold a token"), ratio.titled("Token slots that hold padding")


def _attention(laid: tuple[Layout, ...], works: tuple[Work, ...]) -> tuple[Quantity, ...]:
    """The share of what attention computes between its projections that is on zeros."""
    by_name = {one.name: done for one, done in zip(laid, works, strict=False)}
    if PADDED not in by_name:
        return ()
    padded, useful = by_name[PADDED], by_name[VARLEN]
    core = [term for term in CORE if term in padded.parts]
    if not core:
        return ()
    inputs = {f"useful_{term}": useful.parts[term] for term in core}
    inputs |= {f"padded_{term}": padded.parts[term] for term in core}
    sums = (" + ".join(f"{kind}_{term}" for term in core) for kind in ("useful", "padded"))
    text = "1 - ({})/({})".format(*sums)
    found = derive("gate.padding.attention_on_zeros", text, "%", **inputs)
    return (found.titled("Attention's FLOPs between its projections that multiply zeros"),)


def _tables(batch: _Batch, laid: tuple[Layout, ...], works: tuple[Work, ...]) -> dict[str, Table]:
    tables = {"gate.padding.layouts": _layouts(batch, laid, works)}
    if works:
        tables["gate.padding.layers"] = _layers(works[0], works[-1])
    if batch.setting.batch_size is not None:
        tables["gate.padding.batches"] = _batches(batch)
    if batch.found.left is not None:
        tables["gate.padding.sides"] = _sides(batch.found)
    return tables


_CHARTS = {
    "gate.padding.layouts": ("layout", "useful", "Slots that hold a token, by how the same sequences are laid out"),
    "gate.padding.layers": ("kind", "zeros", "FLOPs on zeros, by kind of layer"),
}


def _layouts(batch: _Batch, laid: tuple[Layout, ...], works: tuple[Work, ...]) -> Table:
    true = int(batch.kept.sum())
    columns = [
        Column("layout", "Layout"), Column("rows", "Rows"), Column("slots", "Slots", "token"),
        Column("useful", "Utilisation", "%", "slots that hold a token"),
    ]  # fmt: skip
    rows = [(one.name, one.rows, one.slots, 100 * true / one.slots) for one in laid]
    if not works:
        return Table("The same sequences in other layouts", tuple(columns), tuple(rows))
    columns += [
        Column("flops", "Forward", "FLOP"),
        Column("saved", "Saved", "%", "of the FLOPs as padded"),
        Column("attention", "Of attention", "%", "of the FLOPs between attention's projections as padded"),
    ]
    first = works[0]
    more = [
        (done.total, 100 * (1 - float(done.total.base) / float(first.total.base)), _less(done.attention, first))
        for done in works
    ]
    note = "Packing and bucketing change which sequences share a step; packing needs positions that restart."
    full = tuple((*row, *extra) for row, extra in zip(rows, more, strict=True))
    return Table("The same sequences in other layouts", tuple(columns), full, note=note)


def _less(attention: float, first: Work) -> float | str:
    return 100 * (1 - attention / first.attention) if first.attention else ""


def _layers(padded: Work, useful: Work) -> Table:
    zeros = on_zeros(padded, useful, "gate.padding.on_zeros")
    columns = (
        Column("kind", "Kind of layer"), Column("flops", "Forward", "FLOP", "as padded"),
        Column("zeros", "On zeros", "%"),
    )  # fmt: skip
    rows = tuple((term.replace("_", " "), padded.parts[term], share) for term, share in zeros.items())
    return Table("FLOPs by kind of layer, and how many are on zeros", columns, rows)


def _batches(batch: _Batch) -> Table:
    size = batch.setting.batch_size
    assert size is not None
    here, bucketed = batches(batch.kept, size), batches(np.sort(batch.kept), size)
    columns = (
        Column("batch", "Batch"), Column("sequences", "Sequences"), Column("longest", "Longest", "token"),
        Column("useful", "Utilisation", "%", "padded to the max length"),
        Column("own", "To its longest", "%", "padded to the longest sequence of the batch"),
        Column("bucketed", "Bucketed", "%", "of the batch of that number after sorting by length, to its longest"),
    )  # fmt: skip
    useful = here.tokens / (here.sequences * batch.longest)
    every = zip(here.sequences, here.longest, useful, here.utilisation, bucketed.utilisation, strict=True)
    rows = [
        (number, int(n), int(most), *(100 * float(share) for share in shares))
        for number, (n, most, *shares) in enumerate(every, 1)
    ]
    note = f"the first {SHOWN:,} of {len(rows):,} batches" if len(rows) > SHOWN else ""
    return Table("Batches in the file's order", columns, tuple(rows[:SHOWN]), note=note)


def _sides(found: Lengths) -> Table:
    assert found.left is not None
    assert found.right is not None
    left, right = found.left > 0, found.right > 0
    rows = (
        ("left", int((left & ~right).sum())), ("right", int((right & ~left).sum())),
        ("both", int((left & right).sum())), ("none", int((~left & ~right).sum())),
    )  # fmt: skip
    return Table("Where the padding is", (Column("side", "Side"), Column("sequences", "Sequences")), rows)


def _sections(batch: _Batch, tables: dict[str, Table]) -> tuple[Section, ...]:
    both = (
        "{gate.padding.utilisation} of the slots hold a token: the utilisation. The other {gate.padding.padding_ratio} "
        "are the padding ratio. Sources use *padding ratio* for either, so compare like with like."
    )
    found = [Section("Utilisation and padding ratio", (both,))]
    if "gate.padding.layers" in tables:
        said = "Projections, MLP and experts grow with slots, attention scores with pairs of them: those waste more."
        attention = "Of what attention computes between its projections, {gate.padding.attention_on_zeros} is on zeros."
        has_core = any(row[0] == "attention scores" for row in tables["gate.padding.layers"].rows)
        shown = ("gate.padding.layers.chart", "gate.padding.layers")
        found.append(Section("What multiplies zeros", (said, *([attention] if has_core else [])), shown))
    shown = ("gate.padding.layouts.chart", "gate.padding.layouts")
    found.append(Section("What would recover it", (_RECOVER,), shown))
    if "gate.padding.batches" in tables:
        found.append(Section("Batch by batch", (), ("gate.padding.batches",)))
    if batch.found.left is not None:
        found.append(Section("Which side is padded", _side_words(batch.found), ("gate.padding.sides",)))
    return tuple(found)


_RECOVER = (
    "Kernels that take sequence borders (varlen) compute no padding. Packing fills rows of the max length; where its "
    "mask hides other sequences but the kernel still computes their scores, attention saves less. Bucketing by length "
    "keeps plain kernels, and draws batches that are no longer uniform in length."
)


def _side_words(found: Lengths) -> tuple[str, ...]:
    assert found.left is not None
    assert found.right is not None
    left, both_ways = int((found.left > 0).sum()), bool((found.left > 0).any() and (found.right > 0).any())
    words = []
    if left:
        words.append(
            f"{left:,} sequences are padded on the left: their positions must count from the first token. Counted from "
            "the row's start, every position is off by the padding, and the sequence has a gap before it."
        )
    if both_ways:
        words.append("Both sides occur in one batch: what takes the last position for the last token reads padding.")
    if found.holes is not None and found.holes.any():
        words.append("The mask leaves out positions between tokens: positions counted over the row have gaps there.")
    if found.inside is not None and found.inside.any():
        words.append("The pad id also stands between tokens. It was counted as a token there; a mask would say.")
    return tuple(words) or ("Padding is on the right: positions counted from the row's start are right.",)
