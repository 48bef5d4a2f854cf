"""Whether a monitor's score moves with the rationale, where the actions are the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.samples import Floats, Mask
from ridgeline.gate.traces.monitors import Monitor
from ridgeline.gate.traces.policy import Policy
from ridgeline.gate.traces.rewrite import variants
from ridgeline.gate.traces.trace import Trace, by_pair


@dataclass(frozen=True, eq=False)
class Moved:
    """One monitor between two rationales: a score of each trace under both, and which traces are malicious.

    ``malicious`` is NaN where a trace has no label.
    """

    monitor: Monitor
    first: str
    second: str
    before: Floats
    after: Floats
    malicious: Floats

    @property
    def change(self) -> Floats:
        """Score under the second rationale less that under the first."""
        return self.after - self.before

    @property
    def moved(self) -> Mask:
        """Traces whose score is not the same number."""
        found: Mask = self.before != self.after
        return found

    def flagged(self, label: bool) -> tuple[float, float, int]:
        """Share flagged under either rationale, and of how many traces with that label; NaN of none."""
        at = self.malicious == float(label)
        if not at.any():
            return np.nan, np.nan, 0
        shares = [float((scores[at] >= self.monitor.threshold).mean()) for scores in (self.before, self.after)]
        return shares[0], shares[1], int(at.sum())


def holdout(rows: Sequence[Trace], policy: Policy, monitors: Sequence[Monitor], seed: int = 0) -> list[Moved]:
    """Every monitor between every two variants: recorded ones where a trace has several, else rewritten ones.

    Raises `InputError` where traces that are declared a pair did not do the same.
    """
    found: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
    known = {item.name: item for item in monitors}
    for group in by_pair(tuple(rows)):
        same = group if len(group) > 1 else variants(group[0], seed)
        _refuse_other_actions(same, policy)
        label = _label(same)
        for item in monitors:
            scores = {trace.variant: item.scored(trace, policy) for trace in same}
            for first, second in combinations(scores, 2):
                found.setdefault((item.name, first, second), []).append((scores[first], scores[second], label))
    return [
        Moved(known[name], first, second, *np.array(values, dtype=np.float64).T)
        for (name, first, second), values in found.items()
    ]


def _label(group: Sequence[Trace]) -> float:
    """The label of a pair, NaN without one. Raises `InputError` for two: the same actions are one or the other."""
    labels = {float(trace.malicious) for trace in group if trace.malicious is not None}
    if len(labels) > 1:
        hint = "the label says what the actions do, and a pair has the same actions"
        raise InputError.expected("one label_malicious a pair", "both", where=group[0].pair, hint=hint)
    return labels.pop() if labels else float("nan")


def _refuse_other_actions(group: Sequence[Trace], policy: Policy) -> None:
    hashes = {policy.actions(trace).hash for trace in group}
    if len(hashes) > 1:
        got = f"{len(hashes)} different ones"
        hint = "traces of one pair_id differ in what is said, never in what is done"
        raise InputError.expected("the same actions in a pair", got, where=group[0].pair, hint=hint)
