"""Static batching: a batch is formed, runs until its longest answer ends, and only then is the next one formed."""

from ridgeline.serve.simulate.engine.policy import Scheduler

STATIC = Scheduler(
    "static",
    chunked=False,
    mixed=False,
    reserve=True,
    drain=True,
    about="request-level batching: the batch runs until its longest answer ends",
)
