"""What the tool itself answers to a drill: the causes of its bridge, each second counted once."""

from collections.abc import Sequence
from pathlib import Path

from ridgeline.core.finding import RuleConfig, Verdict, run_rules
from ridgeline.core.plugins import rules
from ridgeline.core.quantity import Quantity
from ridgeline.trace.analyse import analyse
from ridgeline.trace.attribution import WIDEST
from ridgeline.trace.causes import NETS, bridge_of
from ridgeline.trace.context import read_context
from ridgeline.trace.drills.grade import Answer
from ridgeline.trace.facts import TraceFacts

LEVELS = ("T1", "T2", "T3", "T4")
LEAST_OWN = 0.5  # of a finding's seconds: what keeps less is a cause only if that alone would have fired its rule
SOURCES = ("traces", "steps.csv", "dmon.log")


def attempt(folder: str | Path, config: RuleConfig | None = None) -> list[Answer]:
    """The tool's answer to the drill in a folder. Raises `InputError` where it cannot be read."""
    path = Path(folder)
    sources = [path / name for name in SOURCES if (path / name).exists()]
    return causes_of(analyse(sources, read_context(path)), config)


def causes_of(facts: TraceFacts, config: RuleConfig | None = None) -> list[Answer]:
    """Rule codes with seconds per step, dearest first: findings that fired and whose seconds are mostly their own.

    A rule that looks at all of a bucket (T151) is no cause: it holds what the others do not explain.
    """
    fired = [
        finding for finding in run_rules(rules().values(), facts, config, family="T")
        if finding.code.startswith(LEVELS) and finding.verdict in (Verdict.FAIL, Verdict.WARN)
        and finding.cost.seconds is not None
    ]  # fmt: skip
    found = bridge_of(facts, fired) if facts.l0 or facts.l3 else None
    limits = {finding.code: finding.threshold for finding in fired}
    step_s = float(found.ends.step.base) if found else 0.0
    bars = found.bars if found else ()
    kept = [
        bar.item for bar in bars
        if NETS[bar.cause.code].breadth != WIDEST
        and (bar.item.own_s >= LEAST_OWN * bar.cause.total_s or _fires(bar.item.own_s / step_s, limits[bar.cause.code]))
    ]  # fmt: skip
    return _merged([Answer(item.cause.code, item.own_s) for item in kept])


def _fires(share: float, limit: Quantity | None) -> bool:
    """Whether a share of the step is above a rule's threshold, where that is a share."""
    return limit is not None and limit.unit == "%" and share > float(limit.base)


def _merged(found: Sequence[Answer]) -> list[Answer]:
    """One answer a code: two findings of one rule are one cause."""
    total: dict[str, float] = {}
    for answer in found:
        total[answer.code] = total.get(answer.code, 0.0) + answer.seconds
    return sorted((Answer(code, seconds) for code, seconds in total.items()), key=lambda a: -a.seconds)
