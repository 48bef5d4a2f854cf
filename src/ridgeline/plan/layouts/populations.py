"""A job of two populations on one fabric: sharded embedding tables, and a dense trunk beside them.

A recommender's tables (`sparse`) hold trillions of rows, of which a sample reads a few: their cost is memory, random
reads and all-to-all. The trunk is a transformer over the user's history: its cost is matmuls. The trunk has its own
search: sharded fully or in part, over all chips or over those of a domain with copies between (two-dimensional FSDP),
its experts spread over neighbours. Both populations share every chip, or have chips of their own; against them stand
strategies that treat tables and trunk alike.
"""

from dataclasses import dataclass, replace

import numpy as np

from ridgeline.arithmetic.shape import model
from ridgeline.core.errors import InfeasibleError
from ridgeline.core.quantity import Quantity, derive, given, leaf
from ridgeline.plan.layouts.search import Found, Request, explore, spelled
from ridgeline.plan.layouts.space import Space
from ridgeline.plan.layouts.sparse import Facts, Sparse, Split, Study, sparse_of, splits
from ridgeline.plan.steps.expected import fitted
from ridgeline.plan.steps.machine import Software

_APART = (0.125, 0.25, 0.5)  # shares of the chips that tables may have to themselves


@dataclass(frozen=True)
class Strategy:
    """One way to run the job. ``step`` None: it does not run, and ``binding`` says why.

    ``held`` (B) is what the fullest chip holds, trunk included. Parts of ``step`` (s): ``sparse``, ``trunk``,
    ``exchange``.
    """

    name: str
    how: str
    held: Quantity
    sparse: Quantity | None = None
    trunk: Quantity | None = None
    exchange: Quantity | None = None
    step: Quantity | None = None
    binding: str = ""
    tables: Sparse | None = None


@dataclass(frozen=True)
class Populations:
    """Every strategy of a study: two populations together and apart, then the uniform ones."""

    study: Study
    bytes: Quantity
    strategies: tuple[Strategy, ...]

    @property
    def best(self) -> Strategy:
        """The fastest. Raises `InfeasibleError` where none runs."""
        running = [item for item in self.strategies if item.step is not None]
        if not running:
            nearest = min(self.strategies, key=lambda item: float(item.held.base))
            text = f"Expected a strategy that fits {self.study.chips}, got none, at the study"
            raise InfeasibleError(text, limit=nearest.binding, nearest=f"{nearest.name}, {nearest.how}")
        return min(running, key=lambda item: float(item.step.base) if item.step else np.inf)


def populations(study: Study) -> Populations:
    """Every strategy. Raises `InputError` for sizes that do not fit together or an unknown device or network."""
    facts = Facts.of(study)
    found = (
        _together(facts, "recommender.together", "two populations, together", _ANY),
        _together(facts, "recommender.fsdp2d", "two populations, trunk fully sharded", _SHARDED),
        _apart(facts),
        _all_sharded(facts),
        _all_rows(facts),
        _whole_tables(facts),
    )
    return Populations(study, facts.total, tuple(item for item in found if item is not None))


def _trunk(facts: Facts, chips: int, reserved_bytes: float, space: Space) -> Found | None:
    """The best plan of the trunk on that many chips, beside what is reserved; None where none fits."""
    study = facts.study
    machine = study.cluster
    if chips != machine.chips:
        machine = replace(machine, chips=chips)
    spec, software = model(study.trunk), Software(framework="fsdp")
    constants = fitted(spec, machine, software)
    batch = (study.samples, study.history)
    return explore(Request(spec, machine, batch, software, space, constants, reserved_bytes))[0]


_ANY = Space(most_micro_batch=256, fixed={"pp": 1, "cp": 1})
_SHARDED = replace(_ANY, zero=(3,))
_FLAT = Space(most_micro_batch=256, zero=(3,), fixed={"pp": 1, "cp": 1, "tp": 1, "ep": 1})


def _trunk_step(name: str, found: Found) -> Quantity:
    note = f"step model on measured kernels: {spelled(found.layouts.row(0))}"
    return leaf(name, float(found.steps.step_s[0]), "s", "assumed", note=note).titled("Step of the trunk", note)


def _held(name: str, tables: Quantity, trunk_bytes: float) -> Quantity:
    trunk = leaf(f"{name}.trunk_held", trunk_bytes, "B", "assumed", note="closed forms of the plan's memory")
    return derive(f"{name}.all_held", "tables + trunk", "B", tables=tables, trunk=trunk)


def _together(facts: Facts, name: str, title: str, space: Space) -> Strategy | None:
    """Both on every chip: rows are read and exchanged, the trunk runs; ids travel under the trunk of the last step."""
    chips = facts.study.cluster.chips
    best: tuple[float, Sparse, Found] | None = None
    leanest: Sparse | None = None
    for split in splits(facts, chips):
        sparse = sparse_of(facts, split, name)
        if leanest is None or float(sparse.held.base) < float(leanest.held.base):
            leanest = sparse
        if float(sparse.held.base) >= facts.memory_bytes:
            continue
        found = _trunk(facts, chips, float(sparse.held.base), space)
        if found is None:
            continue
        total_s = float(sparse.lookup.base) + float(sparse.exchange.base) + float(found.steps.step_s[0])
        if best is None or total_s < best[0]:
            best = (total_s, sparse, found)
    if leanest is None:
        return None
    if best is None:
        return Strategy(title, str(leanest.split), leanest.held, binding="memory of a chip")
    _, sparse, found = best
    trunk = _trunk_step(f"{name}.trunk", found)
    parts = {"ids": sparse.ids, "exchange": sparse.exchange, "trunk": trunk}
    shown = derive(f"{name}.exposed", "exchange - min(ids, trunk)", "s", **parts)
    step = derive(f"{name}.step", "lookup + exposed + trunk", "s", lookup=sparse.lookup, exposed=shown, trunk=trunk)
    how = f"{sparse.split}; trunk {spelled(found.layouts.row(0))}"
    held = _held(name, sparse.held, float(found.held_bytes[0]))
    return Strategy(title, how, held, sparse.lookup, trunk, shown, step, "", sparse)


def _apart(facts: Facts) -> Strategy | None:
    """Chips of their own for the tables: the slower population, and the exchange between the two."""
    name, node = "recommender.apart", facts.study.cluster.node_size
    best: Strategy | None = None
    for share in _APART:
        chips = round(facts.study.cluster.chips * share / node) * node
        others = facts.study.cluster.chips - chips
        if chips < node or others < node or others % node:
            continue
        for split in splits(facts, chips):
            sparse = sparse_of(facts, split, name)
            found = None
            if float(sparse.held.base) < facts.memory_bytes:
                found = _trunk(facts, others, 0.0, _ANY)
            item = _apart_of(facts, name, sparse, found, others)
            if best is None or _rank(item) < _rank(best):
                best = item
    return best


def _rank(item: Strategy) -> tuple[bool, float]:
    """Those that run first, the fastest first; of the others the leanest."""
    return (item.step is None, float(item.step.base if item.step is not None else item.held.base))


def _apart_of(facts: Facts, name: str, sparse: Sparse, found: Found | None, others: int) -> Strategy:
    how = f"{sparse.split.chips} chips: {sparse.split}; {others} chips for the trunk"
    if found is None:
        return Strategy("two populations, apart", how, sparse.held, binding="memory of the tables' chips")
    trunk = _trunk_step(f"{name}.trunk", found)
    inside = {"lookup": sparse.lookup, "partial": sparse.partial, "touched": sparse.touched}
    busy = derive(f"{name}.sparse", "lookup + 2*partial + touched", "s", **inside)
    ends = given(f"{name}.ends", float(min(sparse.split.chips, others)), "1")
    volume = derive(f"{name}.between", "samples*tables*(2*dim*act + lookups*id)/ends", "B/chip",
                    **facts.pick("samples", "tables", "dim", "act", "lookups", "id"), ends=ends)  # fmt: skip
    between = derive(f"{name}.exchange_between", "between/port", "s", between=volume, port=facts.port)
    step = derive(f"{name}.step", "max(sparse, trunk) + between", "s", sparse=busy, trunk=trunk, between=between)
    how += f": {spelled(found.layouts.row(0))}"
    return Strategy("two populations, apart", how, sparse.held, busy, trunk, between, step, "", sparse)


def _all_sharded(facts: Facts) -> Strategy:
    """One strategy for everything: fully sharded, every table gathered twice and its gradients scattered."""
    name, machine = "recommender.fsdp", facts.study.cluster
    chips = given(f"{name}.chips", float(machine.chips), "1")
    node = given(f"{name}.node", float(machine.node_size), "1")
    shard = derive(f"{name}.held", "total/chips + largest", "B", total=facts.total, chips=chips, largest=facts.largest)
    moved = derive(f"{name}.moved", "3*total/node", "B/chip", total=facts.total, node=node)
    gather = derive(f"{name}.gather", "moved/port", "s", moved=moved, port=facts.port)
    found = _trunk(facts, machine.chips, 0.0, _FLAT)
    how = "every table gathered before use, its dense gradient scattered"
    if found is None:
        return Strategy("uniform: everything FSDP", how, shard, binding="memory of the trunk")
    trunk = _trunk_step(f"{name}.trunk", found)
    held = _held(name, shard, float(found.held_bytes[0]))
    step = derive(f"{name}.step", "gather + trunk", "s", gather=gather, trunk=trunk)
    if float(held.base) > facts.memory_bytes:
        why = f"memory: the largest table is whole while it is used; its step would take {float(step.base):,.0f} s"
        return Strategy("uniform: everything FSDP", how, held, binding=why)
    return Strategy("uniform: everything FSDP", how, held, None, trunk, gather, step)


def _all_rows(facts: Facts) -> Strategy:
    """One strategy for everything: every table, and every weight of the trunk, in one flat group of all chips."""
    name, chips = "recommender.rows", facts.study.cluster.chips
    sparse = sparse_of(facts, Split(chips, 1, chips, 1), name)
    return _with_flat_trunk(facts, name, "uniform: everything over all chips", sparse)


def _whole_tables(facts: Facts) -> Strategy:
    """Whole tables on single chips, the trunk in one flat group."""
    name, study = "recommender.whole", facts.study
    groups = min(study.tables.tables, study.cluster.chips)
    sparse = sparse_of(facts, Split(study.cluster.chips, groups, 1, 1), name)
    return _with_flat_trunk(facts, name, "uniform: whole tables on chips", sparse)


def _with_flat_trunk(facts: Facts, name: str, title: str, sparse: Sparse) -> Strategy:
    how = f"{sparse.split}; trunk ZeRO-3 over all chips"
    if float(sparse.held.base) >= facts.memory_bytes:
        return Strategy(title, how, sparse.held, binding="memory: the largest table, or all of them, over the chips")
    found = _trunk(facts, sparse.split.chips, float(sparse.held.base), _FLAT)
    if found is None:
        return Strategy(title, how, sparse.held, binding="memory: the trunk beside the tables")
    trunk = _trunk_step(f"{name}.trunk", found)
    times = {"lookup": sparse.lookup, "exchange": sparse.exchange, "trunk": trunk}
    step = derive(f"{name}.step", "lookup + exchange + trunk", "s", **times)
    held = _held(name, sparse.held, float(found.held_bytes[0]))
    return Strategy(title, how, held, sparse.lookup, trunk, sparse.exchange, step, "", sparse)
