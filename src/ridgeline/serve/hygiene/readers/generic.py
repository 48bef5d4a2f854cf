"""Anything else with a prompt: ``{"prompt": "..."}``, as in completions logs and data sets."""

from ridgeline.serve.hygiene import envelope
from ridgeline.serve.hygiene.readers.vllm import READER as VLLM
from ridgeline.serve.hygiene.request import Part, Record, Request, RequestReader


def _claims(record: Record) -> bool:
    body = envelope.body(record)
    return isinstance(body.get("prompt"), str) and "messages" not in body and not VLLM.claims(record)


def _read(record: Record) -> Request:
    body = envelope.body(record)
    used = envelope.usage_of(record)
    details = used.get("prompt_tokens_details")
    return Request(
        parts=(Part("prompt", body["prompt"].encode("utf-8", "surrogatepass")),),
        model=envelope.model(record, body),
        time_s=envelope.time_s(record),
        usage=envelope.usage(
            used.get("prompt_tokens"), details.get("cached_tokens") if isinstance(details, dict) else None
        ),
    )


READER = RequestReader("plain prompt", _claims, _read)
