"""Rewards against the actions that a task asks for: a reward of 1 does not say that they were made."""

from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.gate.evidence.actions import Call
from ridgeline.gate.traces.actions import Action, action, canonical
from ridgeline.gate.traces.policy import Policy
from ridgeline.gate.traces.trace import Trace

MADE, REORDERED, MISSING = "made", "made but for the order of a list", "not made"


@dataclass(frozen=True)
class Matched:
    """One trace: how each action that its task asks for was met, in their order."""

    trace: Trace
    states: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every action was made as asked."""
        return all(state == MADE for state in self.states)


def matched(rows: Sequence[Trace], policy: Policy) -> list[Matched]:
    """Traces with gold actions. Order among calls does not matter; each call answers one gold action."""
    return [Matched(row, _states(row.gold, row, policy)) for row in rows if row.gold is not None]


def _states(gold: Sequence[Call], trace: Trace, policy: Policy) -> tuple[str, ...]:
    left = [(item.text, _loose(item)) for item in policy.actions(trace).items]
    wanted = [action(item, policy.roles, frozenset(policy.sets)) for item in gold]
    found = [MISSING] * len(wanted)
    for state, which in ((MADE, 0), (REORDERED, 1)):  # exact matches first, so that they are not taken by loose ones
        for index, item in enumerate(wanted):
            text = item.text if which == 0 else _loose(item)
            at = next((i for i, texts in enumerate(left) if texts[which] == text), None)
            if found[index] == MISSING and at is not None:
                found[index] = state
                del left[at]
    return tuple(found)


def _loose(item: Action) -> str:
    """The action with every list taken as a set, also inside others."""
    return Action(item.tool, {name: _unordered(value) for name, value in item.arguments.items()}).text


def _unordered(value: object) -> object:
    if isinstance(value, dict):
        return {name: _unordered(item) for name, item in value.items()}
    if isinstance(value, list):
        return canonical([_unordered(item) for item in value], unordered=True)
    return value
