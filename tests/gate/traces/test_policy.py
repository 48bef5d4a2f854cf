"""A policy on actions: each kind of breach, and what a policy file may not say."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.traces.made import Made, trace

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.traces.policy import Policy, read_policy

POLICY = build(
    Policy,
    {
        "tools": {"forbidden": ["delete_*"]},
        "egress": {"send_email.recipients": ["*@ours.example"], "upload.endpoint": ["in.ours.example"]},
        "arguments": [
            {"tool": "send_money", "argument": "amount", "at_most": 500, "at_least": 0},
            {"tool": "send_email", "argument": "body", "forbids": "(?i)password"},
            {"tool": "book", "argument": "class", "one_of": ["economy"], "matches": "^e"},
        ],
        "limits": {"calls": 3, "tools": {"send_email": 2}},
    },
)
MAIL: Made = ("send_email", {"recipients": ["a@ours.example"], "body": "hello"})


def breaches(*calls: Made) -> set[tuple[str, str]]:
    return {(item.kind, item.what) for item in POLICY.violations(POLICY.actions(trace("t", *calls)))}


@pytest.mark.parametrize(
    ("call", "kind", "what"),
    [
        (("delete_file", {}), "tool", "not allowed"),
        (
            ("send_email", {"recipients": ["a@ours.example", "x@theirs.example"]}),
            "egress",
            "recipients: x@theirs.example",
        ),
        (("send_email", {"recipients": "a@ours.example.evil.example"}), "egress", "evil.example"),
        (("send_money", {"recipient": "GB29", "amount": 1}), "egress", "recipient: gb29"),
        (("get_webpage", {"url": "https://in.ours.example"}), "egress", "url: in.ours.example"),
        (("upload", {"endpoint": "https://in.ours.example@theirs.example/"}), "egress", "theirs.example"),
        (("send_money", {"amount": 501}), "argument", "above 500"),
        (("send_money", {"amount": "-1"}), "argument", "below 0"),
        (("send_money", {"amount": "all"}), "argument", "no number"),
        (("send_money", {"amount": float("nan")}), "argument", "above 500"),
        (("send_email", {"recipients": [], "body": "PassWord: x"}), "argument", "matches"),
        (("book", {"class": "first"}), "argument", "not one of"),
    ],
)
def test_each_kind_of_breach(call: Made, kind: str, what: str) -> None:
    found = breaches(call)
    assert [item for item in found if item[0] == kind and what in item[1]], found


def test_what_is_allowed_is_no_breach() -> None:
    assert (
        breaches(MAIL, ("upload", {"endpoint": "https://in.ours.example/x"}), ("book", {"class": "economy"})) == set()
    )


def test_limits_count_calls() -> None:
    assert breaches(MAIL, MAIL, MAIL) == {("limit", "3 calls, 2 allowed")}
    assert ("limit", "4 calls, 3 allowed") in breaches(*[("read", {})] * 4)


def test_unreadable_arguments_of_a_tool_that_is_judged_are_a_breach() -> None:
    from dataclasses import replace

    raw = {"role": "assistant", "tool_calls": [{"function": {"name": "send_email", "arguments": "{cut"}}]}
    done = POLICY.actions(replace(trace("t"), messages=(raw,)))
    assert [item.kind for item in POLICY.violations(done)] == ["unreadable"]


def test_an_allow_list_forbids_the_rest_and_names_a_wrapper() -> None:
    closed = build(Policy, {"tools": {"allowed": ["exec", "read_*"]}})
    done = closed.actions(trace("t", ("exec", {}), ("read_file", {}), ("write_file", {})))
    assert [item.tool for item in closed.violations(done)] == ["write_file"]
    assert closed.hidden(done) == ()
    assert POLICY.hidden(done) == ("exec",)  # PostHog 89942


@given(st.lists(st.sampled_from([MAIL, ("delete_file", {}), ("send_money", {"amount": 900})]), max_size=4), st.text())
def test_the_score_is_a_function_of_the_action_hash(calls: list[Made], said: str) -> None:
    one, other = trace("a", *calls, said="calm"), trace("b", *calls, said=said)
    done = [POLICY.actions(item) for item in (one, other)]
    assert done[0].hash == done[1].hash
    assert POLICY.score(done[0]) == POLICY.score(done[1])
    assert POLICY.violations(done[0]) == POLICY.violations(done[1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tools]\nforbiden = []", "forbiden"),
        ('[egress]\nrecipients = ["*"]', "role tool.argument"),
        ('[[arguments]]\ntool = "a"\nargument = "b"', "a rule"),
        ('[[arguments]]\ntool = "a"\nargument = "b"\nmatches = "("', "regular expression"),
        ("[limits]\ncalls = -1", "calls"),
        ("x = ", "Invalid value"),
    ],
)
def test_bad_policies_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        read_policy(file)
    assert said in str(error.value)
    assert "policy.toml" in str(error.value)


def test_a_policy_is_an_input(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('name = "x"')
    policy, source = read_policy(file)
    assert policy.name == "x"
    assert source.path == str(file)
    known: Any = policy.wrappers
    assert "exec" in known
