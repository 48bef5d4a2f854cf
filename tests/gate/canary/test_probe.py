"""Asking an endpoint: answers, drops, failures, half answers, slowness, and going on where it stopped."""

import contextlib
import json
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.gate.canary.simulated import canary
from tests.gate.canary.stub import Stub, answers, completion, reply, served

from ridgeline.core.errors import InputError
from ridgeline.gate.canary.generate import Recipe
from ridgeline.gate.canary.probe import Endpoint, probe
from ridgeline.gate.canary.results import read_run
from ridgeline.gate.canary.sets import CanarySet

N = 4


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> CanarySet:
    return canary(tmp_path_factory.mktemp("set"), Recipe((700,), N, 3))[0]


@pytest.fixture
def pauses() -> list[float]:
    return []


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_answers_are_kept_with_what_judges_them(held: CanarySet, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out.jsonl"
    with served() as stub:
        found = probe(held, Endpoint(stub.url, "m", key="secret-key", seed=3), out, workers=2)
    assert (found.answered, found.errors, found.hits, found.needles) == (N, 0, 3 * N, 3 * N)
    assert {row["id"] for row in rows(out)} == set(held.contexts)
    assert {(b["temperature"], b["seed"], b["model"], b["path"]) for b in stub.seen} == {
        (0, 3, "m", "/v1/chat/completions")
    }
    assert {h["Authorization"] for h in stub.headers} == {"Bearer secret-key"}
    assert "secret-key" not in out.read_text(encoding="utf-8")
    run = read_run(out)
    assert run.samples.scores["found"].tolist() == [1.0] * (3 * N)
    assert {n: item.tokens for n, item in run.counted.items()} == {
        n: len(c.prompt) // 4 for n, c in held.contexts.items()
    }


def drops(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def fails(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
    reply(handler, 500, b'{"error": "out of memory, key was secret-key"}')


def halves(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
    reply(handler, 200, completion("half")[:40])


def cuts(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
    body = completion("cut")
    reply(handler, 200, body[:20], len(body))


def no_choice(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
    reply(handler, 200, b'{"choices": []}')


@pytest.mark.parametrize("bad", [drops, fails, halves, cuts, no_choice], ids=lambda f: f.__name__)
def test_what_fails_once_is_tried_again(bad: Any, held: CanarySet, tmp_path: Path, pauses: list[float]) -> None:
    def behave(stub: Stub, handler: Any, body: dict[str, Any], number: int) -> None:
        (bad if number < 2 else answers)(stub, handler, body, number)

    with served(behave) as stub:
        found = probe(held, Endpoint(stub.url, "m"), tmp_path / "o", workers=1, pause=pauses.append)
    assert (found.answered, found.errors, found.hits) == (N, 0, 3 * N)
    assert pauses == [0.5, 1.0]
    assert [row["tries"] for row in rows(tmp_path / "o")] == [3, 1, 1, 1]


@pytest.mark.parametrize(
    ("bad", "said"),
    [(drops, "RemoteDisconnected"), (fails, "HTTP 500"), (halves, "no chat completion"), (cuts, "IncompleteRead")],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_fails_for_good_is_an_error_in_the_denominator(
    bad: Any, said: str, held: CanarySet, tmp_path: Path, pauses: list[float]
) -> None:
    first = next(iter(held.contexts.values())).prompt

    def behave(stub: Stub, handler: Any, body: dict[str, Any], number: int) -> None:
        (bad if body["messages"][0]["content"] == first else answers)(stub, handler, body, number)

    out = tmp_path / "o"
    with served(behave) as stub:
        found = probe(held, Endpoint(stub.url, "m", "secret-key", retries=2), out, pause=pauses.append)
    assert (found.answered, found.errors, found.hits, found.needles) == (N - 1, 1, 3 * N - 3, 3 * N)
    assert said in found.first_error
    assert "secret-key" not in out.read_text(encoding="utf-8")
    run = read_run(out)
    assert len(run.samples) == 3 * N
    assert int(run.samples.errors.sum()) == 3


def test_a_slow_answer_is_an_error(held: CanarySet, tmp_path: Path) -> None:
    free = threading.Event()

    def behave(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
        free.wait(5)
        handler.close_connection = True

    with served(behave) as stub:
        start = time.monotonic()
        found = probe(held, Endpoint(stub.url, "m", timeout_s=0.05, retries=0), tmp_path / "o")
        took_s = time.monotonic() - start
        free.set()
    assert (found.answered, found.errors) == (0, N)
    assert "timed out" in found.first_error
    assert took_s < 4


def test_a_bad_request_is_an_error_of_that_context_at_once(
    held: CanarySet, tmp_path: Path, pauses: list[float]
) -> None:
    def behave(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
        reply(handler, 400, b'{"message": "too long"}')

    with served(behave) as stub:
        found = probe(held, Endpoint(stub.url, "m"), tmp_path / "o", pause=pauses.append)
    assert (found.errors, pauses, len(stub.seen)) == (N, [], N)
    assert "too long" in found.first_error


def test_goes_on_where_it_stopped(held: CanarySet, tmp_path: Path) -> None:
    out = tmp_path / "o"
    with served() as stub:
        endpoint = Endpoint(stub.url, "m")
        probe(held, endpoint, out)
        whole = out.read_bytes()
        lines = whole.splitlines(keepends=True)
        out.write_bytes(lines[0] + lines[1] + lines[2][:30])  # killed while it wrote the third
        del stub.seen[:]
        found = probe(held, endpoint, out)
        assert len(stub.seen) == N - 2
        assert (found.before, found.answered, found.hits) == (2, N, 3 * N)
        assert out.read_bytes().startswith(lines[0] + lines[1] + lines[2][:30] + b"\n")
        probe(held, endpoint, out)
        assert len(stub.seen) == N - 2
    run = read_run(out, held)
    assert len(run.samples) == 3 * N
    assert [loss.count for loss in run.samples.lost] == [1]


def test_errors_are_asked_again_only_where_that_is_said(held: CanarySet, tmp_path: Path) -> None:
    out = tmp_path / "o"
    with served(fails) as stub:
        probe(held, Endpoint(stub.url, "m", retries=0), out)
        assert probe(held, Endpoint(stub.url, "m", retries=0), out).errors == N
        assert len(stub.seen) == N
        stub.behave = answers
        found = probe(held, Endpoint(stub.url, "m"), out, retry_errors=True)
    assert (found.answered, found.errors) == (N, 0)
    run = read_run(out)
    assert run.samples.scores["found"].all()
    assert [(loss.count, "asked again" in loss.what) for loss in run.samples.lost] == [(N, True)]


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_refused_endpoint_keeps_what_is_done(held: CanarySet, tmp_path: Path, pauses: list[float]) -> None:
    out = tmp_path / "o"
    with served() as stub:
        probe(held, Endpoint(stub.url, "m"), out)
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(lines[0])
    gone = Endpoint(f"http://127.0.0.1:{closed_port()}/v1", "m", retries=1)
    with pytest.raises(InputError, match="an endpoint that answers") as caught:
        probe(held, gone, out, workers=2, pause=pauses.append)
    assert f"1 of {N} contexts are kept" in caught.value.hint
    assert caught.value.exit_code == 2
    assert out.read_bytes() == lines[0]


@pytest.mark.parametrize("status", [401, 404, 302])
def test_what_refuses_every_request_is_not_asked_again(status: int, held: CanarySet, tmp_path: Path) -> None:
    def behave(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
        handler.send_response(status)
        handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with served(behave) as stub, pytest.raises(InputError, match=f"HTTP {status}"):
        probe(held, Endpoint(stub.url, "m", "secret-key"), tmp_path / "o", workers=1)
    assert len(stub.seen) == 1


def test_another_set_or_model_does_not_share_a_file(held: CanarySet, tmp_path: Path) -> None:
    out = tmp_path / "o"
    with served() as stub:
        probe(held, Endpoint(stub.url, "m"), out)
        with pytest.raises(InputError, match="results of the model other"):
            probe(held, Endpoint(stub.url, "other"), out)
        with pytest.raises(InputError, match="results of the set"):
            probe(replace(held, sha256="0" * 64), Endpoint(stub.url, "m"), out)


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "ftp://host/v1", "http://", "http://user:pass@host/v1"])
def test_only_plain_addresses(url: str) -> None:
    with pytest.raises(InputError, match="endpoint") as caught:
        Endpoint(url, "m")
    assert "pass@" not in str(caught.value)


def test_the_key_is_in_no_text_of_the_endpoint() -> None:
    assert "secret" not in repr(Endpoint("http://h/v1", "m", "secret"))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # this machine is asked directly all the same


def test_a_reply_that_does_not_end_is_an_error(held: CanarySet, tmp_path: Path) -> None:
    def drips(_stub: Stub, handler: Any, _body: dict[str, Any], _number: int) -> None:
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(40):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.05)

    with served(drips) as stub:
        found = probe(held, Endpoint(stub.url, "m", timeout_s=0.3, retries=0), tmp_path / "o")
    assert (found.answered, found.errors) == (0, N)
    assert "does not end" in found.first_error


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="a port"):
        Endpoint("http://127.0.0.1:99999/v1", "m")
