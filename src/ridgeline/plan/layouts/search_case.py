"""A search for the parallel plan of one job as a `Case`: the decision, the plans with their intervals, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ridgeline.arithmetic.conventions import find
from ridgeline.arithmetic.named import find_model
from ridgeline.core import charts, parse, plugins
from ridgeline.core.case import Case, Chart, InputFile, Section
from ridgeline.core.errors import InfeasibleError, InputError, did_you_mean
from ridgeline.core.format import seconds, value
from ridgeline.plan.job import DTYPES, dumps
from ridgeline.plan.layouts import explain, scan
from ridgeline.plan.layouts import search_tables as tables
from ridgeline.plan.layouts.portable import Portable, job_of, portable
from ridgeline.plan.layouts.ranking import TOP, Ranking, ranking
from ridgeline.plan.layouts.scan import CONVENTION, Scan
from ridgeline.plan.layouts.search import Request, search, spelled
from ridgeline.plan.layouts.space import Space
from ridgeline.plan.steps import cluster, expected
from ridgeline.plan.steps.layout import check_batch
from ridgeline.plan.steps.machine import Software

_LANES = 16  # pipeline stages that a timeline can show
_SHOWN = 4  # plans whose gap is said in words


@dataclass(frozen=True)
class Asked:
    """What people type. ``batch`` in tokens a step, ``fixed`` as ``tp=8``; ``whole`` drops the search's limits."""

    model: str
    cluster: str
    seq: str
    batch: str
    network: str = ""
    dtype: str = "bf16"
    framework: str = "megatron-core"
    fixed: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True)
class Answer:
    """The case; job files: the fastest plan under an empty name, and by format the fastest that it can express."""

    case: Case
    jobs: Mapping[str, str]
    ranking: Ranking


def request_of(asked: Asked) -> tuple[Request, InputFile]:
    """The search that was asked for. Raises `InputError` for what cannot be read or is unknown."""
    spec, file = find_model(asked.model)
    machine = cluster.parse(asked.cluster, network=asked.network)
    seq = parse.context(asked.seq, where="--seq")
    batch = (_sequences(asked.batch, seq), seq)
    check_batch(*batch, "--seq and --batch")
    if asked.dtype not in DTYPES:
        hint = did_you_mean(asked.dtype, DTYPES, "one of " + ", ".join(DTYPES))
        raise InputError.expected("a type that layers are trained in", asked.dtype, where="--dtype", hint=hint)
    software = Software(dtype=asked.dtype, framework=asked.framework, gradients="fp32")
    fixed = dict(_pair(item) for item in asked.fixed)
    space = Space.whole(machine, **fixed) if asked.whole else Space(fixed=fixed)
    constants = expected.fitted(spec, machine, software)
    return Request(spec, machine, batch, software, space, constants), file


def _sequences(text: str, seq: int) -> int:
    tokens = parse.context(text, where="--batch")
    if tokens % seq:
        more = -(-tokens // seq) * seq
        message = f"Expected whole sequences of {seq:,} tokens, got {tokens:,} tokens a step, at --batch"
        raise InfeasibleError(message, limit="whole sequences", nearest=f"{more:,} tokens")
    return tokens // seq


def _pair(text: str) -> tuple[str, int | str]:
    name, sign, found = (part.strip() for part in text.partition("="))
    if not (sign and name and found):
        raise InputError.expected("a column and a value such as tp=8", text, where="--fix")
    return name, int(found) if found.isdigit() else found


def search_case(request: Request, *, command: str = "", inputs: Sequence[InputFile] = (), top: int = TOP) -> Answer:
    """Search, rank, simulate the finalists, scan over chips, and write it down.

    Raises `InfeasibleError` where nothing divides or fits, as `search` does.
    """
    if top < 1:
        raise InputError.expected("at least one plan", top, where="--top")
    ranked = ranking(search(request), top=top)
    scanned, others = scan.scan(request), portable(ranked.found)
    name = request.spec.name
    case = Case("plan", f"{name} on {request.cluster.name}", command=command, inputs=list(inputs))
    case.add(*ranked.expected.at(ranked.best.row, CONVENTION, "plan.best").values())
    case.add(*request.cluster.facts)
    case.sections = [_top(case, ranked), _why(case, ranked), _front(case, ranked), _memory(case, ranked)]
    case.sections += [_schedule(case, ranked), _scan(case, request, scanned), _portable(case, others)]
    case.sections += [_conventions(case, ranked), _search(case, ranked)]
    case.decision, case.because = _decision(ranked), _because(ranked)
    jobs = {"": dumps(job_of(ranked.found, ranked.best.row))}
    jobs |= {item.format: dumps(item.job) for item in others if item.job is not None}
    return Answer(case, jobs, ranked)


def _decision(ranked: Ranking) -> str:
    best = ranked.best
    return (
        f"Run {spelled(best.plan)}: {{plan.best.step}} a step (80%: {seconds(best.low_s)} to {seconds(best.high_s)}), "
        f"{{plan.best.mfu}} MFU as {find(CONVENTION).title} counts it."
    )


def _because(ranked: Ranking) -> str:
    others = len(ranked.ranked) - 1
    if not others:
        return f"No other mesh fits.{_tight(ranked)}"
    said = [f"{ranked.alike} of the {others} next meshes cannot be told from it before one is measured"]
    runner = ranked.ranked[1]
    said.append(f"the runner-up, {spelled(runner.plan)}, is {_gap(ranked, runner.row)}")
    simple = ranked.simplest
    if simple is not ranked.best and simple.knobs < ranked.best.knobs:
        said.append(f"the simplest of them, with {simple.knobs} knobs, is {spelled(simple.plan)}")
    return "; ".join(said) + f". A measured step would change it.{_tight(ranked)}"


def _tight(ranked: Ranking) -> str:
    """What the review will say of a plan with little memory left (P210), and the fastest plan that leaves more."""
    threshold = plugins.rules()["P210"].threshold
    assert threshold is not None, "P210 has a threshold"
    floor = float(threshold.base)
    shares = [item.free_bytes / ranked.found.limit_bytes for item in ranked.ranked]
    if shares[0] >= floor:
        return ""
    said = f" It leaves {shares[0]:.1%} of a chip's memory, and measured peaks lie up to {floor:.0%} above these forms"
    roomy = next((place for place, share in enumerate(shares) if share >= floor), None)
    if roomy is None:
        return f"{said}."
    item = ranked.ranked[roomy]
    named = "the runner-up leaves more" if roomy == 1 else f"{spelled(item.plan)} leaves more, {_gap(ranked, item.row)}"
    return f"{said}: {named}."


def _gap(ranked: Ranking, row: int) -> str:
    return explain.sentence(ranked.found.steps, ranked.best.row, row)


def _top(case: Case, ranked: Ranking) -> Section:
    case.add_table("plan.top", tables.top_table(ranked))
    table = tables.terms_table(ranked)
    case.add_table("plan.terms", table)
    first = ranked.ranked[0]
    share = explain.exposed_communication(ranked.found.steps, first.row)
    title = f"Exposed communication takes {share:.0%} of the fastest step"
    spec = charts.bars(table, "plan", "seconds", "activity")
    alt = "Stacked bars of the step time of each plan: compute, exposed communication, host and idle."
    case.charts["plan.terms"] = Chart(title, alt, spec, "plan.terms")
    residuals = ranked.expected.residuals
    text = (
        f"One row a mesh (tp, cp, pp, dp, ep), with its best switches. Intervals are those of published runs that were "
        f"held out ({residuals.name}, {residuals.groups} configurations). The first plans were simulated: their "
        "layers split over stages by cost, embedding and head among them, and the schedule run event by event."
    )
    return Section("The plans", (text,), ("plan.top", "plan.terms"))


def _why(case: Case, ranked: Ranking) -> Section:
    if len(ranked.ranked) < 2:
        return Section("Why the runner-up lost", ("No other mesh fits.",))
    best, other = ranked.ranked[:2]
    case.add_table("plan.why", tables.why_table(ranked.found, best.row, other.row))
    lines = [f"#{rank} is {_gap(ranked, item.row)}." for rank, item in enumerate(ranked.ranked[1:_SHOWN], 2)]
    changed = explain.changed(best.plan, other.plan)
    return Section("Why the runner-up lost", (f"It changes {changed}.", " ".join(lines)), ("plan.why",))


def _front(case: Case, ranked: Ranking) -> Section:
    table = tables.front_table(ranked.found)
    case.add_table("plan.front", table)
    spec = charts.points(table, "step", "headroom", label="knobs")
    title = f"{len(table.rows)} plans are beaten by none in time, headroom and simplicity"
    alt = "Memory headroom against step time, one dot a plan of the Pareto front, its knobs beside it."
    case.charts["plan.front"] = Chart(title, alt, spec, "plan.front")
    text = (
        "Time is not all: headroom absorbs a longer sequence or a leak, and every knob is something to set and debug; "
        "their number stands beside each dot. "
        "Gains below a twentieth of the memory or a thousandth of the step do not count; plans that take more than "
        "twice the fastest step are not shown."
    )
    return Section("Time, headroom, simplicity", (text,), ("plan.front",))


def _memory(case: Case, ranked: Ranking) -> Section:
    table = tables.memory_table(ranked.found, ranked.best.row)
    case.add_table("plan.memory", table)
    largest = max(table.rows, key=lambda row: row[1])
    title = f"{str(largest[0]).capitalize()}: {largest[1]:.3g} GB of {value(ranked.found.limit_bytes, 'B')}"
    spec = charts.bars(table, "part", "size")
    case.charts["plan.memory"] = Chart(title, "Memory of the fullest chip by part.", spec, "plan.memory")
    return Section("Memory of the fullest chip", (), ("plan.memory",))


def _schedule(case: Case, ranked: Ranking) -> Section:
    exact = ranked.best.exact
    if exact is None or len(exact.timeline.busy_s) < 2:
        reason = "No pipeline." if exact is not None else "Too many operations to simulate; the closed form stands."
        return Section("The schedule", (reason,))
    text = (
        f"Layers of each {'model chunk' if ranked.best.plan['chunks'] > 1 else 'stage'}, in order: "
        f"{runs(exact.split)}. Simulated, the step takes "
        f"{seconds(exact.step_s)} where the closed form says {seconds(exact.closed_s)}; devices wait for "
        f"{exact.bubble:.1%} of the pipeline's time."
    )
    if len(exact.timeline.busy_s) > _LANES:
        return Section("The schedule", (text,))
    table = tables.timeline_table(exact)
    case.add_table("plan.timeline", table)
    spec = charts.spans(table, "stage", "start", "end", "what")
    title = f"The pipeline waits for {exact.bubble:.1%} of its time"
    alt = "A lane for each pipeline stage with its forward and backward passes from the start of the step."
    case.charts["plan.timeline"] = Chart(title, alt, spec, "plan.timeline")
    return Section("The schedule", (text,), ("plan.timeline",))


def runs(counts: Sequence[int]) -> str:
    """``3, 20 (6 times), 17``: a list of counts with what repeats said once."""
    pairs = [(value, len(list(same))) for value, same in groupby(counts)]
    return ", ".join(f"{value} ({times} times)" if times > 1 else f"{value}" for value, times in pairs)


def _scan(case: Case, request: Request, scanned: Scan) -> Section:
    case.add_table("plan.scan", tables.scan_table(scanned, request.cluster.chips))
    table = tables.shares(scanned)
    case.add_table("plan.shares", table)
    here = [(float(request.cluster.chips), "asked for")]
    spec = charts.line(table, "chips", "share", "what", look=charts.Look(log_x=True, zero_y=True, mark_x=here))
    title = _said(scanned)
    alt = "MFU, exposed communication and the worth of an added chip against the number of chips, batch held."
    case.charts["plan.shares"] = Chart(title, alt, spec, "plan.shares")
    text = "Model, sequence and batch stay; every count of chips has its own best plan."
    return Section("More chips, fewer chips", (text, f"{title}."), ("plan.scan", "plan.shares"))


def _said(scanned: Scan) -> str:
    last, knee, bound = scanned.points[-1], scanned.knee, scanned.bound
    if bound is not None:
        return f"From {bound.chips:,} chips on, waiting takes more than compute; an added chip buys {bound.worth:.0%}"
    if knee is not None:
        return f"At {knee.chips:,} chips an added chip buys {knee.worth:.0%} of the first ones"
    return f"Up to {last.chips:,} chips compute leads: an added chip still buys {last.worth:.0%} of the first ones"


def _portable(case: Case, others: Sequence[Portable]) -> Section:
    case.add_table("plan.formats", tables.formats_table(others))
    text = (
        "The fastest plan of this search that each tool's configuration can express. Times are those of the framework "
        "that was asked for. `ridgeline plan export plan-report/job.NAME.toml --to NAME` writes the configuration."
    )
    return Section("What other tools can run", (text,), ("plan.formats",))


def _conventions(case: Case, ranked: Ranking) -> Section:
    case.add_table("plan.conventions", tables.conventions_table(ranked.found, ranked.best.row))
    text = f"An MFU is of one way to count FLOPs: here {find(CONVENTION).title}'s. Compare only within a row."
    return Section("MFU as others count it", (text,), ("plan.conventions",))


def _search(case: Case, ranked: Ranking) -> Section:
    case.add_table("plan.counts", tables.funnel_table(ranked.found))
    text = "Memory sieves first, then time. Limits of the search: `--whole` drops them, `--fix` sets one column."
    return Section("The search", (text,), ("plan.counts",))
