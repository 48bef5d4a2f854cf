"""Small traces of operators with shapes: each launches kernels, as a training step does."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.trace.synthetic import Table

from ridgeline.trace.events import NONE, Category, Events, Kind

Shapes = Sequence[Sequence[int]]


def shaped(shapes: Shapes, dtype: str = "c10::BFloat16", concrete: Sequence[str] = ()) -> dict[str, Any]:
    """What the profiler records of an operator."""
    n = len(shapes)
    texts = (*concrete, *[""] * n)[:n]
    return {"shapes": tuple(map(tuple, shapes)), "dtypes": (dtype,) * n, "concrete": texts}


class Step:
    """A host that calls operators one after another and a device that runs their kernels back to back."""

    def __init__(self) -> None:
        self.table = Table()
        self.host = 0
        self.device = 1_000

    def open(self, name: str, length: int, thread: int = 1) -> None:
        """A range around the calls that follow, up to ``length`` ns."""
        self.table.host(name, self.host, length, thread=thread)

    def call(
        self, name: str, kernels: Mapping[str, int], *, meta: Mapping[str, Any] | None = None, thread: int = 1,
        wait: int = 0, kind: Kind = Kind.COMPUTE, stream: int = 7,
    ) -> None:  # fmt: skip
        """One operator of 10 ns on the host; ``kernels``: name -> ns; the device idles ``wait`` ns before the first."""
        index = NONE
        if meta is not None:
            self.table.metas.append(meta)
            index = len(self.table.metas) - 1
        self.table.add(name, self.host, 10, Category.HOST_OP, thread=thread, meta=index)
        for i, (kernel, dur) in enumerate(kernels.items()):
            corr = len(self.table.rows) + 1
            self.table.add("cudaLaunchKernel", self.host + 1 + i, 1, Category.RUNTIME, thread=thread, corr=corr)
            self.device += wait if i == 0 else 0
            self.table.add(
                kernel, self.device, dur, Category.KERNEL, kind=int(kind), stream=stream, device=0, corr=corr
            )  # fmt: skip
            self.device += dur
        self.host += 10

    def build(self) -> Events:
        """The table."""
        return self.table.build()
