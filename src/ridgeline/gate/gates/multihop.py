"""`multihop`: questions whose answer is a relation between episodes, found only where every hop is."""

from collections.abc import Sequence
from dataclasses import replace

from ridgeline.core.case import Column as Head
from ridgeline.core.case import Section, Table
from ridgeline.core.errors import InputError
from ridgeline.core.finding import Finding, Verdict
from ridgeline.core.format import significant
from ridgeline.gate.case import Decided, name_of
from ridgeline.gate.decision import Check
from ridgeline.gate.evidence.findings import evidence_checks, evidence_findings
from ridgeline.gate.evidence.pairing import Pairs, pair
from ridgeline.gate.evidence.retrieval import ANSWER, Gold, Run, hops_of, metrics_at, scored
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.gate import Gate
from ridgeline.gate.judging.described import flips, ids_of
from ridgeline.gate.judging.paired import Column, by_slices, checks, column, columns, overall
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.registration.record import hash_of_ids
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.ranking import wilson
from ridgeline.gate.statistics.sizes import needed

GATE = Gate(
    "multihop", "Multi-hop retrieval",
    "A retriever that finds one hop of a question and never the other, which averages do not see.",
)  # fmt: skip
K = 5
HOPS = "hops"
FELL, ALIKE = "fell", "fell by the same in every question"
EITHER = 0.025  # each side of the 95% interval of one recall


def decide(gold: Gold, baseline: Run | None, candidate: Run, plan: Plan, k: int = K) -> Decided:
    """Ship only where the candidate finds all evidence as often as the baseline, within the margin.

    Without a baseline nothing ships. Raises `InputError` as scoring does, and for a metric that the runs do not have.
    """
    cand = scored(gold, candidate, k, plan.on_error)
    if baseline is None:
        return _alone(gold, cand, plan, k)
    pairs = pair(scored(gold, baseline, k, plan.on_error), cand)
    wanted = _judged(pairs, plan, k)
    ruled = plan.model_copy(update={"metrics": wanted})
    judged = columns(pairs, ruled)
    required = (*(_lossable(check, judged) for check in checks(judged)), *evidence_checks(pairs, ruled))
    others = [column(pairs, ruled, name) for name in pairs.metrics if name not in wanted]
    described = [replace(overall(item), required=False) for item in others]
    if plan.slices != HOPS:
        described += _by_hops(pairs, ruled, wanted)
    every = [*judged, *others]
    tables = {"gate.multihop.scores": scores(every), "gate.multihop.hops": hops_table(gold, pairs, k)}
    flipped = {f"gate.flips.{item.name}": flips(item) for item in judged}
    return Decided(
        GATE,
        f"{candidate.name} against {baseline.name}",
        (*required, *described),
        change=_seen(len(gold), required[0]),
        inputs=(gold.file, *pairs.baseline.inputs, *pairs.candidate.inputs),
        lost=(*gold.lost, *pairs.baseline.lost, *pairs.candidate.lost),
        findings=tuple(item for item in evidence_findings(pairs, ruled) if not _not_logged(item)),
        sections=(
            Section("What each figure sees", _said(every, k), ("gate.multihop.scores",)),
            Section("By number of hops", (), ("gate.multihop.hops",)),
            Section("Which questions", ("Questions that only one of the runs has in full.",), tuple(flipped)),
        ),
        tables=tables | flipped,
        ids=ids_of(pairs),
    )


def _lossable(check: Check, judged: Sequence[Column]) -> Check:
    """No evidence where the baseline itself finds so little that it could all be lost inside the margin."""
    rates = [float(item.base.mean()) for item in judged if item.name == check.metric]
    if check.name != "overall" or check.interval.degenerate or not rates or rates[0] > check.margin:
        return check
    why = f"the baseline itself has {rates[0]:.1%}, so that a loss cannot show"
    return replace(check, interval=replace(check.interval, degenerate=why), needed=None)


def _not_logged(item: Finding) -> bool:
    """Whether a finding says that prompts or settings are not in the log: a retrieval run has neither."""
    return item.code in ("G102", "G104") and item.verdict is Verdict.UNKNOWN


def _judged(pairs: Pairs, plan: Plan, k: int) -> tuple[str, ...]:
    """The metrics that decide: all-evidence recall, unless the plan names others."""
    unknown = [name for name in plan.metrics if name not in pairs.metrics]
    if unknown:
        hint = "the runs have: " + ", ".join(pairs.metrics)
        raise InputError.expected("a metric of both runs", unknown[0], where="--metric", hint=hint)
    return plan.metrics or metrics_at(k)[:1]


def _by_hops(pairs: Pairs, plan: Plan, wanted: Sequence[str]) -> list[Check]:
    """Every number of hops, described: few questions have three."""
    cut = plan.model_copy(update={"slices": HOPS})
    found = [check for name in wanted for check in by_slices(column(pairs, cut, name))]
    return [replace(check, required=False) for check in found]


def _alone(gold: Gold, cand: Samples, plan: Plan, k: int) -> Decided:
    """One run alone: what it finds, and that there is nothing to compare it with."""
    name = metrics_at(k)[0]
    share = float(cand.scores[name].mean())
    variance = plan.variance or max(2 * share * (1 - share), plan.margin)
    wanted = needed(variance, plan.margin, alpha=plan.alpha, power=plan.power)
    nothing = Interval(0.0, -1.0, 1.0, 0, plan.alpha, "no interval", degenerate="no baseline to compare with")
    check = Check("overall", name, nothing, plan.margin, "%", wanted, counts="questions",
                  basis="if the runs agree no more often than by chance")  # fmt: skip
    rows = []
    for metric, values in cand.scores.items():
        binary = metric in (*metrics_at(k)[:2], ANSWER[0])
        at = wilson(int(values.sum()), len(values), EITHER) if binary else None
        rows.append((metric, 100 * float(values.mean()), *((100 * at.low, 100 * at.high) if at else ("", ""))))
    heads = (Head("metric", "Figure"), Head("value", "Candidate", "%"), Head("low", "Low", "%"),
             Head("high", "High", "%"))  # fmt: skip
    table = Table("What the run finds", heads, tuple(rows), note="Wilson intervals at 95%.")
    return Decided(
        GATE, f"{cand.run} alone", (check,), inputs=(gold.file, *cand.inputs), lost=(*gold.lost, *cand.lost),
        sections=(Section("What each figure sees", (), ("gate.multihop.scores",)),),
        tables={"gate.multihop.scores": table}, ids=lambda: (hash_of_ids(cand.keys.tolist()),),
    )  # fmt: skip


def scores(found: Sequence[Column]) -> Table:
    """Every figure of both runs with the interval of its change."""
    rows = []
    for item in found:
        at = overall(item).interval
        none = bool(at.degenerate)
        rows.append((
            item.name, 100 * float(item.base.mean()), 100 * float(item.cand.mean()), 100 * at.estimate,
            "" if none else 100 * at.low, "" if none else 100 * at.high,
            _says(at),
        ))  # fmt: skip
    heads = (
        Head("metric", "Figure"), Head("baseline", "Baseline", "%"), Head("candidate", "Candidate", "%"),
        Head("delta", "Change", "point"), Head("low", "Low", "point"), Head("high", "High", "point"),
        Head("says", "What it says"),
    )  # fmt: skip
    return Table("Figures of both runs", heads, tuple(rows))


def _says(at: Interval) -> str:
    if at.degenerate:
        return ALIKE if at.estimate < 0 else "did not fall"
    return FELL if at.high < 0 else "rose" if at.low > 0 else "cannot tell"


def _said(found: Sequence[Column], k: int) -> tuple[str, ...]:
    """Whether the figures that averages are made of saw what the one that needs every hop saw."""
    first = (
        f"All-evidence recall@{k} counts a question only if every hop is among the first {k}; the others count parts."
    )
    says = {item.name: _says(overall(item).interval) for item in found}
    whole, *rest = metrics_at(k)
    if says.get(whole) != FELL:
        return (first,)
    blind = [name for name in rest if name in says and says[name] not in (FELL, ALIKE)]
    if not blind:
        return (first,)
    return (first, f"It fell for certain. {', '.join(blind)} did not show it.")


def hops_table(gold: Gold, pairs: Pairs, k: int) -> Table:
    """All-evidence and any-evidence recall by number of hops."""
    whole, some = metrics_at(k)[:2]
    rows = []
    labels = pairs.baseline.labels[HOPS]
    for name, n in hops_of(gold).items():
        at = labels == name
        if not at.any():
            continue
        shares = [100 * float(run.scores[metric][at].mean())
                  for metric in (whole, some) for run in (pairs.baseline, pairs.candidate)]  # fmt: skip
        rows.append((name, n, *shares))
    heads = (
        Head("hops", "Hops"), Head("n", "n"), Head("all_base", "All, baseline", "%"),
        Head("all_cand", "All, candidate", "%"), Head("any_base", "Any, baseline", "%"),
        Head("any_cand", "Any, candidate", "%"),
    )  # fmt: skip
    return Table("Recall by number of hops", heads, tuple(rows))


def _seen(n: int, check: Check) -> str:
    """What so few questions cannot see."""
    at = wilson(n // 2, n, EITHER)
    words = (
        f"With {n:,} questions one recall alone is known to {significant(50 * (at.high - at.low))} points either way "
        "(Wilson at one half, 95%)"
    )
    if check.detectable is None:
        return f"{words}."
    least = name_of(GATE, check, "detectable")
    return f"{words}; paired, no margin below {{{least}}} can be cleared."
