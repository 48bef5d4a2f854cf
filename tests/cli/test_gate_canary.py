"""``ridgeline gate haystack``, ``gate probe`` and ``gate canary``, from a corpus to a decision."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.gate.canary.simulated import prose
from tests.gate.canary.stub import Stub, answers, codes, completion, reply, served

Ridgeline = Any
WINDOW = 1024 * 4  # characters that the stub keeps


def forgets(_stub: Stub, handler: Any, body: dict[str, Any], _number: int) -> None:
    prompt = body["messages"][0]["content"]
    reply(handler, 200, completion(codes(prompt[-WINDOW:]), len(prompt) // 4))


@pytest.fixture
def canary(ridgeline: Ridgeline, tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text(prose(30_000), encoding="utf-8")
    words = ("gate", "haystack", tmp_path / "corpus.txt", "--length", "1k", "--length", "2k", "--contexts", 32)
    done = ridgeline(*words, "-o", tmp_path / "set.jsonl", "--json")
    assert done.code == 0, done.err
    assert done.json["quantities"]["canary.needles"]["value"] == 640
    return tmp_path / "set.jsonl"


def probed(ridgeline: Ridgeline, canary: Path, behave: Any, name: str) -> Path:
    out = canary.parent / f"{name}.jsonl"
    with served(behave) as stub:
        done = ridgeline("gate", "probe", canary, "--endpoint", stub.url, "--model", name, "-o", out)
    assert done.code == 0, done.err
    assert "640 needles were found" in done.out
    return out


def test_from_a_corpus_to_a_decision(ridgeline: Ridgeline, canary: Path) -> None:
    runs = ((answers, "bf16"), (forgets, "windowed"), (answers, "fp8"))
    base, cand, good = (probed(ridgeline, canary, behave, name) for behave, name in runs)
    words = ("gate", "canary", "--baseline", base, "--set", canary, "--slice-margin", "10%", "-o", canary.parent / "r")
    done = ridgeline(*words, "--candidate", cand, "--json")
    assert done.code == 1, done.err
    assert done.json["decision"].startswith("NO-SHIP: found changes by")
    said = [item["sentence"] for item in done.json["findings"] if item["code"] == "G124" and item["verdict"] == "fail"]
    assert len(said) == 1
    assert "beyond the last 1,024 tokens" in said[0]
    done = ridgeline(*words, "--candidate", good, "--margin", "8%")
    assert done.code == 0, done.out
    assert "SHIP:" in done.out
    done = ridgeline(*words, "--candidate", base)
    assert done.code == 2
    assert "one file twice" in done.err


def test_a_plan_of_a_file_decides_and_flags_must_agree(ridgeline: Ridgeline, canary: Path) -> None:
    base, cand = (probed(ridgeline, canary, answers, name) for name in ("bf16", "fp8"))
    spec, out = canary.parent / "spec.toml", canary.parent / "r"
    spec.write_text('gate = "canary"\nmargin = "8%"\nslice_margin = "10%"\n', encoding="utf-8")
    words = ("gate", "canary", "--baseline", base, "--candidate", cand, "--registration", spec, "-o", out)
    assert ridgeline(*words).code == 0
    done = ridgeline(*words, "--margin", "9%")
    assert done.code == 2
    assert "flags that agree with the plan" in done.err


def test_a_refused_endpoint_is_one_sentence(ridgeline: Ridgeline, canary: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    out = canary.parent / "out.jsonl"
    done = ridgeline("gate", "probe", canary, "--endpoint", url, "--model", "m", "-o", out, "--retries", 0)
    assert done.code == 2
    assert done.err.startswith("error: Expected an endpoint that answers")
    assert "0 of 64 contexts are kept" in done.err


def test_a_server_that_fails_every_request(ridgeline: Ridgeline, canary: Path) -> None:
    def fails(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
        reply(handler, 500, b"no")

    out = canary.parent / "out.jsonl"
    with served(fails) as stub:
        words = ("gate", "probe", canary, "--endpoint", stub.url, "--model", "m", "-o", out, "--retries", 0)
        done = ridgeline(*words)
    assert done.code == 2
    assert "64 errors, first: HTTP 500" in done.err
    assert len(out.read_text().splitlines()) == 64


def test_the_key_is_sent_and_never_shown(ridgeline: Ridgeline, canary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("gate", "probe", canary, "--model", "m", "-o", canary.parent / "out.jsonl", "--key-env", "CANARY_KEY")
    monkeypatch.delenv("CANARY_KEY", raising=False)
    assert ridgeline(*words, "--endpoint", "http://127.0.0.1:1/v1").code == 2
    monkeypatch.setenv("CANARY_KEY", "very-secret")
    with served() as stub:
        done = ridgeline(*words, "--endpoint", stub.url, "--json")
        assert stub.headers[0]["Authorization"] == "Bearer very-secret"
    assert done.code == 0
    written = "".join(path.read_text() for path in canary.parent.glob("*.jsonl"))
    assert "very-secret" not in done.out + done.err + written


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--baseline", "a.jsonl"), "no such file"),
        ((), "results or a configuration"),
        (("--serving", "none.json"), "a serving configuration"),
    ],
)
def test_bad_input_is_refused(ridgeline: Ridgeline, tmp_path: Path, words: tuple[str, ...], said: str,
                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = ridgeline("gate", "canary", *words)
    assert done.code == 2
    assert said in done.err


def test_the_set_is_not_written_over(ridgeline: Ridgeline, canary: Path) -> None:
    before = canary.read_bytes()
    words = ("gate", "probe", canary, "--endpoint", "http://127.0.0.1:1/v1", "--model", "m", "-o", canary)
    assert ridgeline(*words).code == 2
    corpus = canary.parent / "corpus.txt"
    assert ridgeline("gate", "haystack", corpus, "--length", "1k", "-o", corpus).code == 2
    assert canary.read_bytes() == before
    assert json.loads(before.splitlines()[0])["id"] == "1024-0000"
