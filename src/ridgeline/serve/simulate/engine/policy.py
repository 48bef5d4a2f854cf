"""What a scheduler decides, as flags that the compiled loop reads: no call back into Python."""

from dataclasses import dataclass
from functools import lru_cache

from ridgeline.core.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Scheduler:
    """A policy of batching.

    ``chunked``: a prompt may be cut to what is left of the token budget; otherwise it runs whole or waits.
    ``mixed``: prompts and decodes share a step; otherwise a step with any prompt in it has no decodes.
    ``reserve``: a request is admitted only with the blocks of its whole answer; otherwise blocks are taken as needed.
    ``drain``: nobody is admitted until the whole batch has finished, and finished sequences are padded until then.
    """

    name: str
    chunked: bool
    mixed: bool
    reserve: bool = False
    drain: bool = False
    about: str = ""


@lru_cache(maxsize=1)
def schedulers() -> dict[str, Scheduler]:
    """Every scheduler of the folder and of the entry-point group ``ridgeline.scheduler``, by name."""
    from ridgeline.core.plugins import by_name

    return by_name("ridgeline.serve.simulate.schedulers", Scheduler, kind="scheduler")


def find_scheduler(name: str) -> Scheduler:
    """The scheduler of that name, or an `InputError` with the close matches."""
    known = schedulers()
    if name not in known:
        hint = did_you_mean(name, known, f"known: {', '.join(known)}")
        raise InputError.expected("a scheduler", name, where="scheduler", hint=hint)
    return known[name]
