"""`canary`: needles at every depth of a long context, the cheaper cache or format against the trusted one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from ridgeline.core.case import InputFile
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.finding import Finding, RuleConfig, Verdict, run_rules
from ridgeline.core.lost import Loss
from ridgeline.core.plugins import rules_of
from ridgeline.gate.canary.configs import Serving
from ridgeline.gate.canary.eviction import PAIRED, Asked, Window, audit
from ridgeline.gate.canary.facts import CODES, CanaryFacts
from ridgeline.gate.canary.results import FOUND, SET, Run, column
from ridgeline.gate.canary.serving import remarks, windows_of
from ridgeline.gate.canary.sets import CanarySet
from ridgeline.gate.canary.shown import Cell, pictures
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import Check, blocked
from ridgeline.gate.evidence.findings import evidence_checks, evidence_findings
from ridgeline.gate.evidence.pairing import Pairs, pair
from ridgeline.gate.evidence.samples import Floats
from ridgeline.gate.gate import Gate
from ridgeline.gate.judging.described import ids_of
from ridgeline.gate.judging.paired import Column, Rows, powered
from ridgeline.gate.judging.paired import column as judged
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.clusters import FEW
from ridgeline.gate.statistics.compare import compare
from ridgeline.gate.statistics.interval import Interval

GATE = Gate(
    "canary",
    "Canary retrieval",
    "Facts that a cheaper cache or format loses at some depths of a long context, and an average over depths hides.",
)
DEPTHS = 10
COUNTS = "needles"


@dataclass(frozen=True)
class Evidence:
    """Two runs over one canary set, and the serving configurations that they ran under; either may be missing."""

    baseline: Run | None = None
    candidate: Run | None = None
    canary: CanarySet | None = None
    serving: Sequence[Serving] = field(default_factory=tuple)


@dataclass(frozen=True)
class Needles:
    """The judged column of the pairs with the place of every needle."""

    item: Column
    position: Floats
    length: Floats
    depth: Floats

    @property
    def deciles(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The depth stratum of every needle, from 0."""
        return np.minimum((self.depth * DEPTHS).astype(np.int64), DEPTHS - 1)

    @property
    def buckets(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The upper end of the octave of every context's length, in tokens."""
        found: np.ndarray[tuple[int], np.dtype[np.int64]] = 2 ** np.ceil(np.log2(np.maximum(self.length, 1))).astype(
            int
        )
        return found

    def asked(self, hits: Floats) -> Asked:
        """One run's hits, for the audit of eviction."""
        assert self.item.groups is not None
        return Asked(hits, self.position, self.length, self.item.groups)


def decide(evidence: Evidence, plan: Plan, config: RuleConfig | None = None) -> Decided:
    """Ship the candidate only where every depth of every length excludes its margin, and no configuration forgets.

    Raises `InputError` for runs of different sets, one run alone, or a plan that looks more than once.
    """
    if plan.sequential:
        hint = "needles of a context are no independent pairs; register one look"
        raise InputError.expected("a plan of one look", "sequential = true", where="$.sequential", hint=hint)
    asked = plan.model_copy(update={"cluster": "context", "metrics": (FOUND,)})
    pairs = _paired(evidence)
    if pairs is None:
        return _configuration_alone(evidence, config)
    needles = _needles(pairs, asked)
    cells = tuple(_cells(needles))
    facts = _facts(evidence, needles)
    found = tuple(run_rules(rules_of("gate", config), facts, config, family=CODES))
    checks = (*_strata(needles, cells), *(cell.check for cell in cells))
    shown = pictures(cells, needles.asked(needles.item.base), needles.asked(needles.item.cand), facts)
    return Decided(
        GATE,
        f"{pairs.candidate.run} against {pairs.baseline.run}",
        (_overall(needles), *checks, *_blocked(found), *evidence_checks(pairs, asked)),
        inputs=(*pairs.baseline.inputs, *pairs.candidate.inputs, *_files(evidence)),
        lost=(*pairs.baseline.lost, *pairs.candidate.lost, *_lost(evidence)),
        findings=(*found, *evidence_findings(pairs, asked, config)),
        sections=shown.sections,
        tables=shown.tables,
        charts=shown.charts,
        ids=ids_of(pairs),
    )


def _paired(evidence: Evidence) -> Pairs | None:
    base, cand = evidence.baseline, evidence.candidate
    if base is None and cand is None:
        if not evidence.serving:
            hint = "name both runs, a serving configuration, or all"
            raise InputError.expected("results or a configuration", "neither", where="--baseline", hint=hint)
        return None
    if base is None or cand is None:
        missing = "--baseline" if base is None else "--candidate"
        raise InputError.expected("two runs", "one", where=missing, hint="a canary is paired: 8 bit against 16 bit")
    sets = [run.samples.settings.get(SET) for run in (base, cand)]
    if None not in sets and sets[0] != sets[1]:
        got = f"{str(sets[0])[:12]} against {str(sets[1])[:12]}"
        raise InputError.expected(
            "two runs over one canary set", got, where="--candidate", hint="ask both the same set"
        )
    if {item.sha256 for item in base.samples.inputs} & {item.sha256 for item in cand.samples.inputs}:
        raise InputError.expected("two runs", "one file twice", where="--candidate", hint="name the results in 8 bit")
    return pair(base.samples, cand.samples)


def _configuration_alone(evidence: Evidence, config: RuleConfig | None) -> Decided:
    longest = evidence.canary.longest if evidence.canary else None
    found = tuple(
        run_rules(rules_of("gate", config), CanaryFacts(remarks(evidence.serving, longest)), config, family=CODES)
    )
    why = "only a configuration was read: name the results with --baseline and --candidate"
    checks = (blocked("results", why), *_blocked(found))
    return Decided(GATE, "the serving configuration", checks, inputs=_files(evidence), findings=found)


def _files(evidence: Evidence) -> tuple[InputFile, ...]:
    own = (evidence.canary.file,) if evidence.canary else ()
    return (*own, *(item.file for item in evidence.serving))


def _lost(evidence: Evidence) -> tuple[Loss, ...]:
    gone = {(u.context, u.value): u for run in (evidence.baseline, evidence.candidate) if run for u in run.unplaced}
    own = evidence.canary.lost if evidence.canary else ()
    return (*own, Loss("values without a single place, not judged", len(gone))) if gone else own


def _needles(pairs: Pairs, plan: Plan) -> Needles:
    item = judged(pairs, plan, FOUND)
    kept = pairs.scores(FOUND, plan.on_error)[2]
    places = []
    for name in ("position", "length", "depth"):
        ours, theirs = (column(run, name) for run in (pairs.baseline, pairs.candidate))
        if not np.allclose(ours, theirs, rtol=0, atol=1e-3 if name == "depth" else 1):
            at = int(np.flatnonzero(~np.isclose(ours, theirs, rtol=0, atol=1))[:1].sum())
            got = f"{ours[at]:g} against {theirs[at]:g} of {pairs.baseline.keys[at]}"
            raise InputError.expected(f"one {name} of every needle in both runs", got, where="pairing")
        places.append(ours[kept])
    return Needles(item, *places)


def label(tokens: int) -> str:
    """The name of a length bucket: ``to 8K``."""
    step, unit = (2**20, "M") if tokens >= 2**20 else (2**10, "K") if tokens >= 2**10 else (1, "")
    return f"to {tokens // step:g}{unit}"


def stratum(decile: int) -> str:
    """The name of a depth stratum: ``depth 20-30%``."""
    step = 100 // DEPTHS
    return f"depth {decile * step}-{(decile + 1) * step}%"


def _cells(needles: Needles) -> Iterator[Cell]:
    """Every decile of every length that was asked; one without needles is no evidence."""
    deciles, buckets = needles.deciles, needles.buckets
    for bucket in np.unique(buckets).tolist():
        for decile in range(DEPTHS):
            at = np.flatnonzero((deciles == decile) & (buckets == bucket))
            depth, length = stratum(decile), label(bucket)
            check = _check(needles.item, f"{depth}, {length}", depth, at)
            base, cand = (float(hits[at].mean()) if len(at) else 0.0 for hits in (needles.item.base, needles.item.cand))
            yield Cell(depth, length, check, base, cand, len(np.unique(needles.item.groups[at].astype(str)))
                       if needles.item.groups is not None and len(at) else 0)  # fmt: skip


def _check(item: Column, name: str, depth: str, at: Rows) -> Check:
    margin = item.plan.margins.get(name, item.plan.margin_of(depth))
    if not len(at):
        nothing = Interval(0.0, -1.0, 1.0, 0, item.plan.alpha, "Tango score", degenerate="no needle stands there")
        return Check(name, FOUND, nothing, margin, "%", counts=COUNTS)
    assert item.groups is not None
    contexts = len(np.unique(item.groups[at].astype(str)))
    floor, rate = float(constant("gate.canary.floor").base), float(item.base[at].mean())
    interval = compare(item.base[at], item.cand[at], item.plan.alpha, item.groups[at])
    if contexts < FEW:
        interval = replace(interval, degenerate=f"{contexts} of the {FEW} contexts that are asked for")
    elif rate < floor:
        interval = replace(interval, degenerate=f"the baseline finds {rate:.0%} there, so that a loss cannot show")
    found = replace(powered(item, name, interval, margin, at), counts=COUNTS)
    if contexts < FEW:
        least = ceil((FEW - contexts) * len(at) / contexts)
        return replace(found, needed=max(found.needed or 0, least))
    return replace(found, needed=None) if interval.degenerate else found


def _strata(needles: Needles, cells: Sequence[Cell]) -> tuple[Check, ...]:
    """Every depth over all lengths; where there is one length its cells are the strata."""
    if len({cell.length for cell in cells}) < 2:
        return ()
    deciles = needles.deciles
    return tuple(_check(needles.item, stratum(d), stratum(d), np.flatnonzero(deciles == d)) for d in range(DEPTHS))


def _overall(needles: Needles) -> Check:
    item, at = needles.item, np.arange(len(needles.item.base), dtype=np.intp)
    interval = compare(item.base, item.cand, item.plan.alpha, item.groups)
    return replace(powered(item, "overall", interval, item.plan.margin, at), counts=COUNTS)


def _facts(evidence: Evidence, needles: Needles) -> CanaryFacts:
    alpha, extra = needles.item.plan.alpha, windows_of(evidence.serving)
    base, cand = needles.asked(needles.item.base), needles.asked(needles.item.cand)
    audits: Mapping[str, Sequence[Window]] = {
        PAIRED: audit(cand, alpha, reference=base.hits, extra=extra),
        "baseline": audit(base, alpha, extra=extra),
        "candidate": audit(cand, alpha, extra=extra),
    }
    runs = {"baseline": evidence.baseline, "candidate": evidence.candidate}
    gone = {(u.context, u.value): u for run in runs.values() if run for u in run.unplaced}
    counted = {name: run.counted for name, run in runs.items() if run and run.counted}
    longest = int(needles.length.max())
    return CanaryFacts(remarks(evidence.serving, longest), audits, tuple(gone.values()), len(needles.depth), counted)


def _blocked(found: Sequence[Finding]) -> tuple[Check, ...]:
    """A configuration that forgets, and prompts that were cut: the results cannot ship over either."""
    failed: dict[str, list[str]] = {}
    for item in found:
        if item.verdict is Verdict.FAIL:
            failed.setdefault(item.code, []).append(item.sentence.rstrip("."))
    return tuple(blocked(f"canary {code}", "; ".join(said)) for code, said in failed.items())
