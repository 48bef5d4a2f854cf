"""`precision`: the cheaper numeric format against the one that is trusted, on the same examples."""

from ridgeline.gate.case import Decided
from ridgeline.gate.evidence.findings import evidence_checks, evidence_findings
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.gate import Gate
from ridgeline.gate.judging.calibrated import calibrated, scored, shown
from ridgeline.gate.judging.described import described, ids_of, sections
from ridgeline.gate.judging.paired import checks, columns, finished
from ridgeline.gate.registration.plan import Plan

GATE = Gate("precision", "Numeric precision", "A cheaper format that is as good on average and worse where it matters.")


def decide(pairs: Pairs, plan: Plan) -> Decided:
    """Ship the candidate's format only where every slice and the average exclude their margins.

    Raises `InputError` for a metric, slice or group that the runs do not have.
    """
    judged, confident = columns(pairs, plan), scored(pairs, plan)
    reliable = shown(confident, plan, ("baseline", "candidate"))
    tables = described(judged)
    return Decided(
        GATE,
        f"{pairs.candidate.run} against {pairs.baseline.run}",
        (*checks(judged), *finished(pairs, plan), *calibrated(confident, plan), *evidence_checks(pairs, plan)),
        inputs=(*pairs.baseline.inputs, *pairs.candidate.inputs),
        lost=(*pairs.baseline.lost, *pairs.candidate.lost),
        findings=evidence_findings(pairs, plan),
        sections=(*sections(tables), *reliable.sections),
        tables={**tables, **reliable.tables},
        charts=reliable.charts,
        ids=ids_of(pairs),
    )
