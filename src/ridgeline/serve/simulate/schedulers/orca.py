"""Orca: requests join and leave at every step, prompts whole, key-value blocks reserved for the whole answer."""

from ridgeline.serve.simulate.engine.policy import Scheduler

ORCA = Scheduler(
    "orca",
    chunked=False,
    mixed=True,
    reserve=True,
    about="iteration-level batching with the blocks of the whole answer reserved",
)
