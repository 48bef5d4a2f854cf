"""``ridgeline gate probe``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.case import Case, InputFile
    from ridgeline.gate.canary.probe import Summary

Set = Annotated[Path, typer.Argument(metavar="CANARY", help="The set of `gate haystack`, or RULER's data.")]
Url = Annotated[str, typer.Option("--endpoint", metavar="URL", help="Such as http://127.0.0.1:8000/v1.")]
Model = Annotated[str, typer.Option("--model", help="Model as the server names it.")]
Out = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Results; what is there is not asked again.")]
KeyEnv = Annotated[str, typer.Option("--key-env", metavar="NAME", help="Variable of the environment with the key.")]
Workers = Annotated[int, typer.Option("--concurrency", min=1, help="Requests at a time.")]
Timeout = Annotated[str, typer.Option("--timeout", help="How long one request may take, such as 10min.")]
Retries = Annotated[int, typer.Option("--retries", min=0, help="Tries after the first, with growing pauses.")]
Most = Annotated[int, typer.Option("--max-tokens", min=0, help="Tokens of an answer; 0 for 32 a needle and some.")]
Seed = Annotated[int, typer.Option("--seed", help="Sent with every request; both runs should have the same.")]
Again = Annotated[bool, typer.Option("--retry-errors", help="Ask those again whose result is an error.")]


def command(
    canary: Set,
    endpoint: Url,
    model: Model,
    output: Out,
    key_env: KeyEnv = "",
    concurrency: Workers = 8,
    timeout: Timeout = "10min",
    retries: Retries = 4,
    max_tokens: Most = 0,
    seed: Seed = 0,
    retry_errors: Again = False,
    as_json: _talk.AsJson = False,
) -> None:
    """Ask a canary set of an OpenAI-compatible endpoint, at temperature 0; a run that stops goes on where it was.

    Errors are results too: they stay in the denominator.
    """
    from ridgeline.core import parse
    from ridgeline.core.errors import InputError
    from ridgeline.gate.canary.probe import Endpoint, probe
    from ridgeline.gate.canary.sets import read_set

    key = os.environ.get(key_env, "") if key_env else ""
    if key_env and not key:
        raise InputError.expected("a variable with the key", f"{key_env}, which is not set", where="--key-env")
    if output.exists() and output.samefile(canary):
        raise InputError.expected("an output beside the set", "the set itself", where=f"-o, {output}")
    wait_s = parse.duration(timeout, where="--timeout")
    asked = Endpoint(endpoint, model, key, wait_s, retries, max_tokens, seed)
    held = read_set(canary)
    found = probe(held, asked, output, workers=concurrency, retry_errors=retry_errors, say=_talk.say)
    if not found.answered:
        raise InputError.expected("an answer", f"{found.errors} errors, first: {found.first_error}", where=asked.shown)
    _talk.hand_over(_case(found, held.file, output, model), _talk.sheet, as_json=as_json)


def _case(found: "Summary", file: "InputFile", output: Path, model: str) -> "Case":
    from ridgeline.core.case import Case
    from ridgeline.core.format import parenthesised, printable
    from ridgeline.core.quantity import Source, leaf

    case = Case("gate probe", printable(f"a canary asked of {model}"))
    source = Source("the results", str(output))
    counts = {
        "contexts": ("Contexts of the set", found.contexts),
        "before": ("Contexts that were there before", found.before),
        "answered": ("Contexts that were answered", found.answered),
        "errors": ("Contexts that failed, in the denominator", found.errors),
        "needles": ("Needles asked for", found.needles),
        "hits": ("Needles found", found.hits),
    }
    for name, (title, value) in counts.items():
        case.add(leaf(f"probe.{name}", value, "1", "measured", source).titled(title))
    case.inputs = [file]
    case.decision = (
        "{probe.hits} of {probe.needles} needles were found; {probe.errors} of {probe.contexts} contexts failed."
    )
    case.because = f"Results are in {parenthesised(printable(output.name))}; {{probe.before}} were there before."
    if found.first_error:
        case.because += f" The first error: {parenthesised(printable(found.first_error))}."
    return case
