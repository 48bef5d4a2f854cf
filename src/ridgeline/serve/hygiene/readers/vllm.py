"""vLLM: JSON records with a prompt and its token ids, and the server's own lines ``Received request ...``."""

import ast
import re

from ridgeline.serve.hygiene import envelope
from ridgeline.serve.hygiene.request import Part, Record, Request, RequestReader

_IDS = ("prompt_token_ids", "input_tok_ids", "token_ids")
_MARKS = ("request_id", "sampling_params", "lora_request")
_LINE = re.compile(
    r"Received request (?P<id>[\w.\-]+): prompt: (?P<prompt>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|None), params: "
)
_TOKENS = re.compile(r"prompt_token_ids: (\[[\d,\s]*\])")


def _claims(record: Record) -> bool:
    body = envelope.body(record)
    if "messages" in body or "input" in body or "hash_ids" in body:
        return False
    return any(isinstance(body.get(key), list) for key in (*_IDS, "prompt")) or (
        isinstance(body.get("prompt"), str) and any(mark in record or mark in body for mark in _MARKS)
    )


def _read(record: Record) -> Request:
    body = envelope.body(record)
    used = envelope.usage_of(record)
    details = used.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else record.get("num_cached_tokens")
    ids = next((body[key] for key in (*_IDS, "prompt") if isinstance(body.get(key), list)), None)
    return Request(
        parts=() if ids is not None else (Part("prompt", body["prompt"].encode("utf-8", "surrogatepass")),),
        ids=envelope.token_ids(ids, "$.prompt_token_ids") if ids is not None else None,
        model=envelope.model(record, body),
        time_s=envelope.time_s(record),
        usage=envelope.usage(used.get("prompt_tokens"), cached),
    )


def _from_text(line: str) -> Record | None:
    match = _LINE.search(line)
    if match is None:
        return None
    tokens = _TOKENS.search(line, match.end())
    ids = [int(item) for item in tokens[1].strip("[] ").split(",") if item.strip()] if tokens else []
    prompt = ast.literal_eval(match["prompt"])
    record: dict[str, object] = {"request_id": match["id"]}
    return record | ({"prompt_token_ids": ids} if ids else {"prompt": prompt} if isinstance(prompt, str) else {})


READER = RequestReader("vLLM", _claims, _read, _from_text)
