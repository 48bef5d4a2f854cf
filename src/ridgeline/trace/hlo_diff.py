"""Two compilations of one step compared: what was fused, split, rematerialized, added or removed.

Instruction names change from one compilation to the next, so work is matched by what the framework called it: the
``op_name`` of the metadata, without the compiler's numbering, and the opcode.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise

from ridgeline.arithmetic.hlo import HloModule, Instruction
from ridgeline.arithmetic.hlo_collectives import collectives
from ridgeline.arithmetic.hlo_cost import totals

Key = tuple[str, str]  # op_name, opcode
_SILENT = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion", "copy-start", "copy-done",
           "async-start", "async-done", "call", "while", "broadcast", "iota"}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One piece of work: its ``op_name`` and opcode, and how often it stands in each module."""

    op_name: str
    opcode: str
    before: int
    after: int


@dataclass(frozen=True)
class Difference:
    """What the second compilation does differently.

    ``fused`` pairs of operations share a fusion only after, ``split`` ones only before; ``rematted`` work is
    recomputed only after, ``kept`` only before; ``collectives`` by kind, shape and groups; FLOPs per call.
    """

    added: tuple[Change, ...]
    removed: tuple[Change, ...]
    fused: tuple[tuple[str, str], ...]
    split: tuple[tuple[str, str], ...]
    rematted: tuple[Change, ...]
    kept: tuple[Change, ...]
    collectives: tuple[Change, ...]
    fusions: tuple[int, int]
    flops: tuple[int, int]
    recomputed_flops: tuple[int, int]


def difference(before: HloModule, after: HloModule) -> Difference:
    """Compare two modules. Neither has to be scheduled; identical ones give an empty difference."""
    work = _changes(_work(before), _work(after))
    again = _changes(_remat(before), _remat(after))
    old, new = _pairs(before), _pairs(after)
    known = {op for op, _ in _work(before)} & {op for op, _ in _work(after)}
    first, second = totals(before), totals(after)
    return Difference(
        added=tuple(c for c in work if c.after > c.before),
        removed=tuple(c for c in work if c.after < c.before),
        fused=_common(new - old, known),
        split=_common(old - new, known),
        rematted=tuple(c for c in again if c.after > c.before),
        kept=tuple(c for c in again if c.after < c.before),
        collectives=tuple(_changes(_collectives(before), _collectives(after))),
        fusions=(_fusions(before), _fusions(after)),
        flops=(first.flops, second.flops),
        recomputed_flops=(first.recomputed_flops, second.recomputed_flops),
    )


def _key(item: Instruction) -> Key:
    return item.op_name.replace("/rematted_computation", ""), item.opcode


def _work(module: HloModule) -> Counter[Key]:
    return Counter(_key(item) for item in module if item.op_name and item.opcode not in _SILENT)


def _remat(module: HloModule) -> Counter[Key]:
    return Counter(_key(item) for item in module if item.rematted and item.opcode not in _SILENT)


def _collectives(module: HloModule) -> Counter[Key]:
    return Counter(
        (f"{c.kind} {', '.join(map(str, c.instruction.shapes))} {c.groups}".strip(), c.instruction.opcode)
        for c in collectives(module)
    )


def _fusions(module: HloModule) -> int:
    return sum(item.opcode == "fusion" for item in module)


def _changes(before: Counter[Key], after: Counter[Key]) -> list[Change]:
    different = (key for key in before.keys() | after.keys() if before[key] != after[key])
    return [Change(*key, before[key], after[key]) for key in sorted(different)]


def _pairs(module: HloModule) -> set[tuple[str, str]]:
    """Pairs of operations that stand in one fusion. A neighbourhood along the text keeps large fusions linear."""
    bodies = {name for item in module if item.opcode == "fusion" for name in item.called}
    found: set[tuple[str, str]] = set()
    for name in bodies & module.computations.keys():
        inside = sorted({i.op_name for i in module.computations[name].instructions
                         if i.op_name and i.opcode not in _SILENT})  # fmt: skip
        near = combinations(inside, 2) if len(inside) <= 12 else pairwise(inside)
        found |= set(near)
    return found


def _common(pairs: Iterable[tuple[str, str]], known: set[str]) -> tuple[tuple[str, str], ...]:
    """Pairs whose work is in both modules: anything else was added or removed, not fused or split."""
    return tuple(sorted(pair for pair in pairs if set(pair) <= known))
