"""L2 on a long trace: flat per event."""

import time

import numpy as np
import pytest
from tests.trace.calls import Step, shaped

from ridgeline.trace.events import COLUMNS, NONE, Events
from ridgeline.trace.levels.l2 import operations


def repeated(events: Events, times: int) -> Events:
    """A trace played again and again, with ids of its own each time."""
    n, period = len(events), int(events.end.max()) + 1000
    again = np.repeat(np.arange(times), n)
    columns = {name: np.tile(getattr(events, name), times) for name in COLUMNS}
    columns["ts"] += again * period
    columns["corr"] = np.where(columns["corr"] == NONE, NONE, columns["corr"] + again * (n + 1))
    return events.with_columns(**columns)


def layer() -> Events:
    step = Step()
    step.open("aten::linear", 40)
    step.call("aten::mm", {"gemm": 5000}, meta=shaped([[512, 512], [512, 512]]))
    step.call("aten::add", {"add": 2000}, meta=shaped([[512, 512], [512, 512]]))
    step.call("aten::gelu", {"gelu": 2000}, meta=shaped([[512, 512]]))
    return step.build()


def test_repeating_a_trace_multiplies_everything() -> None:
    one, many = operations(layer()), operations(repeated(layer(), 50))
    assert [(r.name, r.calls, r.device_ns) for r in many.rows] == [
        (r.name, 50 * r.calls, 50 * r.device_ns) for r in one.rows
    ]
    assert [(c.count, c.saved_ns) for c in many.chains] == [(50 * c.count, 50 * c.saved_ns) for c in one.chains]


@pytest.mark.slow
def test_a_million_events_in_a_second_of_cpu() -> None:
    events = repeated(layer(), 100_000)
    start = time.process_time()
    ops = operations(events)
    assert len(events) == 1_000_000
    assert ops.kernels == 300_000
    assert time.process_time() - start < 2.5  # 0.6 s on a quiet core
