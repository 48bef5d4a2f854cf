"""A forecast as a `Case`: the verdict, the findings, the fit report, the fan, and the record on held-out runs."""

from dataclasses import dataclass
from functools import cached_property

from ridgeline.core import plugins
from ridgeline.core.case import Case
from ridgeline.core.errors import InputError
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.core.format import parenthesised
from ridgeline.core.quantity import Quantity
from ridgeline.forecast.calibrate import Held, calibrate
from ridgeline.forecast.cases import fan
from ridgeline.forecast.cases.derived import constants, short
from ridgeline.forecast.cases.fit_sections import fit_section, isoflop_section, residual_section
from ridgeline.forecast.cases.outlook import outlook
from ridgeline.forecast.cases.settings import Settings
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.fitting.bootstrap import Draws, bootstrap
from ridgeline.forecast.fitting.fit import Fit, fit
from ridgeline.forecast.fitting.objective import objective
from ridgeline.forecast.forecast import Forecast, Options, Study, study
from ridgeline.forecast.forms import form
from ridgeline.forecast.isoflop import IsoFlop, isoflop
from ridgeline.forecast.points import Points


@dataclass(frozen=True)
class Target:
    """A run to forecast: its compute in FLOP, or its parameters and tokens."""

    compute_flops: float | None = None
    n: float | None = None
    d: float | None = None


@dataclass(frozen=True)
class Question:
    """A ladder, what is asked of it, and how. ``calibrated`` also holds out the ladder's upper decades."""

    points: Points
    target: Target
    settings: Settings
    calibrated: bool = False

    @property
    def options(self) -> Options:
        """How `study` is to work."""
        chosen = self.settings
        return Options(
            forms=tuple(form(slug) for slug in chosen.laws),
            objective=objective(chosen.objective),
            interval=chosen.interval or "calibrated",
            level=chosen.level,
            draws=chosen.draws,
            seed=chosen.seed,
        )


@dataclass(frozen=True)
class Answer:
    """What was worked out for a question. ``reported`` is the fit of the first law, which the fit report is about."""

    question: Question
    study: Study
    forecast: Forecast
    isoflop: IsoFlop | None
    held: tuple[Held, ...]

    @cached_property
    def reported(self) -> Fit:
        """The fit of the law that was asked for first, Chinchilla's by default."""
        if self.study.choice.index == 0:
            return self.study.fit
        return fit(self.study.points, self.study.forms[0], self.study.options.objective, starts=self.study.thetas[0])

    @cached_property
    def draws(self) -> Draws:
        """Resamples of the reported fit."""
        options = self.study.options
        known = [found for found in self.forecast.draws.values() if found.fit is self.reported]
        return known[0] if known else bootstrap(self.reported, "point", options.draws, options.seed)


def answer(question: Question) -> Answer:
    """Study the ladder and forecast the target. Raises `InputError` for a ladder or target that cannot be used."""
    made = study(question.points, question.options)
    target = question.target
    found = made.at(target.compute_flops, n=target.n, d=target.d)
    held = calibrate(question.points, question.options) if question.calibrated else ()
    try:
        budgets = isoflop(question.points)
    except InputError:  # a ladder without N, D, C or loss has none
        budgets = None
    return Answer(question, made, found, budgets, held)


def forecast_case(question: Question, *, command: str = "", config: RuleConfig | None = None) -> Case:
    """The case of a forecast. ``config`` selects, ignores and re-thresholds the F rules."""
    found = answer(question)
    points = question.points
    where = f"{found.forecast.compute:.4g}".replace("e+", "e")
    case = Case("forecast", f"{short(points)}, {len(points)} runs, to {where} FLOP", command=command)
    case.inputs = [points.source] if points.source else []
    case.lost = [*points.lost, *(f"taken: {text}" for text in points.assumed), *_failed(found)]
    facts = Facts(points, found.reported, found.draws, found.isoflop, found.forecast)
    known = constants(found.reported, "fit")
    numbers = _outlook(case, found, known)
    case.add_findings(run_rules(plugins.rules_of("forecast", config), facts, config, family="F"))
    made = [fan.section(case, found.study, found.forecast, numbers)]
    if question.calibrated:
        made.append(fan.calibrated_section(case, found.held, found.study.fit.form.title))
    made += [
        fit_section(case, found.reported, found.draws, known, found.study.fit),
        fan.record_section(case, found.study, found.forecast),
    ]
    budgets = isoflop_section(case, found.isoflop, points, found.forecast.compute) if found.isoflop else None
    case.sections = [*made, *([budgets] if budgets else []), residual_section(case, found.study.fit)]
    case.decision, case.because = _decision(found.forecast), _because(found.forecast)
    return case


def _outlook(case: Case, found: Answer, known: dict[str, Quantity]) -> dict[str, Quantity]:
    """Add the numbers of the forecast; another law than the reported one brings its constants as ``forecast.fit.*``."""
    own = known if found.reported is found.study.fit else constants(found.study.fit, "forecast.fit")
    numbers = outlook(found.forecast, own, 10**found.study.top)
    case.add(*known.values(), *own.values(), *numbers.values())
    return numbers


def _failed(found: Answer) -> list[str]:
    return [
        f"{draws.failed} of {draws.count} resamples of {name} could not be fitted and are in no interval"
        for name, draws in {**found.forecast.draws, "the fit report": found.draws}.items()
        if draws.failed
    ]


def _decision(found: Forecast) -> str:
    interval = f"({found.level:.0%}: {{forecast.low}} to {{forecast.high}})"
    where = "{forecast.params} on {forecast.tokens}, {target}"
    number = f"{{forecast.loss}} {interval}"
    if found.verdict.word == "refuse" and found.high - found.low > found.loss:
        return f"Refuse: these runs do not say what the loss of {where}, is; the interval is wider than the loss."
    if found.verdict.word == "refuse":
        return f"Refuse: the law alone would say {number} for {where}; these runs do not."
    return f"{found.verdict.word.capitalize()}: {number} for {where}."


def _because(found: Forecast) -> str:
    reasons = [parenthesised(text) for text in found.because[: fan.MOST_REASONS]]
    change = {
        "decide": "A change of recipe on the way up would change it.",
        "indicative": "A run nearer to the target would change it.",
        "refuse": "A run nearer to the target would change it; `ridgeline forecast next` names the one to buy.",
    }
    return " ".join([*reasons, change[found.verdict.word]])
