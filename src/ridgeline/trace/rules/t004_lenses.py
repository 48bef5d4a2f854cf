"""T004: do independent looks at the run agree on its MFU."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.trace.audit import Audit, Lens
from ridgeline.trace.facts import TraceFacts


@rule("T004", "Step time, throughput and counters agree", threshold=10, unit="%",
      why="relative: two sound lenses on one run differ by the convention of attention, a few percent")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Three lenses on one run: the step time against its analytic minimum (ideal/step); tokens per second and chip
    against a comparable run, as a share of the expected MFU; and the counter of matrix-unit activity, which MFU cannot
    exceed.

    ## Why it matters
    A wrong FLOP count, peak, chip count or batch size moves one lens and not the others. A hunt for lost time that
    starts from a wrong MFU hunts the wrong time.

    ## How to confirm
    Count tokens from the data loader, chips from the scheduler and the step from wall clock, each at its source.

    ## What to do, cheapest first
    1. Recompute the lens that stands apart.
    2. Run the comparable's config for twenty steps on these chips.
    3. Read the counters: `dcgmi dmon -e 1004,1005` or the TPU duty cycle.

    ## Sources
    DCGM profiling metrics 1004 (tensor activity) and 1005 (memory activity).
    """
    found = facts.audit
    assert this.threshold is not None
    state = found.agreement(float(this.threshold.value)) if found else "unknown"
    if found is None or state == "unknown":
        yield this.found(
            Verdict.UNKNOWN, "Fewer than two lenses have their inputs, so the MFU is not triangulated.",
            "Give comparable.tokens_per_second_per_chip or counters.tensor_active in run.toml.",
        )  # fmt: skip
        return
    worst = max((q for q in (found.spread, found.excess) if q is not None), key=lambda q: float(q.value))
    looks = ", ".join(_said(lens) for lens in found.lenses)
    agree = state == "agree"
    yield this.found(
        Verdict.PASS if agree else Verdict.FAIL,
        f"The lenses {state}: {looks}.{_reading(found)}",
        "" if agree else "Recompute the lens that stands apart: chips, tokens, peak, FLOPs.",
        value=worst,
        cites=(*(lens.implied for lens in found.lenses), *([found.hbm_active] if found.hbm_active else [])),
    )  # fmt: skip


def _said(lens: Lens) -> str:
    return f"{lens.label}{' (a bound)' if lens.bound else ''}: {{{lens.implied.name}}}"


def _reading(found: Audit) -> str:
    """What HBM activity beside tensor activity says; empty without both counters."""
    active = next((lens.implied for lens in found.lenses if lens.bound), None)
    if active is None or found.hbm_active is None:
        return ""
    both = f"{{{found.hbm_active.name}}} of the time"
    if float(found.hbm_active.value) > float(active.value):
        return f" Memory is busy {both}, more than the matrix units: look for memory-bound operations."
    return f" Memory is busy {both}, less than the matrix units: look at communication and the host."
