"""The ledger as a `Case`: the decision, the levers by what they save, the waterfall, speculation, expert prefill."""

from collections.abc import Iterator, Sequence

from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, InputFile, Section
from ridgeline.core.catalog import constant
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.core.format import count, seconds, significant
from ridgeline.core.quantity import Quantity, given
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers import tables
from ridgeline.serve.levers.facts import LeverFacts
from ridgeline.serve.levers.ledger import ledger
from ridgeline.serve.levers.prefill_section import prefill_section
from ridgeline.serve.levers.site import setup_of, site
from ridgeline.serve.levers.traffic import Traffic

LEDGER, SIDES, BARS = "levers.ledger", "levers.sides", "levers.bars"
SPECULATION, CURVES = "levers.speculation", "levers.speculation.curves"


def lever_facts(deployment: Deployment, traffic: Traffic) -> LeverFacts:
    """The ledger of a deployment under a traffic, with what its rules read.

    Raises `InputError` for a lever or a drafter that is not known, `InfeasibleError` where nothing fits.
    """
    place, setup = site(traffic, deployment.spec), setup_of(deployment, traffic)
    price = price_of(deployment, traffic)
    found = ledger(setup, place, None if price is None else float(price.base))
    return LeverFacts(found, place.speculation(deployment, place.steps(deployment)), price)


def price_of(deployment: Deployment, traffic: Traffic) -> Quantity | None:
    """The user's price of a chip and hour, else the catalog's; None where neither is known."""
    if traffic.price is not None:
        return given("levers.price", traffic.price, "USD/(chip*h)", "traffic, price").titled("Price of a chip")
    return constant(f"prices.chip_hour.{deployment.device.slug}", missing_ok=True)


def lever_case(
    facts: LeverFacts, *, command: str = "", inputs: Sequence[InputFile] = (), config: RuleConfig | None = None
) -> Case:
    """Hand over a ledger. Quantities: ``levers.baseline.cost``, ``levers.final``, ``levers.together``, and for each
    lever ``levers.<name>.alone``, ``.share`` and ``.marginal``."""
    setup = facts.ledger.setup
    laid = setup.deployment
    lengths = f"{setup.traffic.input:,} in and {setup.traffic.output:,} out"
    title = f"{laid.spec.name} on {laid.chips} x {laid.device.name}, {lengths}"
    case = Case("serve levers", title, command=command, inputs=list(inputs))
    case.add(facts.baseline, facts.final, facts.length, facts.break_even, facts.speedup)
    case.add(
        *(found for row in facts.ledger.rows for found in (facts.alone(row), facts.share(row)) if found is not None)
    )
    case.add_findings(run_rules(plugins.rules_of("serve", config), facts, config, family="S4"))
    case.sections = [_ledger(case, facts), _together(case, facts), _speculation(case, facts), *_prefill(case, facts)]
    case.decision, case.because = _decision(facts), _because(facts)
    return case


def _decision(facts: LeverFacts) -> str:
    open_rows = [row for row in facts.ledger.ranked if row.status == "open"]
    now = f"Output tokens cost {{{facts.baseline.name}}} as it is"
    if not open_rows:
        return f"{now}, and no open lever would save anything."
    first = open_rows[0]
    exact = [row for row in open_rows if row.lever.quality.startswith("none")]
    safe = "" if not exact or exact[0] is first else f"; of those that keep quality, {exact[0].lever.title}"
    return (
        f"{now} and {{levers.final}} with every open lever. The largest is {first.lever.title} "
        f"({{levers.{first.lever.name}.share}} alone){safe}."
    )


def _because(facts: LeverFacts) -> str:
    base, traffic = facts.ledger.baseline, facts.ledger.setup.traffic
    waits = "more than the replica can do" if base.ttft_s is None else f"TTFT is {seconds(base.ttft_s)}"
    held = int(base.sequences)
    room = (
        f"{count(held, 'sequence')} {'fits' if held == 1 else 'fit'}, {base.batch:,.0f} decode at "
        f"{significant(facts.ledger.load.rate)} requests/s"
    )
    hit = (
        f", {100 * facts.ledger.setup.hit_rate:.0f}% of the input found in the cache"
        if facts.ledger.setup.hit_rate
        else ""
    )
    return (
        f"{room}{hit}; {waits}, TPOT {seconds(base.tpot_s)}. Costs are at the largest rate, the prompts' share in "
        f"them; means stand for distributions of {traffic.input:,} and {traffic.output:,} tokens."
    )


def _ledger(case: Case, facts: LeverFacts) -> Section:
    case.add_table(LEDGER, tables.ledger_table(facts))
    text = (
        "Alone is against the setup as it is; a lever that is in use shows what it already saves. Together is what a "
        "lever adds at its turn, after those above it in the waterfall. Levers that save the same thing overlap."
    )
    risk = (
        "Smaller types and routing change tokens: what they cost in quality is unknown here and needs a gate. "
        "Speculation keeps the distribution where rejection sampling is exact."
    )
    return Section("What each lever buys", (text, risk), (LEDGER,))


def _together(case: Case, facts: LeverFacts) -> Section:
    case.add(facts.saved)
    case.add_table(BARS, tables.bar_table(facts))
    spec = charts.waterfall(case.tables[BARS], "what", "low", "high", "kind", "text")
    title = case.text("From {levers.baseline.cost} to {levers.final}, lever by lever")
    alt = "Waterfall of the cost of a million output tokens, one bar for each lever in the order of application."
    case.charts[BARS] = Chart(title, alt, spec, BARS)
    case.add_table(SIDES, tables.sides_table(facts))
    left = [row for row in facts.ledger.rows if row.status in ("open", "loses") and row.after is None]
    left = [row for row in left if row.why]
    out = "; ".join(f"{row.lever.title}: {row.why}" for row in left)
    text = "The costs before and after differ by exactly the sum of the bars."
    return Section("Together", (text, *((f"Left out. {out}.",) if out else ())), (SIDES, BARS))


def _speculation(case: Case, facts: LeverFacts) -> Section:
    case.add_table(SPECULATION, tables.speculation_table(facts))
    case.add_table(CURVES, tables.speculation_curves(facts))
    look = charts.Look(log_x=True, zero_y=True, mark_y=((1.0, "no gain"),), mark_x=((max(1.0, facts.batch), "served"),))
    spec = charts.line(case.tables[CURVES], "batch", "speedup", "drafted", look=look)
    loses = facts.speculation.loses_from(facts.context, facts.drafted, tables.BATCHES)
    said = f"loses from a batch of {loses:,}" if loses else f"wins up to a batch of {tables.BATCHES[-1]:,}"
    title = f"With {facts.drafted} drafted tokens speculation {said}"
    case.charts[CURVES] = Chart(title, "Speedup of a sequence over the batch, by drafted tokens.", spec, CURVES)
    drafter = facts.speculation.drafter
    runs = (
        "nothing on the chip" if not drafter.layers else f"{drafter.layers:g} layer of the model for each drafted token"
    )
    accepted = facts.speculation.acceptance
    text = (
        f"The drafter, {drafter.name}, runs {runs}. Its first token is accepted with {accepted.first:.0%}, each later "
        f"one {accepted.decay:.0%} as often as the one before. Break-even is the acceptance length at which nothing is "
        "won. What drafting does on the host is not counted."
    )
    return Section("Speculation", (text,), (SPECULATION, CURVES))


def _prefill(case: Case, facts: LeverFacts) -> Iterator[Section]:
    """Expert parallelism against layer pipelining, where there are experts and chips to spread them over."""
    laid = facts.ledger.setup.deployment
    if laid.is_moe and laid.chips > 1:
        tokens = max(1, round(facts.ledger.setup.traffic.input * (1 - facts.ledger.setup.hit_rate)))
        yield prefill_section(case, laid, tokens)
