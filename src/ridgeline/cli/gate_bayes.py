"""``ridgeline gate bayes``."""

from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _gate, _report, _talk

if TYPE_CHECKING:
    from ridgeline.gate.detector.labelled import Labelled
    from ridgeline.gate.registration.plan import Plan


def command(
    tpr: Annotated[str, typer.Option("--tpr", help="True-positive rate, as 0.9 or as counts 180/200.")] = "",
    fpr: Annotated[str, typer.Option("--fpr", help="False-positive rate, as 0.05 or as counts 50/1000.")] = "",
    prevalence: Annotated[
        str, typer.Option("--prevalence", help="Shares of positives with commas; 12/1200 is a sample of the field.")
    ] = "",
    detections: Annotated[
        str, typer.Option("--detections", metavar="PATH", help="Labelled decisions, or PATH#SCORE>=0.8.")
    ] = "",
    ppv: Annotated[str, typer.Option("--ppv", help="Precision that is required, such as 90%.")] = "",
    irreversible: Annotated[
        bool, typer.Option("--irreversible", help="The action cannot be undone: required in every subgroup too.")
    ] = False,
    stake: Annotated[
        list[str] | None,
        typer.Option("--stake", metavar="KEY=VALUE", help="per-day, false-alarm or miss (costs). Repeatable."),
    ] = None,
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Precision of a detector at the prevalence that it will meet: ship, do not ship, or not enough evidence.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.gate.detector.rates import Measured, detector, measured, prevalences_of, rate_of, stakes_of
    from ridgeline.gate.gates.bayes import Question, decide

    words = _report.words([
        ("--tpr", tpr), ("--fpr", fpr), ("--prevalence", prevalence), ("--detections", detections), ("--ppv", ppv),
        ("--irreversible", irreversible), ("--stake", stake), ("--registration", registration),
    ])  # fmt: skip
    chosen = _plan(ppv, registration)
    sample = _sample(detections, chosen, tpr=tpr, fpr=fpr)
    found = measured(sample, chosen.alpha) if sample else Measured(
        detector(rate_of(tpr, "--tpr"), rate_of(fpr, "--fpr"))
    )  # fmt: skip
    required = 1 - chosen.margin if ppv or registration else None
    asked = Question(
        prevalences_of(prevalence), required, irreversible, stakes_of(tuple(stake or ())), chosen.alpha, chosen.power
    )
    decided = decide(found, asked, sample)
    ci = _gate.CI(junit, github, registration)
    _gate.decided(decided, f"ridgeline gate bayes {words}", output, as_json=as_json, ci=ci, chosen=chosen)


def _plan(ppv: str, registration: _gate.PlanFile) -> "Plan":
    """The plan; its margin is the share of alarms that may be false, one minus the precision required."""
    from ridgeline.core import parse
    from ridgeline.core.errors import InputError

    false = ""
    if ppv:
        required = parse.share(ppv, where="--ppv", what="a precision")
        if not 0 < required < 1:
            raise InputError.expected("a required precision between 0 and 1", ppv, where="--ppv")
        false = f"{1 - required:.12g}"
    return _gate.plan("bayes", registration, None, margin=false)


def _sample(detections: str, chosen: "Plan", *, tpr: str, fpr: str) -> "Labelled | None":
    from ridgeline.core.errors import InputError
    from ridgeline.gate.detector.labelled import read_labelled

    if detections and (tpr or fpr):
        raise InputError.expected("--detections or rates", "both", where="--tpr, --fpr")
    if detections:
        return read_labelled(detections, chosen, subgroups=True)
    if not tpr or not fpr:
        raise InputError.expected("--tpr and --fpr, or --detections", "neither" if not tpr and not fpr else "one rate",
                                  where="ridgeline gate bayes")  # fmt: skip
    return None
