"""A job that streams what it computes on from the host: its copies are links at work, not waits misread."""

from pathlib import Path

import numpy as np
import pytest

from ridgeline.trace import intervals
from ridgeline.trace.events import Events, Ints, Kind
from ridgeline.trace.read import read_run


@pytest.mark.data
def test_the_transfers_themselves_cover_the_time(data_dir: Path) -> None:
    """XProf draws a transfer on a line of its own between its start and the done that waits for it."""
    events = read_run(data_dir / "trace" / "xplane" / "tpu_v6e_inference.trace.json.gz").ranks[0]
    found = {name: _time(events, name) for name in ("offload-copy", "copy-start", "copy-done")}
    for wait in ("copy-start", "copy-done"):
        assert intervals.subtract(found[wait], found["offload-copy"]).total == 0
    device = np.flatnonzero(events.on_device)
    busy = intervals.union(events.ts[device], events.dur[device]).total
    assert found["offload-copy"].total / busy > 0.95
    moved = _rows(events, "offload-copy")
    assert 5 < np.median(events.bytes[moved] / events.dur[moved]) < 32  # GB/s: a host link, not one between chips
    compute = np.flatnonzero(events.on_device & (events.kind == Kind.COMPUTE))
    assert intervals.union(events.ts[compute], events.dur[compute]).total / busy < 0.05


def _rows(events: Events, name: str) -> Ints:
    named = np.array([text.partition(".")[0] == name for text in events.names])
    return np.flatnonzero(events.on_device & named[events.name])


def _time(events: Events, name: str) -> intervals.Spans:
    rows = _rows(events, name)
    return intervals.union(events.ts[rows], events.dur[rows])
