"""Why one plan is slower than another: the difference of two steps, term by term, in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ridgeline.core.format import seconds
from ridgeline.plan.steps.step import Steps

# What people call the terms of a step, and which activity each is (`charts.ACTIVITIES`).
WORDS: Mapping[str, tuple[str, str]] = {
    "forward_matmul": ("matmuls, forward", "compute"),
    "dgrad_matmul": ("matmuls, gradient of inputs", "compute"),
    "wgrad_matmul": ("matmuls, gradient of weights", "compute"),
    "attention": ("attention", "compute"),
    "vector": ("memory-bound kernels", "compute"),
    "recompute": ("recompute", "compute"),
    "head": ("head and loss", "compute"),
    "optimizer": ("optimizer", "compute"),
    "host": ("host, not hidden", "host"),
    "step": ("fixed cost of a step", "host"),
    "tp_exposed": ("tensor-parallel communication", "communication"),
    "cp_exposed": ("context-parallel communication", "communication"),
    "ep_exposed": ("all-to-all to experts", "communication"),
    "pp_exposed": ("hand-over between stages", "communication"),
    "dp_exposed": ("data-parallel communication", "communication"),
    "bubble": ("pipeline bubble", "idle"),
}
_LEAST = 0.001  # of the step: smaller differences are left out of a sentence


@dataclass(frozen=True)
class Difference:
    """One term of two plans: seconds of the better and of the other."""

    term: str
    best_s: float
    other_s: float

    @property
    def more_s(self) -> float:
        """What the other plan spends on top; negative where it saves."""
        return self.other_s - self.best_s

    @property
    def words(self) -> str:
        """The term in words."""
        return WORDS.get(self.term, (self.term, ""))[0]


def activity(term: str) -> str:
    """Compute, communication, host or idle."""
    return WORDS.get(term, ("", "compute"))[1]


def differences(steps: Steps, best: int, other: int) -> list[Difference]:
    """Every term of two plans, the largest difference first; they add up to that of the steps."""
    found = [Difference(name, float(part[best]), float(part[other])) for name, part in steps.terms.items()]
    return sorted(found, key=lambda item: (-abs(item.more_s), item.term))


def sentence(steps: Steps, best: int, other: int, most: int = 3) -> str:
    """``0.42 s slower: +0.61 s pipeline bubble, -0.19 s tensor-parallel communication``."""
    parts = differences(steps, best, other)
    gap_s = float(steps.step_s[other] - steps.step_s[best])
    least_s = _LEAST * float(steps.step_s[best])
    said = [f"{_signed(part.more_s)} {part.words}" for part in parts[:most] if abs(part.more_s) >= least_s]
    head = "as fast, to a thousandth of the step"
    if abs(gap_s) >= least_s:
        head = f"{seconds(abs(gap_s))} {'slower' if gap_s > 0 else 'faster'}"
    return f"{head}: {', '.join(said)}" if said else head


def changed(best: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The columns in which two plans differ: ``pp 4 to 8``. What follows from the others is left out."""
    spread = max(best.get("ep", 1), other.get("ep", 1)) > 1
    sharded = max(best.get("zero", 0), other.get("zero", 0)) >= 3
    follows = (set() if spread else {"etp"}) | (set() if sharded else {"shard"})
    names = [name for name in best if best[name] != other[name] and name not in follows]
    return ", ".join(f"{name} {best[name]} to {other[name]}" for name in names)


def exposed_communication(steps: Steps, row: int) -> float:
    """The share of the step in which nothing but communication runs."""
    total = sum(float(part[row]) for name, part in steps.terms.items() if activity(name) == "communication")
    return total / float(steps.step_s[row])


def _signed(value_s: float) -> str:
    return f"{'+' if value_s >= 0 else '-'}{seconds(abs(value_s))}"
