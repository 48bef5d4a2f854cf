"""Asks a canary set of an OpenAI-compatible endpoint, with the standard library alone.

Results are appended as they come, so that a run that stops goes on where it was. Requests that fail are tried again
with growing pauses, and what fails for good is a row with its error: it stays in the denominator. The key comes from a
variable of the environment and is in no message and no file; redirects are refused, so that it goes nowhere else.
"""

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ridgeline.core.errors import InputError
from ridgeline.gate.canary.needles import Context, answered
from ridgeline.gate.canary.results import last_answers
from ridgeline.gate.canary.sets import CanarySet, where_of
from ridgeline.gate.evidence.files import records

PATH = "/chat/completions"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
MOST_BYTES = 64 << 20  # of one reply
SHOWN = 200  # characters of an error that are kept
_ANSWER_TOKENS = 32  # of one needle
_RETRIED = (408, 409, 425, 429)
_REFUSING = (401, 403, 404, 405)  # no other request would fare better
_FAULTS = (OSError, http.client.HTTPException, ValueError)


class _UnreachableError(Exception):
    """No request can succeed: nothing listens there, or it takes none of ours."""


@dataclass(frozen=True)
class Endpoint:
    """Where and how to ask. ``max_tokens`` of an answer: 0 for so many a needle."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout_s: float = 600.0
    retries: int = 4
    max_tokens: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        try:
            parts.port  # noqa: B018 - it is read for its error
        except ValueError as error:
            raise InputError.expected("a port from 0 to 65535", self.url, where="--endpoint") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            hint = "such as http://127.0.0.1:8000/v1"
            raise InputError.expected("an endpoint over http or https", self.shown, where="--endpoint", hint=hint)
        if parts.username or parts.password:
            hint = "put the key into a variable of the environment and name it with --key-env"
            raise InputError.expected("an endpoint without a password", self.shown, where="--endpoint", hint=hint)

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"

    @property
    def address(self) -> str:
        """Where requests go."""
        whole = self.url.rstrip("/")
        return whole if whole.endswith(PATH) else whole + PATH


@dataclass(frozen=True)
class Answer:
    """What came back, or why nothing did."""

    text: str | None
    error: str = ""
    prompt_tokens: int | None = None
    finish: str = ""
    tries: int = 1
    took_s: float = 0.0


@dataclass(frozen=True)
class Summary:
    """How the set stands after a run: contexts of the set, of which ``before`` were there, and what was found."""

    contexts: int
    before: int
    answered: int
    errors: int
    needles: int
    hits: int
    first_error: str = ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(host: str | None) -> urllib.request.OpenerDirector:
    """Proxies of the environment, but none to this machine."""
    local = host in ("localhost", "127.0.0.1", "::1")
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if local:
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def ask(endpoint: Endpoint, prompt: str, max_tokens: int, pause: Callable[[float], object] = time.sleep) -> Answer:
    """One prompt, with retries. Raises the internal error of an endpoint that can answer none."""
    opener = _opener(urlsplit(endpoint.url).hostname)
    start, said, status = time.monotonic(), "", 0
    gone = False
    for attempt in range(endpoint.retries + 1):
        if attempt:
            pause(min(FIRST_PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S))
        try:
            with opener.open(_request(endpoint, prompt, max_tokens), timeout=endpoint.timeout_s) as reply:
                text, tokens, finish = _read(_whole(reply, time.monotonic() + endpoint.timeout_s))
            return Answer(text, "", tokens, finish, attempt + 1, time.monotonic() - start)
        except urllib.error.HTTPError as error:
            status, gone = error.code, False
            said = _plain(f"HTTP {status}: {_body(error)}", endpoint)
            if status in _REFUSING or 300 <= status < 400:
                raise _UnreachableError(said) from None
            if status < 500 and status not in _RETRIED:
                break
        except _FAULTS as error:
            gone = isinstance(getattr(error, "reason", error), ConnectionRefusedError | _name_errors())
            said = _plain(f"{type(error).__name__}: {error}", endpoint)
    if gone:
        raise _UnreachableError(said)
    return Answer(None, said, None, "", attempt + 1, time.monotonic() - start)


def _name_errors() -> type[Exception]:
    import socket

    return socket.gaierror


def _request(endpoint: Endpoint, prompt: str, max_tokens: int) -> urllib.request.Request:
    body = {
        "model": endpoint.model, "messages": [{"role": "user", "content": prompt}], "temperature": 0,
        "seed": endpoint.seed, "max_tokens": max_tokens, "stream": False,
    }  # fmt: skip
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    return urllib.request.Request(endpoint.address, json.dumps(body).encode(), headers, method="POST")


def _whole(reply: Any, until: float) -> bytes:
    """A reply's bytes. Raises for one that does not end: the timeout of a socket only bounds each piece."""
    found = bytearray()
    while piece := reply.read1(1 << 16):
        found += piece
        if len(found) > MOST_BYTES:
            raise ValueError(f"a reply of more than {MOST_BYTES:,} bytes")
        if time.monotonic() > until:
            raise TimeoutError("a reply that does not end")
    if reply.length:
        raise http.client.IncompleteRead(bytes(found), reply.length)
    return bytes(found)


def _read(raw: bytes) -> tuple[str, int | None, str]:
    """Text, prompt tokens and why it ended. Raises ``ValueError`` for what is no chat completion."""
    try:
        document = json.loads(raw)
        choice = document["choices"][0]
        text, finish = choice["message"]["content"], choice.get("finish_reason")
        usage = document.get("usage") or {}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"no chat completion in {len(raw)} bytes ({type(error).__name__})") from error
    if text is not None and not isinstance(text, str):
        raise ValueError("a completion whose content is no text")
    tokens = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return text or "", tokens if isinstance(tokens, int) else None, str(finish or "")


def _body(error: urllib.error.HTTPError) -> str:
    try:
        return error.read(4 * SHOWN).decode("utf-8", "replace")
    except _FAULTS:
        return ""


def _plain(text: str, endpoint: Endpoint) -> str:
    """One line of an error, without the key."""
    hidden = text.replace(endpoint.key, "[key]") if endpoint.key else text
    return " ".join(hidden.split())[:SHOWN]


def probe(
    canary: CanarySet,
    endpoint: Endpoint,
    out: Path,
    *,
    workers: int = 8,
    retry_errors: bool = False,
    say: Callable[[str], object] = lambda _: None,
    pause: Callable[[float], object] = time.sleep,
) -> Summary:
    """Ask every context that ``out`` has no row of, and append the answers.

    ``retry_errors`` asks those again whose row is an error. Raises `InputError` for an ``out`` of another set or model,
    and for an endpoint that refuses: what came before stays.
    """
    earlier = _earlier(out, canary, endpoint)
    done = {name for name, row in earlier.items() if not (retry_errors and row.get("error"))}
    left = [item for name, item in canary.contexts.items() if name not in done]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("ab") as stream:
        if out.stat().st_size and not _ends_whole(out):
            stream.write(b"\n")  # a line that was cut off stays a line of its own
        refused = _all(left, canary, endpoint, _Work(stream, workers, say, pause))
    if refused:
        kept = len(_earlier(out, canary, endpoint))
        hint = f"{kept:,} of {len(canary.contexts):,} contexts are kept in {out}; the same command goes on from there"
        raise InputError.expected("an endpoint that answers", refused, where=endpoint.shown, hint=hint)
    return summary(_earlier(out, canary, endpoint), canary, len(done))


def _earlier(out: Path, canary: CanarySet, endpoint: Endpoint) -> Mapping[str, Mapping[str, Any]]:
    if not out.exists() or not out.read_bytes().strip():
        return {}
    rows = [row for row in records(out).rows if "id" in row]
    for key, wanted in (("set", canary.sha256), ("model", endpoint.model)):
        other = next((row.get(key) for row in rows if row.get(key) != wanted), wanted)
        if other != wanted:
            hint = "name another file with -o"
            raise InputError.expected(f"results of the {key} {wanted[:32]}", str(other)[:32], where=str(out), hint=hint)
    return last_answers(rows, str(out))[0]


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"


@dataclass
class _Work:
    stream: IO[bytes]
    workers: int
    say: Callable[[str], object]
    pause: Callable[[float], object]
    stop: threading.Event = field(default_factory=threading.Event)


def _all(left: Sequence[Context], canary: CanarySet, endpoint: Endpoint, work: _Work) -> str:
    """Ask all, a few at a time; why the endpoint refused, or nothing."""
    start, refused, done = time.monotonic(), "", 0
    waiting = iter(left)
    with ThreadPoolExecutor(max(1, work.workers)) as pool:
        running: dict[Future[Answer | None], Context] = {}
        try:
            while True:
                while len(running) < work.workers and not refused and (item := next(waiting, None)) is not None:
                    running[pool.submit(_one, endpoint, item, work)] = item
                if not running:
                    return refused
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    item, done = running.pop(future), done + 1
                    refused = _kept(future, item, canary, (endpoint, work)) or refused
                    if done % 20 == 0:
                        rate = done / max(time.monotonic() - start, 1e-9)
                        work.say(f"{done:,} of {len(left):,} contexts, about {(len(left) - done) / rate:,.0f} s left")
        finally:
            work.stop.set()


def _one(endpoint: Endpoint, item: Context, work: _Work) -> Answer | None:
    if work.stop.is_set():
        return None
    needed = _ANSWER_TOKENS * (len(item.needles) + 2)
    return ask(endpoint, item.prompt, endpoint.max_tokens or needed, work.pause)


def _kept(future: "Future[Answer | None]", item: Context, canary: CanarySet, how: tuple[Endpoint, _Work]) -> str:
    """Write one answer; why the endpoint refused instead."""
    endpoint, work = how
    try:
        answer = future.result()
    except _UnreachableError as error:
        work.stop.set()
        return str(error)
    if answer is not None:
        work.stream.write(result_line(item, canary, endpoint, answer).encode("utf-8", "surrogatepass"))
        work.stream.flush()
    return ""


def result_line(item: Context, canary: CanarySet, endpoint: Endpoint, answer: Answer) -> str:
    """One line of the results: the answer, with what is needed to judge it without the set."""
    row = {
        "id": item.id, "set": canary.sha256, "model": endpoint.model, "seed": endpoint.seed, "length": item.length,
        "needles": [{"id": n.id, "key": n.key, "value": n.value, **where_of(n)} for n in item.needles],
        "unplaced": [{"value": gone.value, "times": gone.times} for gone in item.unplaced],
        "answer": answer.text, "error": answer.error, "finish": answer.finish, "prompt_tokens": answer.prompt_tokens,
        "tries": answer.tries, "took_s": round(answer.took_s, 3),
    }  # fmt: skip
    return json.dumps(row, ensure_ascii=True) + "\n"


def summary(rows: Mapping[str, Mapping[str, Any]], canary: CanarySet, before: int) -> Summary:
    """What the rows hold; an error has no hit and counts all its needles."""
    asked = {name: row for name, row in rows.items() if name in canary.contexts}
    errors = [str(row["error"]) for row in asked.values() if row.get("error")]
    needles = hits = 0
    for name, row in asked.items():
        pairs = [(needle.key, needle.value) for needle in canary.contexts[name].needles]
        needles += len(pairs)
        hits += 0 if row.get("error") else sum(answered(str(row.get("answer")), pairs))
    first = errors[0] if errors else ""
    return Summary(len(canary.contexts), before, len(asked) - len(errors), len(errors), needles, hits, first)
