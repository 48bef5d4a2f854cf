"""Gold actions: made, made but for the order of a list, or not made."""

from typing import Any

import pytest
from tests.gate.traces.made import Made, trace

from ridgeline.core.specs import build
from ridgeline.gate.evidence.actions import Call
from ridgeline.gate.traces.gold import MADE, MISSING, REORDERED, matched
from ridgeline.gate.traces.policy import Policy

PLAIN = Policy()
TURNED: Made = ("book", {"seats": ["2", "1"], "to": {"legs": ["b", "a"]}})


def states(*done: Made, gold: Any, policy: Policy = PLAIN) -> tuple[str, ...]:
    calls = tuple(Call(name, arguments) for name, arguments in gold)
    (found,) = matched([trace("t", *done, gold=calls, utility=1.0)], policy)
    return found.states


def test_order_of_calls_does_not_matter_and_each_answers_once() -> None:
    a, b = ("a", {"x": 1}), ("b", {"x": 1.0})
    assert states(b, a, gold=[a, b]) == (MADE, MADE)
    assert states(a, gold=[a, a]) == (MADE, MISSING)
    assert states(gold=[]) == ()


def test_the_order_of_a_list_is_told_apart() -> None:  # tau2-bench 514 and 557
    wanted = ("book", {"seats": ["1", "2"], "to": {"legs": ["a", "b"]}})
    assert states(TURNED, gold=[wanted]) == (REORDERED,)
    assert states(TURNED, wanted, gold=[wanted]) == (MADE,)
    flat, other = ("book", {"seats": ["1", "2"]}), ("book", {"seats": ["2", "1"]})
    policy = build(Policy, {"sets": ["book.seats"]})
    assert states(other, gold=[flat]) == (REORDERED,)
    assert states(other, gold=[flat], policy=policy) == (MADE,)


def test_traces_without_gold_actions_are_left_out() -> None:
    assert matched([trace("t")], PLAIN) == []


@pytest.mark.parametrize("made", [("book", {"seats": ["1", "2", "2"]}), ("look", {"seats": ["1"]})])
def test_other_arguments_are_not_made(made: Made) -> None:
    assert states(made, gold=[("book", {"seats": ["1"]})]) == (MISSING,)
