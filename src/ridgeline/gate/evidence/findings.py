"""What two paired runs are worth as evidence: the facts of the rules G101 to G109, and the checks that they block."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ridgeline.core.finding import Finding, RuleConfig, Verdict, run_rules
from ridgeline.core.format import count, fill, show
from ridgeline.core.plugins import rules_of
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.gate.decision import Check, blocked
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.evidence.samples import Floats, Mask, Samples, is_loss
from ridgeline.gate.registration.plan import Plan

CODES = ("G101", "G102", "G103", "G104", "G105", "G106", "G109")
_SOURCE = Source("the paired runs")


@dataclass(frozen=True)
class Evidence:
    """``pairs`` under the ``plan`` that decides on them."""

    pairs: Pairs
    plan: Plan = field(default_factory=lambda: Plan(gate="precision"))

    @property
    def metrics(self) -> list[str]:
        """The planned metrics that both runs have, or all but confidences."""
        known = self.pairs.metrics
        return [n for n in self.plan.metrics if n in known] or [n for n in known if not n.startswith("confidence")]

    def figure(self, name: str, title: str, value: float, unit: str = "1") -> Quantity:
        """A counted figure, ``gate.evidence.NAME``; a share takes ``%`` and the value as a fraction."""
        scaled = 100.0 * value if unit == "%" else value
        return leaf(f"gate.evidence.{name}", scaled, unit, "measured", _SOURCE).titled(title)


@dataclass(frozen=True)
class Bound:
    """Mean difference over all examples of either run, in the worst and best case for those without a partner."""

    low: float
    high: float


def slug(text: str) -> str:
    """A name as a part of a quantity's name."""
    return "".join(c if c.isalnum() else "_" for c in text.lower()).strip("_") or "score"


def worst_case(pairs: Pairs, metric: str, at: Mask | None = None) -> Bound | None:
    """Bounds of candidate minus baseline over the union of both runs; None where scores are not between 0 and 1.

    A loss may be any number, however small those seen. ``at`` chooses rows: pairs, then those of the baseline alone,
    then those of the candidate alone.

    An unknown score is 0 or 1, whichever is worse (Horowitz and Manski, JASA 95, 2000): an example that only the
    baseline has with score y changes the sum by between -y and 1 - y, one that only the candidate has by between y - 1
    and y. What failed counts as unknown too. Turned so that higher is better.
    """
    base, cand = (_union(run, other, metric) for run, other in _sides(pairs))
    if at is not None:
        base, cand = base[at], cand[at]
    if is_loss(pairs.called(metric)) or any(
        ((known < 0) | (known > 1)).any() for known in (base[~np.isnan(base)], cand[~np.isnan(cand)])
    ):
        return None
    low = np.nan_to_num(cand, nan=0.0) - np.nan_to_num(base, nan=1.0)
    high = np.nan_to_num(cand, nan=1.0) - np.nan_to_num(base, nan=0.0)
    ends = float(low.mean()), float(high.mean())
    return Bound(-ends[1], -ends[0]) if pairs.lower_is_better(metric) else Bound(*ends)


def _sides(pairs: Pairs) -> Iterator[tuple[tuple[Samples, ...], bool]]:
    yield (pairs.baseline, *pairs.alone), True
    yield (pairs.candidate, *pairs.alone), False


def _union(runs: tuple[Samples, ...], baseline: bool, metric: str) -> Floats:
    """One run's scores over the union of both: NaN where it has none."""
    paired, *alone = runs
    own, other = (alone[0], alone[1]) if baseline else (alone[1], alone[0])
    known = [_known(paired, metric), _known(own, metric)]
    gap = np.full(len(other), np.nan)
    return np.concatenate([known[0], known[1], gap] if baseline else [known[0], gap, known[1]])


def _known(run: Samples, metric: str) -> Floats:
    column = run.scores.get(metric, np.full(len(run), np.nan))
    return np.where(run.errors, np.nan, column)


def evidence_findings(pairs: Pairs, plan: Plan, config: RuleConfig | None = None) -> tuple[Finding, ...]:
    """What the rules say of the evidence, for ``Decided.findings``."""
    facts = Evidence(pairs, plan)
    return tuple(item for code in CODES for item in run_rules(rules_of("gate", config), facts, config, family=code))


def evidence_checks(pairs: Pairs, plan: Plan) -> tuple[Check, ...]:
    """One required check of no evidence for each rule that fails: such a gate is never SHIP.

    A rule that the configuration ignores is silent, and blocks all the same.
    """
    failed: dict[str, list[str]] = {}
    for item in evidence_findings(pairs, plan):
        if item.verdict is Verdict.FAIL:
            failed.setdefault(item.code, []).append(_said(item))
    return tuple(blocked(f"evidence {code}", _first(said)) for code, said in failed.items())


def _first(said: list[str]) -> str:
    return said[0] + (f"; {count(len(said) - 1, 'more finding')} of this kind" if len(said) > 1 else "")


def _said(item: Finding) -> str:
    """The finding's sentence with its figures in it."""
    known = {quantity.name: quantity for quantity in item.quantities}
    return fill(item.sentence, lambda name, digits: show(known[name], digits)).rstrip(".")
