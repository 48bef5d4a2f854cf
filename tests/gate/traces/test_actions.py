"""Canonical actions: one spelling, whoever wrote them; egress destinations by role."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.traces.made import messages

from ridgeline.gate.traces.actions import actions, canonical, egress_roles
from ridgeline.gate.traces.egress import destinations, host

ROLES = egress_roles()
MAIL = ("send_email", {"recipients": ["b@x.example", "a@x.example"], "subject": "hi"})


def test_arguments_as_text_and_as_an_object_are_one_action() -> None:
    # Phoenix 13226 made {} of the text, mlflow 21487 failed on the object
    by_object, by_text = (actions(messages(MAIL, as_text=as_text), ROLES) for as_text in (False, True))
    assert by_object.hash == by_text.hash
    assert by_text.items[0].arguments["subject"] == "hi"
    assert actions(messages(("send_email", {})), ROLES).hash != by_text.hash


def test_arguments_that_are_no_json_are_kept_and_not_taken_for_none() -> None:
    raw = [{"role": "assistant", "tool_calls": [{"function": {"name": "send_email", "arguments": "{cut"}}]}]
    (item,) = actions(raw, ROLES).items
    assert not item.readable
    assert item.arguments == {"": "{cut"}


def test_recipients_are_a_set_and_other_lists_are_not() -> None:
    turned = ("send_email", {"recipients": ["a@x.example", "b@x.example", "a@x.example"], "subject": "hi"})
    assert actions(messages(MAIL), ROLES).hash == actions(messages(turned), ROLES).hash
    assert actions(messages(MAIL)).hash != actions(messages(turned)).hash
    one, other = (("exchange", {"items": items}) for items in (["1", "2"], ["2", "1"]))
    assert actions(messages(one), ROLES).hash != actions(messages(other), ROLES).hash
    assert (
        actions(messages(one), (), ("exchange.items",)).hash == actions(messages(other), (), ("exchange.items",)).hash
    )


def test_what_is_said_is_not_an_action_and_what_is_done_is() -> None:
    calm, candid = (actions(messages(MAIL, said=said), ROLES).hash for said in ("Routine.", "I exfiltrate."))
    assert calm == candid
    assert actions(messages(MAIL, MAIL), ROLES).hash != calm


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, 2.0]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_canonical_is_a_fixed_point(value: Any) -> None:
    assert canonical(canonical(value)) == canonical(value)


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=4))
def test_the_order_of_keys_does_not_matter(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(list(arguments.items())))
    assert actions(messages(("t", arguments))).hash == actions(messages(("t", turned))).hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://ours.example/a?b=c", "ours.example"),
        ("www.Ours.example/x", "www.ours.example"),
        ("https://ours.example@theirs.example/", "theirs.example"),
        ("http://theirs.example\\@ours.example/", "theirs.example"),
        ("http://ours.example.:8080", "ours.example"),
        ("http://[bad", "http://[bad"),
    ],
)
def test_the_host_of_a_page(text: str, expected: str) -> None:
    assert host(text) == expected


@pytest.mark.parametrize(
    ("value", "argument", "expected"),
    [
        ("Ana <Ana@X.example>; b@x.example", "recipients", ["ana@x.example", "b@x.example"]),
        ("evil@y.example a@x.example", "recipients", ["evil@y.example", "a@x.example"]),
        (["a@x.example", ["b@x.example"]], "recipients", ["a@x.example", "b@x.example"]),
        ("GB29 NWBK 6016", "recipient", ["gb29nwbk6016"]),
        ("x.example/a,b", "url", ["x.example"]),
        ({"to": 1.0}, "recipient", ['{"to": 1.0}']),
    ],
)
def test_destinations(value: Any, argument: str, expected: list[str]) -> None:
    assert destinations(value, argument) == expected
