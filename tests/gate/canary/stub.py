"""A local server that speaks chat completions, and misbehaves as told."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Stub", BaseHTTPRequestHandler, dict[str, Any], int], None]


@dataclass
class Stub:
    """``behave`` answers the request of that number, from 0; ``seen`` holds bodies, ``headers`` theirs."""

    behave: Behaviour
    seen: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes, length: int | None = None) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


def completion(text: str, tokens: int = 7, finish: str = "stop") -> bytes:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": tokens}}).encode()


def codes(prompt: str) -> str:
    """All access codes of a prompt: what a perfect model answers."""
    return "\n".join(part.partition(".")[0] for part in prompt.split("The access code of ")[1:])


def answers(_stub: Stub, handler: BaseHTTPRequestHandler, body: dict[str, Any], _number: int) -> None:
    prompt = body["messages"][0]["content"]
    reply(handler, 200, completion(codes(prompt), len(prompt) // 4))


@contextmanager
def served(behave: Behaviour = answers) -> Iterator[Stub]:
    stub = Stub(behave)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with stub.lock:
                number = len(stub.seen)
                stub.seen.append({**body, "path": self.path})
                stub.headers.append(dict(self.headers.items()))
            stub.behave(stub, self, body, number)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
