"""The prediction beside the compiled program, line by line, and why a line differs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ridgeline.plan.verify import predict
from ridgeline.plan.verify.compiled import GROUP_OF, Amount, Key, Program
from ridgeline.plan.verify.predict import Named

_NOTHING = Amount(0.0, 0.0)


@dataclass(frozen=True)
class Line:
    """One term: what the plan says, what the compiler counts otherwise and why, and what the program holds.

    ``amount`` is bytes of a collective or FLOPs; FLOPs have a count of 0.
    """

    key: Key
    planned: Amount
    named: tuple[Named, ...]
    compiled: Amount
    seen: str = ""  # what the rest of the program says of this line, where it differs

    @property
    def expected(self) -> Amount:
        """The plan's number with what was named."""
        count = self.planned.count + sum(item.count for item in self.named)
        return Amount(count, self.planned.bytes + sum(item.amount for item in self.named))

    @property
    def counts_agree(self) -> bool:
        """Whether the program holds exactly as many."""
        return self.expected.count == self.compiled.count

    @property
    def deviation(self) -> float:
        """Difference over the expected amount; 1 where one side has none."""
        expected, found = self.expected.bytes, self.compiled.bytes
        if not expected or not found:
            return float(expected != found)
        return abs(found - expected) / expected


@dataclass(frozen=True)
class Comparison:
    """One twin: lines of collectives, of FLOPs, and bytes of buffers by name as (planned, compiled)."""

    program: Program
    collectives: tuple[Line, ...]
    flops: tuple[Line, ...]
    memory: dict[str, float]

    @cached_property
    def different(self) -> tuple[Line, ...]:
        """Lines of collectives whose count differs."""
        return tuple(line for line in self.collectives if not line.counts_agree)

    @property
    def temporary_bytes(self) -> float:
        """The parts of the plan that the compiler puts into temporary buffers."""
        return sum(value for name, value in self.memory.items() if name != "arguments")


def worst(lines: Iterable[Line]) -> float:
    """The largest deviation."""
    return max((line.deviation for line in lines), default=0.0)


def total(lines: Iterable[Line]) -> tuple[float, float, float]:
    """Planned, named and compiled amounts, added up."""
    every = list(lines)
    planned = sum(line.planned.bytes for line in every)
    return planned, sum(line.expected.bytes for line in every) - planned, sum(line.compiled.bytes for line in every)


def compare(program: Program) -> Comparison:
    """Every term of the plan, and every one that only the program has."""
    twin = program.twin
    planned, named, found = predict.traffic(twin), predict.named_traffic(twin), program.collectives(tuple(GROUP_OF))
    keys = list(dict.fromkeys([*planned, *found]))
    lines = []
    for key in keys:
        seen = _seen(program, key, keys, planned)
        amounts = (planned.get(key, _NOTHING), tuple(named.get(key, ())), found.get(key, _NOTHING))
        lines.append(Line(key, *amounts, seen))
    return Comparison(program, tuple(lines), _flop_lines(program), predict.memory(twin))


def _seen(program: Program, key: Key, keys: Sequence[Key], planned: dict[Key, Amount]) -> str:
    """What speaks for a reason: merged instructions, another kind of the same term, other ranks."""
    if key not in planned:
        return "not in the plan: the compiler added it" if key.term == "unnamed" else "not in the plan"
    others = [item for item in keys if item.term == key.term and item not in planned]
    if others:
        return f"in the program as {others[0].kind} over {others[0].group}"
    return f"{program.merged} instructions hold several collectives" if program.merged else ""


def _flop_lines(program: Program) -> tuple[Line, ...]:
    planned, named, found = predict.flops(program.twin), predict.named_flops(program.twin), program.flops()
    return tuple(
        Line(
            Key(term, "", ""),
            Amount(0.0, planned.get(term, 0.0)),
            tuple(named.get(term, ())),
            Amount(0.0, float(found.get(term, 0))),
        )
        for term in dict.fromkeys([*planned, *found])
    )
