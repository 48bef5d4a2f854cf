"""`recovery`: how much of each benchmark a candidate keeps, instead of a ratio of rounded means."""

from collections.abc import Sequence

import numpy as np

from ridgeline.core.case import Column as Head
from ridgeline.core.case import Section, Table
from ridgeline.core.catalog import constant
from ridgeline.core.format import printable
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import Check, sized
from ridgeline.gate.evidence.findings import evidence_checks, evidence_findings
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.gate import Gate
from ridgeline.gate.judging.described import flips, ids_of
from ridgeline.gate.judging.paired import Column, Rows, by_task, columns, enough_slices, finished
from ridgeline.gate.judging.shares import refuse_looks
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.compare import is_binary
from ridgeline.gate.statistics.ratio import paired_ratio, ratio_variance, rule_passes, rule_probability

GATE = Gate("recovery", "Recovery of benchmarks", "A ratio of rounded means, which ships by luck what lost too much.")
TRUE = (0.93, 0.94, 0.95, 0.97, 1.0)  # recoveries at which the rounded rule is judged


def decide(pairs: Pairs, plan: Plan) -> Decided:
    """Ship where the ratio of candidate to baseline excludes its margin, overall and for every task.

    Margins are relative: 5% asks for a recovery of 95%. Raises `InputError` for a metric or task that the runs
    do not have, and for sequential looks.
    """
    refuse_looks(plan)
    plan = by_task(pairs, plan)
    judged = columns(pairs, plan)
    tables = {f"gate.flips.{item.name}": flips(item) for item in judged}
    flipped = tuple(tables)
    tables |= {"gate.recovery.rule": rule_table(judged)}
    if lucky := luck_table(judged):
        tables["gate.recovery.luck"] = lucky
    return Decided(
        GATE,
        f"{pairs.candidate.run} against {pairs.baseline.run}",
        (
            *(check for item in judged for check in _checks(item)),
            *finished(pairs, plan),
            *enough_slices(judged),
            *evidence_checks(pairs, plan),
        ),
        inputs=(*pairs.baseline.inputs, *pairs.candidate.inputs),
        lost=(*pairs.baseline.lost, *pairs.candidate.lost),
        findings=evidence_findings(pairs, plan),
        sections=(_beside(tables), Section("Where the errors went", (), flipped)),
        tables=tables,
        ids=ids_of(pairs),
    )


def _everything(item: Column) -> Rows:
    return np.arange(len(item.base), dtype=np.intp)


def _checks(item: Column) -> list[Check]:
    plan = item.plan
    found = [_check(item, "overall", _everything(item), plan.margin)]
    return [*found, *(_check(item, name, at, plan.margin_of(name)) for name, at in item.rows.items())]


def _check(item: Column, name: str, at: Rows, margin: float) -> Check:
    plan, base, cand = item.plan, item.base[at], item.cand[at]
    groups = None if item.groups is None else item.groups[at]
    interval = paired_ratio(base, cand, plan.alpha, groups)
    found = Check(name, f"recovery of {item.name}", interval, margin, "ratio")
    spread = ratio_variance(base, cand, groups) if len(base) else float("inf")
    return sized(found, spread, plan.power) if spread and np.isfinite(spread) else found


def _rule() -> tuple[float, int]:
    least, digits = constant("gate.rounded_rule.least"), constant("gate.rounded_rule.digits")
    return float(least.base), int(digits.base)


def rule_table(judged: Sequence[Column]) -> Table:
    """What the rule of a rounded ratio says of the same data, by task."""
    (least, digits), rows = _rule(), []
    for item in judged:
        for name, at in {"overall": _everything(item), **item.rows}.items():
            base, cand = float(item.base[at].mean()), float(item.cand[at].mean())
            kept = cand / base if base else float("nan")
            says = "no answer" if not base else "pass" if rule_passes(kept, digits, least) else "fail"
            ratio = "" if not base else round(kept, digits)
            rows.append((printable(name), printable(item.name), 100 * base, 100 * cand, ratio, says, len(at)))
    heads = (
        Head("task", "Task"), Head("metric", "Metric"), Head("baseline", "Baseline", "%"),
        Head("candidate", "Candidate", "%"), Head("ratio", "Rounded ratio"), Head("rule", "Rule says"), Head("n", "n"),
    )  # fmt: skip
    return Table(f"The rule round(candidate / baseline, {digits}) >= {least:g}, shown beside", heads, tuple(rows))


def luck_table(judged: Sequence[Column]) -> Table | None:
    """How often that rule passes a candidate by its true recovery, at the n, level and disagreement of these data.

    None where no metric is of zeros and ones.
    """
    (least, digits), rows = _rule(), []
    for item in judged:
        n, right = len(item.base), float(item.base.mean())
        gained = float((item.difference > 0).mean())
        if not is_binary(item.base, item.cand) or not right:
            continue
        for true in TRUE:
            if right * (1 - true) + gained <= right:
                chance = rule_probability((n, right, gained), true, digits=digits, least=least)
                rows.append((printable(item.name), 100 * true, 100 * chance, n))
    heads = (
        Head("metric", "Metric"), Head("true", "True recovery", "%"), Head("passes", "Rule passes", "%"),
        Head("n", "n"),
    )  # fmt: skip
    return Table("How often the rounded rule passes, by the true recovery", heads, tuple(rows)) if rows else None


def _beside(tables: dict[str, Table]) -> Section:
    said = (
        "A ratio of two rounded means has no interval: at a true recovery on its threshold it passes more often than "
        "not, and it says the same of 50 examples as of 50,000."
    )
    shown = tuple(name for name in tables if name.startswith("gate.recovery."))
    return Section("The rule that this gate replaces", (said,), shown)
