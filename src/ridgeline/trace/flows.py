"""Launch links from flow events, for traces whose events carry no correlation id.

A flow starts at a runtime call and ends at the device event it launched: same thread or stream, same time, and an id of
its own. Its id becomes the ``corr`` of both.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, Struct

from ridgeline.trace import clock, salvage
from ridgeline.trace.chrome import Stream
from ridgeline.trace.columns import integer
from ridgeline.trace.events import DEVICE_WORK, NONE, Category, Events

_LAUNCHES = ("ac2g", "async_cpu_to_gpu", "async_gpu", "async", "cuda_flow")


class _Flow(Struct, gc=False):
    ph: str = ""
    cat: str | None = ""
    id: int | float | str | None = None
    tid: int | float | str | None = None
    ts: Raw = Raw()


def link(path: Path, events: Events) -> Events:
    """The table with ``corr`` from the flow events of the file, read a second time for them."""
    ledger = salvage.Ledger(path.name)  # damage has been noted at the first reading
    decoder = msgspec.json.Decoder(list[_Flow])
    starts: dict[tuple[int, int], int] = {}
    ends: dict[tuple[int, int], int] = {}
    for batch in Stream(salvage.blocks(path, ledger), decoder.decode, _lenient, ledger):
        flows = [f for f in batch if f.ph in ("s", "f") and f.cat in _LAUNCHES]
        times = clock.nanoseconds([f.ts for f in flows]).tolist() if flows else []
        for flow, ts in zip(flows, times, strict=True):
            lane, number = _lane(flow.tid), integer(flow.id)
            if lane is not None and number is not None:
                (starts if flow.ph == "s" else ends).setdefault((lane, ts), number)
    base = events.info.base_ns - int(events.info.extra.get("baseTimeNanoseconds") or 0)
    corr = events.corr.copy()
    for lanes, known, wanted in (
        (events.thread, starts, events.category == Category.RUNTIME),
        (events.stream, ends, np.isin(events.category, DEVICE_WORK)),
    ):
        rows = np.flatnonzero(wanted & (corr == NONE))
        keys = zip(lanes[rows].tolist(), (events.ts[rows] + base).tolist(), strict=True)
        corr[rows] = [known.get(key, NONE) for key in keys]
    return events.with_columns(corr=corr)


def _lane(value: Any) -> int | None:
    return integer(value.removeprefix("stream").strip() if isinstance(value, str) else value)


def _lenient(text: bytes) -> _Flow | None:
    try:
        return msgspec.json.decode(text, type=_Flow)
    except msgspec.DecodeError:
        return None
