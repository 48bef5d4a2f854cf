"""Tool calls of two formats, in one form."""

import pytest
from tests.gate.evidence.logs import dojo_run, tau_run

from ridgeline.gate.evidence.actions import action_hash, arguments, call, calls


def test_arguments_as_text_and_as_an_object_are_the_same_call() -> None:
    """tau-bench writes a JSON string, AgentDojo an object: a text that becomes {} makes every check pass."""
    text = {"function": {"name": "send", "arguments": '{"to": "a@b.c", "cc": ["d"]}'}}
    plain = {"function": "send", "args": {"cc": ["d"], "to": "a@b.c"}, "id": None}
    assert call(text).canonical == call(plain).canonical
    assert dict(call(text).arguments) == {"to": "a@b.c", "cc": ["d"]}


@pytest.mark.parametrize("broken", ['{"to": "a@b', "[1, 2]", "to=a"])
def test_arguments_that_cannot_be_parsed_are_never_empty(broken: str) -> None:
    assert arguments(broken)[""] not in (None, "", {})


def test_no_arguments_are_empty() -> None:
    assert dict(arguments("")) == {}
    assert dict(call({"function": "f", "args": None}).arguments) == {}


def test_the_hash_is_of_actions_alone() -> None:
    run = dojo_run(1, True)
    said = [{**m, "content": "a benign reason"} for m in run["messages"]]
    other = [{**m, "tool_calls": []} for m in run["messages"]]
    assert action_hash(said) == action_hash(run["messages"])
    assert action_hash(other) != action_hash(run["messages"])
    assert [item.name for item in calls(tau_run(1, 0, 1.0)["traj"])] == ["send_email"]
