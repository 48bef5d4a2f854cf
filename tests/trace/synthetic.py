"""Small tables of events, written by hand: times in ns, one row a call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ridgeline.trace.events import NONE, Category, Events, Info, Kind, events


@dataclass
class Table:
    """Collects rows; `build` makes the table of one rank."""

    rank: int = 0
    world: int = 1
    rows: list[dict[str, int]] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    metas: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, name: str, ts: int, dur: int, category: Category, **columns: int) -> None:
        row = {"ts": ts, "dur": dur, "category": int(category), "kind": 0, "name": self._name(name)}
        empty = dict.fromkeys(("stream", "device", "thread", "corr", "ext", "bytes", "meta", "step"), NONE)
        self.rows.append(empty | row | columns)

    def host(self, name: str, ts: int, dur: int, category: Category = Category.HOST_OP, thread: int = 1) -> None:
        self.add(name, ts, dur, category, thread=thread)

    def step(self, number: int, ts: int, dur: int) -> None:
        self.add(f"ProfilerStep#{number}", ts, dur, Category.STEP, thread=1)

    def work(
        self, name: str, ts: int, dur: int, *, launch: int | None = None, call: int = 1, kind: Kind = Kind.COMPUTE,
        category: Category = Category.KERNEL, stream: int = 7, meta: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        corr = NONE
        if launch is not None:
            corr = len(self.rows) + 1
            self.add("cudaLaunchKernel", launch, call, Category.RUNTIME, thread=1, corr=corr)
        index = NONE
        if meta is not None:
            self.metas.append(meta)
            index = len(self.metas) - 1
        self.add(name, ts, dur, category, kind=int(kind), stream=stream, device=0, corr=corr, meta=index)

    def copy(self, ts: int, dur: int, kind: Kind = Kind.H2D, launch: int | None = None, stream: int = 8) -> None:
        self.work("Memcpy", ts, dur, launch=launch, kind=kind, category=Category.MEMCPY, stream=stream)

    def comm(
        self, ts: int, dur: int, *, collective: str = "allreduce", numel: int = 1 << 20, dtype: str = "Float",
        group: str = "0", size: int = 2, launch: int | None = None, seq: int | None = None, stream: int = 20,
        ranks: list[int] | None = None,
    ) -> None:  # fmt: skip
        meta: dict[str, Any] = {
            "collective": collective, "dtype": dtype, "group": group, "group_size": size, "in_numel": numel,
            "out_numel": numel,
        }  # fmt: skip
        if seq is not None:
            meta["seq"] = seq
        if ranks is not None:
            meta["group_ranks"] = ranks
        self.work("ncclDevKernel", ts, dur, launch=launch, kind=Kind.COMM, stream=stream, meta=meta)

    def build(self, base_ns: int = 0) -> Events:
        keys = ("ts", "dur", "category", "kind", "name", "stream", "device", "thread", "corr", "ext", "bytes", "meta")
        columns = {key: [row[key] for row in self.rows] for key in (*keys, "step")}
        info = Info("synthetic", "made.json", rank=self.rank, world=self.world, base_ns=base_ns)
        return events(columns, list(self.names), self.metas, info)

    def _name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))
