"""``ridgeline plan``."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ridgeline.cli import _talk


def command(
    chips: Annotated[str, typer.Option("--chips", help="How many of what, such as 1000xH100.")],
    days: Annotated[str, typer.Option("--days", help="Wall-clock time, such as 30 or 30d.")],
    mfu: Annotated[float | None, typer.Option("--mfu", help="6ND over dense peak, 0 to 1.")] = None,
    price: Annotated[float | None, typer.Option("--price", help="Dollars per chip-hour.")] = None,
    tokens: Annotated[str, typer.Option("--tokens", help="Unique tokens available, such as 15T.")] = "",
    served: Annotated[
        str, typer.Option("--served", help="Tokens served over the model's life: 1e12..1e16, or a list with commas.")
    ] = "",
    turn: Annotated[
        str, typer.Option("--turn", help="Latency need: PREFILL+DECODE@BUDGET, such as 8k+128@1s; 0.25 s is overhead.")
    ] = "",
    serve_on: Annotated[
        str, typer.Option("--serve-on", help="Chips one conversation may occupy, such as 8xH100.")
    ] = "",
    sizes: Annotated[str, typer.Option("--sizes", help="Candidate sizes to compare, such as 8B,30B,70B.")] = "",
    law: Annotated[list[str] | None, typer.Option("--law", help="Scaling law; the first decides. Repeatable.")] = None,
    output: _talk.Output = None,
    as_json: _talk.AsJson = False,
) -> None:
    """From a cluster and a time to a model: compute, size, tokens, cost, and whether it can be served.

    With --model instead, from a job to its parallel plans: ridgeline plan layout -h.
    """
    from ridgeline.core.config import load
    from ridgeline.core.specs import build
    from ridgeline.plan.case import plan_case
    from ridgeline.plan.study import Study, need_of, traffic_of

    budget = {"chips": chips, "days": days, "mfu": mfu, "dollars_per_chip_hour": price, "unique_tokens": tokens or None}
    data: dict[str, Any] = {"budget": {key: value for key, value in budget.items() if value is not None}}
    data |= {"need": need_of(turn, serve_on)} if turn or serve_on else {}
    data |= {"traffic": traffic_of(served)} if served else {}
    data |= {"candidates": sizes.split(",")} if sizes else {}
    study = build(Study, data | {"laws": tuple(law or ())})
    options = {"--chips": chips, "--days": days, "--mfu": mfu, "--price": price, "--tokens": tokens, "--served": served,
               "--turn": turn, "--serve-on": serve_on, "--sizes": sizes}  # fmt: skip
    case = plan_case(study, command=_typed(options, law or []), config=load())
    _talk.hand_over(case, _talk.plain_card, as_json=as_json, output=output)


def _typed(options: Mapping[str, object], laws: Sequence[str]) -> str:
    """The command line that makes this case, without what only says where it goes."""
    words = [word for flag, value in options.items() if value not in (None, "") for word in (flag, str(value))]
    return shlex.join(["ridgeline", "plan", *words, *(word for name in laws for word in ("--law", name))])
