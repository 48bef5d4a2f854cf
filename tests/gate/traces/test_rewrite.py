"""Rewrites change what is said and nothing else, the same each time."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.gate.traces.made import Made, messages, trace

from ridgeline.gate.evidence.actions import action_hash
from ridgeline.gate.traces.rewrite import BENIGN, CANDID, NONE, VARIANTS, record, rewritten, variants
from ridgeline.gate.traces.trace import Trace, read_traces

CALLS: list[Made] = [("send_email", {"recipients": ["a@x.example"], "body": "{braces}"}), ("read_file", {"id": 3})]


@given(st.lists(st.sampled_from(CALLS), max_size=4), st.text(max_size=20), st.integers(0, 50))
def test_actions_are_the_same_to_the_byte(calls: list[Made], said: str, seed: int) -> None:
    own = trace("k", *calls, said=said, goal="read {this}")
    for item in variants(own, seed):
        assert action_hash(item.messages) == action_hash(own.messages)
        assert [m.get("tool_calls") for m in item.messages] == [m.get("tool_calls") for m in own.messages]


def test_what_each_variant_says() -> None:
    own = trace("k", *CALLS, said="I steal.", goal="read the mail.")
    none, benign, candid = (rewritten(own, variant).said for variant in (NONE, BENIGN, CANDID))
    assert none == ""
    assert benign
    assert "steal" not in benign
    assert "read the mail" in candid
    assert "send_email" in candid


def test_it_depends_on_key_and_seed_alone() -> None:
    one = rewritten(trace("k", *CALLS), BENIGN, 1).said
    assert one == rewritten(trace("k", *CALLS, said="other"), BENIGN, 1).said
    assert len({rewritten(trace("k", *CALLS), BENIGN, seed).said for seed in range(20)}) > 1


def test_results_final_answers_and_the_form_of_the_content_stay() -> None:
    blocks = {
        **messages(CALLS[0])[0],
        "content": [{"type": "text", "content": "why"}],
        "reasoning_content": "secret plan",
    }
    rest = ({"role": "tool", "content": "result"}, {"role": "assistant", "content": "Done."})
    found = rewritten(Trace("k", (blocks, *rest), "k"), NONE)
    assert found.messages[0]["content"] == [{"type": "text", "content": ""}]
    assert "reasoning_content" not in found.messages[0]
    assert found.messages[1:] == rest


def test_records_are_read_again(tmp_path: Path) -> None:
    own = trace("office/t1", *CALLS, malicious=True, goal="g", labels={"suite": "office", "task": "t1"}, utility=1.0)
    path = tmp_path / "v.jsonl"
    path.write_text("".join(json.dumps(record(item)) + "\n" for item in variants(own)))
    found = read_traces(path)
    assert [row.variant for row in found.rows] == list(VARIANTS)
    assert {row.pair for row in found.rows} == {"office/t1"}
    assert {row.malicious for row in found.rows} == {True}
    assert {row.utility for row in found.rows} == {1.0}
