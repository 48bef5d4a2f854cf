"""The exact schedule of chunks through the stages of a layer pipeline, event by event.

A stage computes its chunks in order, one at a time; the link behind it carries one chunk at a time. A chunk starts on
the next stage when all of it has arrived. ``streamed``: a transfer goes out while the chunk is being computed (layer by
layer, or in pieces) and ends no earlier than the compute does; else it starts when the compute has ended. The last
stage hands its result over too, as a prefill does with its cache. For equal stages and chunks the streamed schedule
takes what `ridgeline.arithmetic.latency.pipelined_prefill` says.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.core.case import Column, Table
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, leaf

Floats = NDArray[np.float64]
COMPUTE, TRANSFER = "compute", "communication"  # the report's names of activities


@dataclass(frozen=True)
class Schedule:
    """Starts and ends (s) of every chunk's compute and transfer, arrays of [stage, chunk].

    A streamed transfer holds its link from the start of the compute that makes it; ``moving_s`` of that it moves bytes.
    """

    compute_start_s: Floats
    compute_end_s: Floats
    link_start_s: Floats
    link_end_s: Floats
    moving_s: Floats

    @property
    def makespan_s(self) -> float:
        """When the last chunk has left the last stage."""
        return float(max(self.link_end_s.max(), self.compute_end_s.max()))

    @property
    def busy(self) -> float:
        """The share of the stages' time that computes; the rest is the bubble and waiting."""
        return float((self.compute_end_s - self.compute_start_s).sum() / (self.makespan_s * len(self.compute_start_s)))

    def quantity(self, name: str) -> Quantity:
        """The makespan as a quantity (s)."""
        return leaf(name, self.makespan_s, "s", "measured", Source("the exact schedule", "serve/levers/schedule.py"))

    def table(self, title: str) -> Table:
        """A row for every bar of a timeline: stage, what, chunk, from and to (s); a transfer stands where it ends."""
        columns = (
            Column("lane", "Stage"),
            Column("what", "What"),
            Column("chunk", "Chunk"),
            Column("start", "From", "s"),
            Column("end", "To", "s"),
        )
        rows: list[tuple[object, ...]] = []
        for stage, chunk in np.ndindex(self.compute_start_s.shape):
            for name, what, starts, ends in (
                (f"stage {stage + 1}", COMPUTE, self.compute_start_s, self.compute_end_s),
                (f"link {stage + 1}", TRANSFER, self.link_end_s - self.moving_s, self.link_end_s),
            ):
                rows.append((name, what, chunk + 1, float(starts[stage, chunk]), float(ends[stage, chunk])))
        return Table(title, columns, tuple(sorted(rows, key=lambda row: (str(row[0]).split()[1], str(row[0]) < "m"))))


def run(compute_s: ArrayLike, transfer_s: ArrayLike, *, streamed: bool = True) -> Schedule:
    """The schedule of ``compute_s`` [stage, chunk]; ``transfer_s`` broadcasts to that shape.

    Raises `InputError` for a table without stages or chunks, or a time that is negative or not finite.
    """
    compute = np.asarray(compute_s, dtype=np.float64)
    if compute.ndim != 2 or 0 in compute.shape:
        raise InputError.expected("a table of stages and chunks", f"shape {compute.shape}", where="compute_s")
    transfer = np.broadcast_to(np.asarray(transfer_s, dtype=np.float64), compute.shape)
    for name, values in (("compute_s", compute), ("transfer_s", transfer)):
        if not np.all(np.isfinite(values) & (values >= 0)):
            raise InputError.expected("seconds of zero or more", float(np.min(values)), where=name)
    start, end, leave, arrive = (np.zeros(compute.shape) for _ in range(4))
    for stage, chunk in np.ndindex(compute.shape):
        there = arrive[stage - 1, chunk] if stage else 0.0
        free = end[stage, chunk - 1] if chunk else 0.0
        begin = start[stage, chunk] = max(there, free)
        done = end[stage, chunk] = begin + compute[stage, chunk]
        link_free = arrive[stage, chunk - 1] if chunk else 0.0
        leave[stage, chunk] = max(begin if streamed else done, link_free)
        arrive[stage, chunk] = max(leave[stage, chunk] + transfer[stage, chunk], done)
    return Schedule(start, end, leave, arrive, np.array(transfer))
