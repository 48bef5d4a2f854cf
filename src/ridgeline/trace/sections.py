"""The sections of a trace report: each adds its tables and charts to the case and says what they show."""

from collections.abc import Iterator

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Section
from ridgeline.core.charts import Look
from ridgeline.trace import tables, timeline
from ridgeline.trace.bridge_case import audit_section, bridge_sections
from ridgeline.trace.dump_case import dump_sections
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l0 import LABELS
from ridgeline.trace.losses import link_bytes_per_s


def sections(case: Case, facts: TraceFacts, *, bridge_first: bool = False) -> list[Section]:
    """Every section that the facts allow, in the order in which a reader wants them."""
    bridge, made = list(bridge_sections(case, facts)), list[Section]()
    if facts.l0:
        made.append(_step(case, facts))
    made += [*_communication(case, facts), *_ranks(case, facts), *_operations(case, facts), *_strip(case, facts)]
    made = [*bridge, *made] if bridge_first else [*made[:2], *bridge, *made[2:]]
    made += [*dump_sections(case, facts), *audit_section(case, facts)]
    if facts.l0:
        made.append(_detail(case, facts))
    return made


def _step(case: Case, facts: TraceFacts) -> Section:
    marked, mark = _marked(facts)
    case.add_table("trace.buckets", tables.bucket_table(facts.l0, marked, mark))
    case.add_table("trace.parts", tables.part_table(facts.l0))
    spec = charts.bars(case.tables["trace.parts"], "rank", "time", "part")
    share = case.text("{trace.compute.share}")
    alt = "Stacked bars: the mean step of each rank in compute, communication, copies, host and idle time."
    case.charts["trace.parts"] = Chart(f"Compute fills {share} of the step", alt, spec, "trace.parts")
    text = (
        "Each nanosecond of a step belongs to one bucket: compute first, then communication that no compute covers, "
        "copies, other device work, and idle time by what the host was doing. The buckets sum to the step."
    )
    return Section("Where the step goes", (text,), ("trace.buckets", "trace.parts", *_timeline(case, facts)))


def _marked(facts: TraceFacts) -> tuple[int | None, str]:
    """The rank that matters: the one that others wait for, else the slowest where ranks differ."""
    odd = [rank.label for rank in facts.l4.ranks if rank.verdict != "even"] if facts.l4 else []
    labels = [rank.label for rank in facts.l0]
    return (labels.index(odd[0]), "others wait") if odd and odd[0] in labels else (None, "")


def _timeline(case: Case, facts: TraceFacts) -> Iterator[str]:
    step = timeline.usual_step(facts.l0)
    if facts.run is None or step is None:
        return
    found = timeline.timeline(facts.run, facts.l0, step, window=facts.l0[0].window)
    if found is None:
        return
    case.add_table("trace.timeline", tables.timeline_table(found))
    spec = charts.spans(case.tables["trace.timeline"], "rank", "start", "end", "part")
    left = f" {found.left_out} ranks near the median are not shown." if found.left_out else ""
    alt = f"Timeline of step {found.step}: for each rank what the device did, moment by moment.{left}"
    title = f"Step {found.step} on the clock of the first rank"
    case.charts["trace.timeline"] = Chart(title, alt, spec, "trace.timeline", case.tables["trace.timeline"].note + left)
    yield "trace.timeline"


def _ranks(case: Case, facts: TraceFacts) -> Iterator[Section]:
    if facts.l4 is None:
        return
    case.add_table("trace.ranks", tables.spread_table(facts.l4))
    show = ["trace.ranks"]
    if len(facts.l0) > 1:
        case.add_table("trace.heat", tables.heat_table(facts.l0))
        spec = charts.cells(case.tables["trace.heat"], "rank", "part", "away", around=True)
        alt = "Ranks by parts of the step: how far each lies above or below the median rank, in ms per step."
        odd = [rank.label for rank in facts.l4.ranks if rank.verdict != "even"]
        title = f"{', '.join(odd[:4])} stands out" if odd else "No rank stands out"
        title += " (ms per step against the median rank)"
        case.charts["trace.heat"] = Chart(title, alt, spec, "trace.heat")
        show.append("trace.heat")
    text = (
        "A synchronous job runs at the pace of its slowest rank. A rank that computes or waits for its host longer "
        "shows less communication: the others wait for it in theirs."
    )
    yield Section("Ranks beside each other", (text,), tuple(show))


def _communication(case: Case, facts: TraceFacts) -> Iterator[Section]:
    if facts.l1 is None:
        return
    case.add_table("trace.collectives", tables.collective_table(facts.l1, link_bytes_per_s(facts)))
    show = ["trace.collectives"]
    if len(facts.l1.labels) > 1:
        case.add_table("trace.matrix", tables.matrix_table(facts.l1))
        spec = charts.cells(case.tables["trace.matrix"], "what", "rank", "exposed")
        alt = "Collectives by ranks: exposed time per step in ms."
        case.charts["trace.matrix"] = Chart("Who waits in which collective (ms per step)", alt, spec, "trace.matrix")
        show.append("trace.matrix")
    text = (
        "The wire time of a call is its shortest duration over the ranks: the rank that arrives last waits for "
        "nobody. What others take longer is waiting. A row is called straggler where most of its exposed time is "
        "waiting, bandwidth where the wire is slower than the link or busier than there is compute to hide it, "
        "latency where it is too small for either, and scheduling where it would fit under the compute."
    )
    yield Section("Communication", (text,), tuple(show))


def _operations(case: Case, facts: TraceFacts) -> Iterator[Section]:
    if facts.l2 is None or not facts.l2.rows:
        return
    case.add_table("trace.families", tables.family_table(facts.l2))
    case.add_table("trace.operations", tables.operation_table(facts.l2))
    unlinked = facts.l2.unlinked_ns / max(facts.l2.work_ns, 1)
    text = (
        f"Operations of {facts.l2.rank}, grouped by operator, shapes and phase; {unlinked:.0%} of the device time "
        "has no operator in the trace and is grouped by kernel. Rates count FLOPs from shapes."
    )
    yield Section("Operations", (text,), ("trace.families", "trace.operations"))


def _strip(case: Case, facts: TraceFacts) -> Iterator[Section]:
    if facts.l3 is None:
        return
    found = facts.l3
    case.add_table("trace.stalls", tables.stall_table(found))
    case.add_table("trace.strip", tables.strip_table(found))
    marks = [(found.typical_s, "typical"), (found.mean_s, "mean")] if found.mean_s > 1.02 * found.typical_s else []
    spec = charts.line(case.tables["trace.strip"], "step", "seconds", look=Look(mark_y=marks))
    title = "No stall comes back"
    if found.stalls:
        title = f"A stall comes every {found.stalls[0].period:.4g} steps"
    alt = "Step time against step number."
    case.charts["trace.strip"] = Chart(title, alt, spec, "trace.strip", case.tables["trace.strip"].note)
    text = "The mean step is the typical step, stalls that come back, single outliers, and drift; they sum to it."
    yield Section("From step to step", (text,), ("trace.stalls", "trace.strip"))


def _detail(case: Case, facts: TraceFacts) -> Section:
    case.add_table("trace.steps", tables.step_table(facts.l0))
    few = len(facts.l0) < tables.MANY_RANKS
    mine = {rank.label: {name: case.quantities[f"{rank.label}.{name}"] for name in tables.SHOWN} for rank in facts.l0}
    case.add_table("trace.whole", tables.whole_table(mine))
    unknown = sum(rank.whole_s("unclassified") for rank in facts.l0)
    said = [f"Window: {facts.l0[0].window} device events."]
    if unknown > 0:
        said.append(f"{LABELS['unclassified']}: {unknown * 1e3:.3g} ms over all ranks, counted as compute.")
    if not few:
        said.append("Of this many ranks only the main buckets are listed as numbers.")
    return Section("Every step and the whole window", (" ".join(said),), ("trace.steps", "trace.whole"))
