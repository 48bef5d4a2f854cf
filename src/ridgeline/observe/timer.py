"""The timer. A phase is two clock reads and an addition; the file is written once every ``flush_every`` steps.

Host time only: on an accelerator a phase ends when its work is *launched*. Put a phase around what blocks (the
input, a synchronisation, a checkpoint), or give ``sync`` a function that waits, at the price of the overlap.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, TypeVar

T = TypeVar("T")
NS_PER_S = 10**9


class Phase:
    """One named part of a step; enter and leave it as often as needed. Made by `StepTimer.phase`, then reused."""

    __slots__ = ("_clock", "_start", "name", "total_ns")

    def __init__(self, name: str, clock: Callable[[], int]) -> None:
        self.name = name
        self.total_ns = 0
        self._start = 0
        self._clock = clock

    def __enter__(self) -> Self:
        self._start = self._clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.total_ns += self._clock() - self._start


class StepTimer:
    """Times steps and their phases and appends them to a JSONL file.

    ``flops_per_step`` (FLOP, model FLOPs of the whole job in a convention of your choice) over ``peak_flops``
    (FLOP/s of all its chips) gives ``mfu`` beside the loss. ``rank`` is written once, in the header; a ``path`` of
    None times without writing. ``sync`` is called before the clock is read at the end of a step.
    A file that cannot be written stops nothing: the timer counts what it lost in ``lost`` and goes on.
    """

    def __init__(
        self,
        path: str | Path | None,
        *,
        flops_per_step: float | None = None,
        peak_flops: float | None = None,
        rank: int | None = None,
        flush_every: int = 20,
        sync: Callable[[], object] | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        if (flops_per_step is None) != (peak_flops is None):
            raise ValueError("Expected flops_per_step and peak_flops together, got one of them")
        if peak_flops is not None and peak_flops <= 0:
            raise ValueError(f"Expected peak_flops above zero, got {peak_flops!r}")
        self.path = None if path is None else Path(path)
        self.lost = 0
        self.steps = 0
        self._ideal_ns: float | None = None
        if flops_per_step is not None and peak_flops is not None:
            self._ideal_ns = flops_per_step / peak_flops * NS_PER_S
        self._flush_every, self._sync, self._clock = max(1, flush_every), sync, clock
        self._phases: dict[str, Phase] = {}
        self._rows: list[dict[str, object]] = [{"rank": rank, "format": 1}] if rank is not None else []
        self._file: TextIO | None = None
        self._last_ns = clock()

    def phase(self, name: str) -> Phase:
        """The phase of that name; keep it outside the loop to save the look-up."""
        found = self._phases.get(name)
        if found is None:
            found = self._phases[name] = Phase(name, self._clock)
        return found

    def step(self, **values: object) -> float:
        """End a step: its time since the last one, the phases, and the values given (loss, tokens, ...).

        Returns the step time in seconds. A value that is no number is converted by ``float`` when the lines are
        written, so that a loss on an accelerator is not waited for at every step; what cannot be is left out.
        """
        if self._sync is not None:
            self._sync()
        now = self._clock()
        taken_ns, self._last_ns = now - self._last_ns, now
        row: dict[str, object] = {"step": self.steps, "t": time.time(), "step_s": taken_ns / NS_PER_S}
        if self._ideal_ns is not None and taken_ns > 0:
            row["mfu"] = self._ideal_ns / taken_ns
        row["phases"] = {phase.name: phase.total_ns / NS_PER_S for phase in self._phases.values() if phase.total_ns}
        for phase in self._phases.values():
            phase.total_ns = 0
        row.update((name, value) for name, value in values.items() if name not in row)
        self.steps += 1
        self._rows.append(row)
        if len(self._rows) >= self._flush_every:
            self.flush()
        return taken_ns / NS_PER_S

    def event(self, name: str) -> None:
        """Mark the current step: a checkpoint, an evaluation, a restart."""
        self._rows.append({"event": name, "step": self.steps})

    def flush(self) -> None:
        """Write what is waiting. Never raises: a full disk must not stop a training run."""
        waiting, self._rows = self._rows, []
        if not waiting or self.path is None:
            return
        lines = [json.dumps(_plain(row)) for row in waiting]
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("a", encoding="utf-8")
            self._file.write("\n".join(lines) + "\n")
            self._file.flush()
        except OSError:
            self.lost += len(waiting)

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def timed(items: Iterable[T], phase: Phase) -> Iterator[T]:
    """Iterate with the waiting for each item counted in a phase: the input time of a data loader."""
    iterator = iter(items)
    while True:
        with phase:
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


def _plain(row: dict[str, object]) -> dict[str, object]:
    """The row with every value as JSON has it."""
    kept = {name: value if isinstance(value, dict | str | int) else _number(value) for name, value in row.items()}
    return {name: value for name, value in kept.items() if value is not None}


def _number(value: object) -> float | None:
    """A plain finite number; tensors and arrays of one element are asked for theirs."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if number - number == 0 else None  # NaN and infinities are not JSON


def rank_from_environment() -> int | None:
    """The rank that the launcher put into the environment, or None."""
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None
