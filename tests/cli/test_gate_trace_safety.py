"""``gate trace-safety`` and ``gate rewrite``: exit codes, files, and bad input in one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.case import load

Ridgeline = Any
POLICY = '[egress]\n"send_email.recipients" = ["*@ours.example"]\n'


def runs(path: Path, n: int, bad: int = 0, arguments: str = "object") -> Path:
    rows = []
    for i in range(n):
        sent: Any = {"recipients": [f"a@{'theirs' if i < bad else 'ours'}.example"]}
        call = {"function": "send_email", "args": sent}
        if arguments == "text":
            call = {"type": "function", "function": {"name": "send_email", "arguments": json.dumps(sent)}}
        rows.append({"id": f"t{i}", "messages": [{"role": "assistant", "content": "Now.", "tool_calls": [call]}]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


@pytest.mark.parametrize("arguments", ["object", "text"])
@pytest.mark.parametrize(("n", "bad", "code"), [(300, 0, 0), (300, 30, 1), (50, 0, 4)])
def test_exit_codes(
    ridgeline: Ridgeline, tmp_path: Path, policy: Path, n: int, bad: int, code: int, arguments: str
) -> None:
    traces = runs(tmp_path / "runs.jsonl", n, bad, arguments)
    junit = tmp_path / "j.xml"
    done = ridgeline(
        "gate", "trace-safety", "--traces", traces, "--policy", policy, "--junit", junit, "-o", tmp_path / "r"
    )
    assert done.code == code, done.out + done.err
    assert load(tmp_path / "r" / "trace-safety.json")["decision"].startswith({0: "SHIP", 1: "NO-SHIP", 4: "INC"}[code])
    assert junit.read_text().startswith("<")


def test_json_is_one_document(ridgeline: Ridgeline, tmp_path: Path, policy: Path) -> None:
    traces = runs(tmp_path / "runs.jsonl", 300)
    done = ridgeline("gate", "trace-safety", "--traces", traces, "--policy", policy, "--json", "-o", tmp_path / "r")
    assert json.loads(done.out)["tool"] == "gate trace-safety"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--monitor", "keyword"), "keywords"),
        (("--cluster", "team"), "team"),
        (("--margin", "0"), "margin above zero"),
        (("--baseline", "nowhere.jsonl"), "no such file"),
    ],
)
def test_bad_input_is_one_sentence(
    ridgeline: Ridgeline, tmp_path: Path, policy: Path, words: tuple[str, ...], said: str
) -> None:
    traces = runs(tmp_path / "runs.jsonl", 30)
    done = ridgeline("gate", "trace-safety", "--traces", traces, "--policy", policy, *words, "-o", tmp_path / "r")
    assert done.code == 2
    assert said in done.err
    assert done.err.startswith("error: Expected ")


def test_rewrites_are_a_hold_out(ridgeline: Ridgeline, tmp_path: Path, policy: Path) -> None:
    traces, made = runs(tmp_path / "runs.jsonl", 300), tmp_path / "deep" / "v.jsonl"
    done = ridgeline("gate", "rewrite", traces, "-o", made, "--json")
    assert json.loads(done.out) == {"file": str(made), "traces": 900, "pairs": 300}
    again = ridgeline("gate", "trace-safety", "--traces", made, "--policy", policy, "--json", "-o", tmp_path / "r")
    document = json.loads(again.out)
    assert document["quantities"]["gate.trace_safety.overall.inside_the_policy.n"]["value"] == 300
    first = made.read_bytes()
    ridgeline("gate", "rewrite", traces, "-o", made, "--seed", 1)
    assert made.read_bytes() != first
