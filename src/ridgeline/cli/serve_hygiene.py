"""``ridgeline serve hygiene``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _report, _serve, _talk


def command(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Requests, one JSON document a line; gzip and Zstandard are read.")
    ],
    policy: Annotated[
        str, typer.Option("--policy", help="How the cache counts: vllm, openai (128 above 1,024) or anthropic.")
    ] = "vllm",
    block: Annotated[
        int | None, typer.Option("--block", help="Tokens of a cached block; the policy's by default.")
    ] = None,
    capacity: Annotated[
        str, typer.Option("--capacity", metavar="TOKENS", help="Also judge a cache of this size, such as 5M.")
    ] = "",
    ttl: Annotated[
        str, typer.Option("--ttl", metavar="TIME", help="A block unused for so long is gone, such as 5min.")
    ] = "",
    price: Annotated[
        str, typer.Option("--price", metavar="IN/CACHED", help="$ per million tokens, or the name of a priced model.")
    ] = "",
    rate: Annotated[
        str, typer.Option("--rate", metavar="TOKENS/S", help="Prompt tokens computed a second, to cost time.")
    ] = "",
    output: _serve.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """What keeps prompts from sharing a cached prefix, what each cause costs, and the hit rate without it.

    Reads OpenAI, Anthropic and vLLM request logs, Mooncake traces and plain prompts, also mixed in one file. Text is
    read and not kept; the report (hygiene.html, hygiene.json) shows a few dozen bytes of each difference.
    """
    import math

    from ridgeline.core import parse
    from ridgeline.core.config import load
    from ridgeline.core.quantity import given
    from ridgeline.serve.hygiene.audit import audit
    from ridgeline.serve.hygiene.case import hygiene_case
    from ridgeline.serve.hygiene.facts import Hygiene
    from ridgeline.serve.hygiene.money import price as priced
    from ridgeline.serve.hygiene.money import price_of_log
    from ridgeline.serve.hygiene.policy import cache

    size = float(parse.count(capacity, where="--capacity", what="a number of tokens")) if capacity else math.inf
    chosen = cache(policy, block=block, capacity_tokens=size,
                   ttl_s=parse.duration(ttl, where="--ttl") if ttl else None)  # fmt: skip
    cost = priced(price) if price else None
    speed = parse.count(rate, where="--rate", what="tokens a second") if rate else None
    found = audit(log, chosen)
    facts = Hygiene(
        found,
        cost or price_of_log(found.models),
        given("hygiene.prefill_rate", speed, "token/s", "--rate").titled("Prefill rate") if speed else None,
    )
    words = _report.words([
        ("", str(log)), ("--policy", "" if policy == "vllm" else policy), ("--block", block), ("--capacity", capacity),
        ("--ttl", ttl), ("--price", price), ("--rate", rate),
    ])  # fmt: skip
    case = hygiene_case(facts, command=f"ridgeline serve hygiene {words}", config=load())
    _serve.written(case, output, "hygiene", as_json=as_json)
