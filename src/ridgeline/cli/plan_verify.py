"""``ridgeline plan verify``."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.case import Case


def command(
    plan: Annotated[str, typer.Option("--plan", help="Parallel sizes, such as dp=2,tp=2,zero=3,sequence_parallel=1.")],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="llama-3-70b, or a config.json, its folder, or a TOML; else a plain decoder, with experts if ep.",
        ),
    ] = "",
    micro_batches: Annotated[int, typer.Option("--micro-batches", help="Micro-batches of a step.")] = 1,
    output: _talk.Output = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Compile a small twin of the plan in JAX on virtual CPU devices, and compare its program with the prediction.

    Collectives by kind, group, count and bytes, FLOPs by term, and memory. Needs JAX: pip install "ridgeline[lab]".
    """
    from ridgeline.arithmetic.named import find_model
    from ridgeline.core.config import load
    from ridgeline.core.errors import InputError
    from ridgeline.plan.job import Plan
    from ridgeline.plan.prelaunch.review import plan_of
    from ridgeline.plan.verify.case import verify, verify_case
    from ridgeline.plan.verify.twin import plain

    if micro_batches < 1:
        raise InputError.expected("at least 1", micro_batches, where="--micro-batches")
    chosen = Plan.of(**plan_of(plan))
    spec, file = find_model(model) if model else (plain(chosen), None)
    words = ["ridgeline", "plan", "verify", *(["--model", model] if model else []), "--plan", plan]
    words += ["--micro-batches", str(micro_batches)] if micro_batches != 1 else []
    facts = verify(spec, chosen, micro_batches=micro_batches)
    case = verify_case(facts, command=shlex.join(words), inputs=[file] if file else [], config=load())
    _talk.hand_over(case, _card, as_json=as_json, output=output)


def _card(case: "Case") -> str:
    """The verdicts, then every line: the card alone would cut the tables short."""
    from ridgeline.report import sheet, terminal

    document = case.to_json()
    card = terminal.card(document | {"tables": {}, "sections": []})
    return f"{card}\n{sheet.render(document | {'title': 'Term by term', 'decision': '', 'decision_template': ''})}"
