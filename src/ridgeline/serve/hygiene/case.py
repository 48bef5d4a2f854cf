"""An audit as a `Case`: the verdict, the findings, the causes and what they cost, the sketch of the tree."""

import hashlib
import math
from pathlib import Path

from ridgeline.core import charts, plugins
from ridgeline.core.case import Case, Chart, InputFile, Section
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.core.format import seconds
from ridgeline.serve.hygiene import tables
from ridgeline.serve.hygiene.facts import Hygiene, cause_words

_CHUNK = 1 << 20


def hygiene_case(facts: Hygiene, *, command: str = "", config: RuleConfig | None = None) -> Case:
    """The case of an audit. ``config`` selects, ignores and re-thresholds the S3 rules."""
    audit = facts.audit
    case = Case("serve hygiene", f"{audit.path.name}, {audit.sent.requests:,} requests", command=command)
    case.inputs = [input_file(audit.path)]
    case.lost = audit.ledger.lost()
    if audit.level:
        size = audit.cache.block_tokens << audit.level
        case.lost.append(f"blocks were taken as {size} tokens, so that the hashes stay within their memory")
    case.add(*facts.quantities)
    case.add_findings(run_rules(plugins.rules_of("serve", config), facts, config, family="S3"))
    case.sections = [_causes(case, facts), _sketch(case, facts), _order(case, facts), _read(case, facts)]
    case.decision, case.because = _decision(facts), _because(facts)
    return case


def input_file(path: Path) -> InputFile:
    """A log as an input: hashed in pieces, for it may be larger than memory."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return InputFile(str(path), digest.hexdigest(), size)


def _decision(facts: Hygiene) -> str:
    sent = "{hygiene.hit_rate.achievable} of {hygiene.tokens}"
    if facts.few:
        return f"Too few requests to say, {{hygiene.requests}}: as sent they allow {sent} to come from a cache."
    if not facts.audit.effects:
        return f"Nothing keeps these prompts apart: as sent they allow {sent} to come from a cache."
    if not facts.audit.fixed.rate > facts.audit.sent.rate:
        return f"As sent the prompts allow {sent} to come from a cache, and no more without the causes below."
    worst = max(facts.audit.effects, key=lambda effect: effect.tokens)
    costs = "".join(
        f", {{hygiene.refilled.{name}}}"
        for name, known in (("dollars", facts.price), ("seconds", facts.prefill))
        if known is not None
    )
    return (
        f"As sent the prompts allow {sent} to come from a cache, without the causes below "
        f"{{hygiene.hit_rate.ceiling}}: "
        f"{{hygiene.refilled}} computed again{costs}. Most of it for {cause_words(worst)}."
    )


def _because(facts: Hygiene) -> str:
    cache = facts.audit.cache
    said = [f"Blocks of {cache.block_tokens:,} tokens, {facts.estimate}."]
    if math.isfinite(facts.span_s) and facts.span_s > 0:
        said.append(f"The log covers {seconds(facts.span_s)}.")
    if facts.achieved is not None:
        said.append("The server found {hygiene.hit_rate.achieved}.")
    if cache.minimum_tokens:
        said.append(f"Below {cache.minimum_tokens:g} tokens nothing is cached.")
    if math.isfinite(cache.ttl_s):
        said.append(f"A block unused for {seconds(cache.ttl_s)} is gone.")
    return " ".join(said)


def _causes(case: Case, facts: Hygiene) -> Section:
    if not facts.audit.effects:
        text = "No two requests part at something that agrees again behind it."
        return Section("Causes", (text,))
    case.add_table("causes", tables.cause_table(facts))
    case.add_table("examples", tables.example_table(facts))
    text = (
        "Each cause was taken out of every prompt and the prefix tree built again: alone, and together with those that "
        "stand before it. A value that changes is taken out, as if it were moved behind all that is shared; keys and "
        "tools are sorted. The hit rates are ceilings: a cache without limit of space."
    )
    return Section("Causes", (text,), ("causes", "examples"))


def _sketch(case: Case, facts: Hygiene) -> Section:
    table = tables.sketch_table(facts)
    case.add_table("tree", table)
    if not table.rows:
        return Section("Prefix tree", ("No prompt is 16 tokens long.",))
    look = charts.Look(log_x=True, zero_y=True)
    spec = charts.line(table, "depth", "share", "series", look=look)
    gone = "; without the causes they agree for longer" if facts.audit.effects else ""
    case.charts["tree"] = Chart(
        f"Where prompts part from those before{gone}",
        "Share of requests whose first tokens were seen before, over the number of tokens, as sent and with the causes "
        "gone.",
        spec, "tree",
    )  # fmt: skip
    return Section("Prefix tree", (), ("tree",))


def _order(case: Case, facts: Hygiene) -> Section:
    table = tables.order_table(facts)
    if not table.rows:
        return Section("Order of the parts", ("The log has hashes or token ids only: its parts are not known.",))
    case.add_table("order", table)
    text = "The most stable piece first; what changes with every request last, behind the conversation."
    return Section("Order of the parts", (text,), ("order",))


def _read(case: Case, facts: Hygiene) -> Section:
    case.add_table("lines", tables.read_table(facts))
    return Section("What was read", (), ("lines",))
