"""Where the ledger's levers are tried: the measured step model, the admission equation, measured acceptance."""

import math
from dataclasses import dataclass, field
from typing import Any

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import catalog
from ridgeline.core.errors import InputError
from ridgeline.serve.capacity.capacity import capacity
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers.acceptance import Acceptance, fit, measured, typical
from ridgeline.serve.levers.outcome import Setup, Site, switched
from ridgeline.serve.levers.speculation import Drafter, Speculation
from ridgeline.serve.levers.stepping import StepModel
from ridgeline.serve.levers.traffic import IN_USE, Speculate, Traffic
from ridgeline.serve.levers.worth import pages_gain
from ridgeline.serve.steps.step import steps


@dataclass(frozen=True)
class _Kept:
    """Step models by what they are of: a ledger asks for the same few many times."""

    models: dict[tuple[Any, ...], tuple[Deployment, StepModel]] = field(default_factory=dict)

    def steps(self, deployment: Deployment) -> StepModel:
        made = vars(deployment)
        key = tuple(id(value) if name in ("spec", "device") else value for name, value in made.items())
        if key not in self.models:
            self.models[key] = (deployment, steps(deployment))  # the deployment is kept: its id must not be given again
        return self.models[key][1]


def site(traffic: Traffic, spec: ModelSpec) -> Site:
    """The place of a ledger for this traffic. Raises `InputError` for a drafter or a measured model it cannot find."""
    drafter = Drafter.of(traffic.speculation.drafter or ("mtp" if spec.mtp else "eagle3"))
    accepted = acceptance_of(traffic.speculation)

    def speculation(deployment: Deployment, model: StepModel) -> Speculation:
        return Speculation(deployment, model, drafter, accepted)

    return Site(_Kept().steps, sequences, speculation)


def sequences(deployment: Deployment, tokens: float, paged: bool) -> float:
    """Requests of ``tokens`` cached tokens that fit at once: in pages, or each with its longest length reserved.

    Raises `InfeasibleError` where the weights leave no room.
    """
    fits = float(capacity(deployment, math.ceil(tokens)).sequences.base)
    return fits if paged else fits * reserved_share()


def reserved_share() -> float:
    """Requests that fit in a cache without pages over those that fit with them: ``(1 - 70%)/(1 - 4%)``."""
    lost, in_pages = (catalog.constant(f"levers.fragmentation.{name}") for name in ("reserved", "paged"))
    return 1 / float(pages_gain(lost, in_pages).base)


def acceptance_of(asked: Speculate) -> Acceptance:
    """The given chance, the fit of a measured model, or the table's middle. An n-gram's depends on the text alone."""
    if asked.acceptance is not None:
        return Acceptance(asked.acceptance, asked.decay)
    if asked.model:
        drafter = "" if asked.drafter == "ngram" else asked.drafter
        return fit(measured(asked.model, drafter, asked.mode)[0].lengths).acceptance
    if asked.drafter == "ngram":
        hint = "run it on your own requests: the share of drafted tokens that are accepted at the first place"
        raise InputError.expected(
            "the acceptance of an n-gram drafter", "none", where="speculation.acceptance", hint=hint
        )
    return typical()


def setup_of(deployment: Deployment, traffic: Traffic) -> Setup:
    """The setup as it is: the levers named by ``in_use``, the hit rate that is achieved.

    Raises `InputError` for a lever that cannot be in use.
    """
    known = (*IN_USE, "speculative", "disaggregated")
    for name in traffic.in_use:
        if name not in known:
            raise InputError.expected("levers of " + ", ".join(known), name, where="in_use")
    setup = Setup(deployment, traffic, hit_rate=traffic.hit_rate if "prefix" in traffic.in_use else 0.0)
    for name in known:
        setup = switched(setup, name, name in traffic.in_use)
    return setup
