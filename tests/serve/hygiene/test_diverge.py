"""Where two prompts part, and for which cause; what the causes look like; what may be shown of them."""

import json

import pytest

from ridgeline.serve.hygiene import patterns
from ridgeline.serve.hygiene.diverge import causes, common_prefix
from ridgeline.serve.hygiene.normalise import CAUSES, Fix, apply, segments, sorted_json
from ridgeline.serve.hygiene.redact import redact
from ridgeline.serve.hygiene.request import HEADERS, Part
from ridgeline.serve.hygiene.tables import shown

LONG = b" ".join(b"word%d" % i for i in range(200))
TIMES = [
    (b"2026-09-02T14:58:23.413Z", b"2026-09-02T14:58:23.869Z"),
    (b"2026-09-02", b"2026-09-03"),
    (b"1790000000123", b"1790000000579"),
    (b"1790000000", b"1790000060"),
    (b"Monday, March 9, 2026 at 06:00:31 PM PDT", b"Monday, March 9, 2026 at 06:00:32 PM PDT"),
    (b"9:59:59", b"10:00:00"),
    (b"3 Mar 2026 14:00", b"4 Mar 2026 09:30"),
    (b"11/02/2026", b"11/03/2026"),
]
IDS = [
    (b"3f2504e0-4f89-41d3-9a0c-0305e82c3301", b"9c858901-8a57-4791-81fe-4c455b099bc9"),
    (b"session_a81kQ0z", b"session_b2kkT9y"),
    (b"req-0a1b2c3d4e", b"req-99aabbccdd"),
    (b"9f86d081884c7d65", b"a3c024f1190b2e44"),
]


def pair(one: bytes, two: bytes, kind: str = "system") -> tuple[list[Part], list[Part]]:
    return tuple(
        [Part(kind, b"Rules first. Now: " + value + b" here.\n" + LONG), Part("user", b"Hi")] for value in (one, two)
    )  # type: ignore[return-value]


@pytest.mark.parametrize(("one", "two"), TIMES)
def test_times(one: bytes, two: bytes) -> None:
    a, b = pair(one, two)
    (cause,) = causes(a, b)
    assert (cause.name, cause.kind, cause.first, cause.second) == ("timestamp", "system", one, two)
    assert apply([cause.fix], a) == apply([cause.fix], b)


@pytest.mark.parametrize(("one", "two"), IDS)
def test_identifiers(one: bytes, two: bytes) -> None:
    a, b = pair(one, two)
    (cause,) = causes(a, b)
    assert cause.name == "identifier"
    assert apply([cause.fix], a) == apply([cause.fix], b)


@pytest.mark.parametrize(
    ("one", "two", "name"),
    [(b"request 12", b"request 13", "counter"), (b"guest Adaeze", b"guest Bjorn", "content"),
     (b"a  b", b"a b", "whitespace")],
)  # fmt: skip
def test_other_values(one: bytes, two: bytes, name: str) -> None:
    a, b = pair(one, two)
    (cause,) = causes(a, b)
    assert cause.name == name
    assert apply([cause.fix], a) == apply([cause.fix], b)


def test_the_byte_is_that_of_the_prompt() -> None:
    a, b = pair(b"2026-09-02T14:58:23.413Z", b"2026-09-02T14:58:23.869Z")
    (cause,) = causes([Part("tools", b"{}"), *a], [Part("tools", b"{}"), *b])
    assert cause.at == len(b"{}\n" + HEADERS["system"] + b"Rules first. Now: 2026-09-02T14:58:23.")


@pytest.mark.parametrize(
    "word", [b"v1.2.3", b"3.14159", b"12 apples", b"May be", b"Sunny", b"port 8080", b"chapter 12:"]
)
def test_what_is_no_time(word: bytes) -> None:
    assert list(patterns.times(word)) == []


@pytest.mark.parametrize("word", [b"international", b"1234567890123", b"snake_case_name", b"get_user_by_id", b"facade"])
def test_what_is_no_identifier(word: bytes) -> None:
    assert list(patterns.identifiers(word)) == []


def tools(*names: str) -> list[Part]:
    return [Part("tools", json.dumps({"name": name, "description": "x" * 300}).encode()) for name in names]


def test_order_of_tools() -> None:
    a, b = ([*tools(*names), Part("user", LONG)] for names in ("abc", "bca"))
    (cause,) = causes(a, b)
    assert cause.name == "tool_order"
    assert apply([cause.fix], a) == apply([cause.fix], b)


def test_other_tools_are_another_version() -> None:
    (cause,) = causes([*tools(*"abc"), Part("user", LONG)], [*tools(*"abd"), Part("user", LONG)])
    assert cause.name == "version"


def test_keys_of_a_tool_result() -> None:
    one, two = b'{"b": {"y": 1, "x": 2}, "a": [1, 2]}', b'{"a": [1, 2], "b": {"x": 2, "y": 1}}'
    a, b = ([Part("user", b"Hi"), Part("tool", text), Part("assistant", LONG)] for text in (one, two))
    (cause,) = causes(a, b)
    assert (cause.name, cause.kind) == ("json_keys", "tool")
    assert sorted_json(one) == sorted_json(two) == b'{"a":[1,2],"b":{"x":2,"y":1}}'
    assert sorted_json(b"{not json") == b"{not json"


def test_causes_that_stack_up_are_all_found() -> None:
    sides = []
    for names, time, keys in (("ab", b"08:00:01", b'{"k": 1, "j": 2}'), ("ba", b"08:00:09", b'{"j": 2, "k": 1}')):
        system = Part("system", b"Now " + time + b". " + LONG)
        sides.append([*tools(*names), system, Part("user", b"Hi"), Part("tool", keys), Part("assistant", LONG)])
    assert [cause.name for cause in causes(*sides)] == ["tool_order", "timestamp", "json_keys"]


def test_prompts_that_go_on_or_part_for_good_have_no_cause() -> None:
    head = [Part("system", LONG)]
    assert causes([*head, Part("user", b"Where?")], [*head, Part("user", b"When?")]) == []
    assert causes(head, [*head, Part("user", b"When?")]) == []
    assert causes(head, head) == []
    other = [*head, Part("user", b"First question"), Part("tool", LONG)]
    assert causes(other, [*head, Part("user", b"Second question"), Part("tool", LONG)]) == []


def test_dates_in_the_questions_of_two_conversations_are_no_cause() -> None:
    sides = [[Part("system", LONG), Part("user", b"Book 2026-05-0" + day), Part("tool", LONG)] for day in (b"1", b"2")]
    assert causes(*sides, same=False) == []
    assert [cause.name for cause in causes(*sides)] == ["timestamp"]


def test_static_text_behind_a_document() -> None:
    one, two = (b"Document: " + bytes([letter]) * 900 + b"\n\n" + LONG for letter in b"pq")
    (cause,) = causes([Part("prompt", one)], [Part("prompt", two)])
    assert cause.name == "order"
    fix = Fix("order", frozenset({"prompt"}), static=frozenset({hash(LONG)}))
    a, b = (apply([fix], [Part("prompt", text)]) for text in (one, two))
    assert a[0] == b[0] == Part("prompt", LONG)
    assert b"".join(part.text for part in a).replace(b"\n\n", b"") == LONG + one[: -len(LONG) - 2]


def test_segments_lose_nothing() -> None:
    text = b"\n\nOne\n\n\nTwo\n \nThree\n"
    assert b"".join(segments(Part("system", text))) == text


def test_common_prefix() -> None:
    long = b"a" * 200_000
    assert common_prefix(long + b"x", long + b"y") == len(long)
    assert common_prefix(b"", b"abc") == 0
    assert common_prefix(b"abc", b"abcd") == 3


@pytest.mark.parametrize(
    ("text", "secret"),
    [(b"Authorization: Bearer abc123def", "abc123def"), (b"key sk-proj-9a8b7c6d5e4f3a2b", "9a8b7c"),
     (b"mail jane.doe@example.org now", "jane.doe"), (b"AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
     (b"password=hunter2", "hunter2"), (b"token eyJhbGciOiJIUzI1NiJ9.e30.abc", "hbGciOi")],
)  # fmt: skip
def test_secrets_are_masked(text: bytes, secret: str) -> None:
    assert secret not in redact(text)


def test_excerpts_are_short_and_on_one_line() -> None:
    assert redact(b"a\nb\x1b[31m") == "a b [31m"
    assert len(redact(b"word " * 50)) == 48
    assert redact(b"2026-09-02T14:58:23.413Z") == "2026-09-02T14:58:23.413Z"


def test_what_users_wrote_is_not_shown() -> None:
    a, b = pair(b"guest Adaeze", b"guest Bjorn", kind="user")
    (cause,) = causes(a, b)
    assert "Adaeze" not in " ".join(shown(cause))
    a, b = pair(b"guest Adaeze", b"guest Bjorn")
    assert "Adaeze" not in " ".join(shown(causes(a, b)[0]))


def test_every_cause_has_a_fix_that_can_be_applied() -> None:
    parts = [*tools(*"ab"), Part("system", LONG), Part("tool", b'{"b":1,"a":2}')]
    for name in CAUSES:
        fix = Fix(name, frozenset({"system", "tool"}), standing=(Part("system", LONG),))
        once = fix.apply(parts)
        assert fix.apply(once) == once
