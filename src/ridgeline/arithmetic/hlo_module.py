"""An HLO module as data: computations of instructions, with their shapes, attributes and how often they run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from ridgeline.core.lost import Loss

_BITS = re.compile(r"\d+")
_TRIP = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d{1,18})"?')
_WORD = re.compile(r'\b(\w{1,60})="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Shape:
    """One array: the element type as HLO names it and its dimensions."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many numbers."""
        return prod(self.dims)

    @property
    def bits(self) -> int:
        """Bits of one element, from the type's name; a ``pred`` takes a byte, a ``token`` nothing."""
        if self.dtype == "pred":
            return 8
        found = _BITS.search(self.dtype)
        return int(found.group()) if found else 0

    @property
    def size_bytes(self) -> int:
        """Bytes of the array without padding."""
        return (self.elements * self.bits + 7) // 8

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


@dataclass(frozen=True)
class Instruction:
    """One line. ``shapes`` is flat for a tuple; ``operands`` are names; ``attributes`` are raw texts by key.

    ``index`` is the place in its computation: the order of execution where the module is scheduled.
    """

    name: str
    opcode: str
    shapes: tuple[Shape, ...]
    operands: tuple[str, ...]
    attributes: Mapping[str, str]
    computation: str
    index: int
    root: bool = False
    literal: str = ""

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        """``op_name``, ``op_type``, ``source_file`` and the like, where the dump has them."""
        return dict(_WORD.findall(self.attributes.get("metadata", "")))

    @property
    def op_name(self) -> str:
        """The framework's path of the operation, such as ``jit(step)/jvp()/dot_general``."""
        return self.metadata.get("op_name", "")

    @property
    def size_bytes(self) -> int:
        """Bytes of the result; of all parts for a tuple."""
        return sum(shape.size_bytes for shape in self.shapes)

    @property
    def target(self) -> str:
        """The ``custom_call_target``, empty for anything else."""
        return self.attributes.get("custom_call_target", "").strip('"')

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the computations it calls: fusion, body and condition, branches, reducers."""
        names: list[str] = []
        for key in ("calls", "body", "condition", "to_apply", "called_computations", "branch_computations",
                    "true_computation", "false_computation"):  # fmt: skip
            names += [item.strip().lstrip("%") for item in self.attributes.get(key, "").strip("{}").split(",") if item]
        return tuple(names)

    @property
    def rematted(self) -> bool:
        """Recomputed forward work: by the framework (``rematted_computation``) or by the compiler (``.remat``)."""
        return "rematted_computation" in self.op_name or ".remat" in self.name

    @property
    def trip_count(self) -> int | None:
        """How often a ``while`` runs, where the compiler wrote it down."""
        found = _TRIP.search(self.attributes.get("backend_config", ""))
        return int(found.group(1)) if found else None


@dataclass(frozen=True)
class Computation:
    """Instructions in the order of the text."""

    name: str
    instructions: tuple[Instruction, ...]
    entry: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Instruction]:
        """The instructions by name."""
        return {item.name: item for item in self.instructions}

    @property
    def root(self) -> Instruction | None:
        """The result; the last line where none is marked."""
        marked = [item for item in self.instructions if item.root]
        return marked[-1] if marked else (self.instructions[-1] if self.instructions else None)

    @cached_property
    def users(self) -> Mapping[str, tuple[Instruction, ...]]:
        """Who reads each instruction."""
        found: dict[str, list[Instruction]] = {}
        for item in self.instructions:
            for name in dict.fromkeys(item.operands):
                found.setdefault(name, []).append(item)
        return {name: tuple(items) for name, items in found.items()}


@dataclass(frozen=True)
class HloModule:
    """A module. ``scheduled`` says whether the order of instructions is the order of execution."""

    name: str
    computations: Mapping[str, Computation]
    attributes: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    lost: tuple[Loss, ...] = ()

    @property
    def scheduled(self) -> bool:
        """Whether the text says ``is_scheduled=true``."""
        return self.attributes.get("is_scheduled") == "true"

    @property
    def partitions(self) -> int:
        """Devices that one program is split over; 1 where the header does not say."""
        text = self.attributes.get("num_partitions", "1")
        return int(text) if text.isdecimal() and len(text) < 10 else 1

    @property
    def entry(self) -> Computation | None:
        """The entry computation; None where the dump was cut before it."""
        return next((item for item in self.computations.values() if item.entry), None)

    def __iter__(self) -> Iterator[Instruction]:
        for item in self.computations.values():
            yield from item.instructions

    @cached_property
    def runs(self) -> Mapping[str, int]:
        """How often each computation runs in one call of the module: trip counts multiplied along the calls.

        A loop without a known count runs once. What nobody calls (the entry, or any computation of a cut dump)
        runs once.
        """
        return _runs(self)


def _runs(module: HloModule) -> dict[str, int]:
    """Multiplicities in the order of calls, callers first; a recursion (impossible in HLO) ends the walk."""
    calls: dict[str, list[tuple[str, int]]] = {name: [] for name in module.computations}
    waiting = dict.fromkeys(module.computations, 0)
    for item in module:
        times = _trips(module, item) if item.opcode == "while" else 1
        for callee in item.called:
            if callee in waiting:
                calls[item.computation].append((callee, times))
                waiting[callee] += 1
    total = {name: int(not count) for name, count in waiting.items()}
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        caller = ready.pop()
        for callee, times in calls[caller]:
            total[callee] += total[caller] * times
            waiting[callee] -= 1
            if not waiting[callee]:
                ready.append(callee)
    return total


def _trips(module: HloModule, loop: Instruction) -> int:
    """The trip count: written down, or the one constant that the condition compares the counter with."""
    if loop.trip_count is not None:
        return loop.trip_count
    condition = module.computations.get(loop.attributes.get("condition", "").lstrip("%"))
    if condition is None:
        return 1
    limits = [item.literal for item in condition.instructions if item.opcode == "constant"]
    return int(limits[0]) if len(limits) == 1 and limits[0].isdecimal() and len(limits[0]) <= 9 else 1
