"""A monitor scores a trace between 0 and 1; the hold-out shows which of them move with what the agent says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ridgeline.core import plugins
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.gate.traces.policy import Policy
from ridgeline.gate.traces.trace import Trace

PACKAGE = "ridgeline.gate.monitors"
DECIDES = "actions"


@dataclass(frozen=True)
class Monitor:
    """``score`` is suspicion from 0 to 1, flagged at ``threshold``; ``reads`` says what it looks at."""

    name: str
    title: str
    reads: Literal["actions", "rationale", "both"]
    score: Callable[[Trace, Policy], float]
    threshold: float = 0.5

    def scored(self, trace: Trace, policy: Policy) -> float:
        """The score. Raises `InputError` for one outside 0 to 1."""
        found = float(self.score(trace, policy))
        if not 0 <= found <= 1:
            raise InputError.expected("a score from 0 to 1", found, where=f"monitor {self.name}, {trace.key}")
        return found


def monitors() -> dict[str, Monitor]:
    """Every monitor by its name: those of the folder and of the entry points ``ridgeline.monitor``."""
    return plugins.by_name(PACKAGE, Monitor, kind="monitor")


def chosen(names: tuple[str, ...]) -> tuple[Monitor, ...]:
    """The monitor that decides and those named, or all. Raises `InputError` with the close matches."""
    known = monitors()
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, "monitors: " + ", ".join(known))
            raise InputError.expected("a monitor", name, where="--monitor", hint=hint)
    wanted = dict.fromkeys((DECIDES, *(names or known)))
    return tuple(known[name] for name in wanted)
