"""The tables of an audit: causes, examples, the tree's sketch, the suggested order, what was read."""

import re

from ridgeline.core.case import Column, Table
from ridgeline.serve.hygiene.audit import DEPTHS, Effect
from ridgeline.serve.hygiene.diverge import Cause
from ridgeline.serve.hygiene.facts import KIND_WORDS, Hygiene
from ridgeline.serve.hygiene.redact import redact
from ridgeline.serve.hygiene.stability import STATIC

_SHORT = {"version": "versions", "timestamp": "time or date", "identifier": "id", "counter": "counter, random number",
          "content": "short text of the user", "json_keys": "order of JSON keys", "whitespace": "white space",
          "tool_order": "order of tools", "order": "static text behind"}  # fmt: skip
_DEEP = 4  # a depth is drawn that a quarter of the requests reach
_BEFORE, _VALUE = 28, 30
_KEY = re.compile(r'([\w\-]{1,24})"\s*:')
_PRIVATE = ("user", "assistant", "tool")  # what these parts hold is shown by its length only
AS_SENT, FIXED = "as sent", "causes gone"


def cause_table(facts: Hygiene) -> Table:
    """Each cause with what it costs, the one nearest to the start of the prompt first."""
    priced = facts.price is not None
    timed = facts.prefill is not None
    columns = [
        Column("cause", "Cause"),
        Column("where", "In"),
        Column("byte", "At byte", "1", "bytes of the prompt before the first difference, median"),
        Column("requests", "Requests", "1", "that would find more if it alone were gone"),
        Column("tokens", "Again", "token", "computed again for it, once those above it are gone; they add up"),
        *([Column("dollars", "Cost", "USD")] if priced else []),
        *([Column("seconds", "Prefill", "s")] if timed else []),
        Column("alone", "Alone", "%", "hit rate with it alone gone"),
        Column("together", "With above", "%", "hit rate with it and those above it gone"),
    ]
    rows = []
    for effect in facts.audit.effects:
        known = facts.cause(effect)
        rows.append((
            _SHORT[effect.fix.cause], _where(effect), round(effect.found.at_bytes), effect.requests, known["tokens"],
            *([known["dollars"]] if priced else []), *([known["seconds"]] if timed else []),
            known["alone"], known["together"],
        ))  # fmt: skip
    note = "A cause hides those behind it: alone it may win nothing and yet be needed."
    return Table("What keeps prompts from sharing a prefix", tuple(columns), tuple(rows), note=note)


def _where(effect: Effect) -> str:
    return ", ".join(kind for kind, _ in effect.found.kinds.most_common(2))


def example_table(facts: Hygiene) -> Table:
    """The first differing bytes of one pair for each cause, shortened; keys and what users wrote are not shown."""
    columns = (
        Column("cause", "Cause"),
        Column("lines", "Lines", meaning="of the log"),
        Column("before", "Text before it"),
        Column("first", "- earlier"),
        Column("second", "+ later"),
    )
    rows = []
    for effect in facts.audit.effects:
        example = effect.found.example
        assert example is not None, effect.fix.cause
        rows.append((_SHORT[effect.fix.cause], "{} and {}".format(*effect.found.lines), *shown(example)))
    return Table("The first differing bytes of one pair", columns, tuple(rows))


def shown(cause: Cause) -> tuple[str, str, str]:
    """The bytes before a difference and both sides of it, as they may be shown."""
    if cause.name == "json_keys":
        one, two = (", ".join(_KEY.findall(f"{_tail(cause)}{redact(side)}")) for side in (cause.first, cause.second))
        return f"<{KIND_WORDS[cause.kind]}>", f"keys {one}"[:_VALUE], f"keys {two}"[:_VALUE]
    if cause.kind in _PRIVATE and cause.name not in ("timestamp", "counter"):
        return f"<{KIND_WORDS[cause.kind]}>", f"<{len(cause.first)} bytes>", f"<{len(cause.second)} bytes>"
    before = redact(cause.before[-_BEFORE:], _BEFORE) if cause.kind not in _PRIVATE else f"<{KIND_WORDS[cause.kind]}>"
    if cause.name == "content":
        return before, f"<{len(cause.first)} bytes>", f"<{len(cause.second)} bytes>"
    return before, redact(cause.first[:_VALUE], _VALUE), redact(cause.second[:_VALUE], _VALUE)


def _tail(cause: Cause) -> str:
    """What stands between the last quotation mark or brace and the difference: the start of a key."""
    return redact(cause.before[-_BEFORE:]).rpartition('"')[2].rpartition("{")[2]


def sketch_table(facts: Hygiene) -> Table:
    """How far prompts agree with earlier ones: of those that reach a depth, the share that found all up to there."""
    columns = (
        Column("depth", "Tokens from the start", "token"),
        Column("series", "Prompts"),
        Column("share", "Requests that find them", "%"),
        Column("requests", "Requests so long", "1"),
    )
    rows = []
    series = [(AS_SENT, facts.audit.sent)] + ([(FIXED, facts.audit.fixed)] if facts.audit.effects else [])
    for name, meter in series:
        for power in range(4, DEPTHS):
            if meter.reach[power] * _DEEP >= meter.requests:
                share = 100.0 * float(meter.hit[power]) / float(meter.reach[power])
                rows.append((2**power, name, share, int(meter.reach[power])))
    note = "A step down is a branch of the prefix tree: there prompts part."
    return Table("The prefix tree: how far prompts agree with earlier ones", columns, tuple(rows), note=note)


def order_table(facts: Hygiene) -> Table:
    """The pieces of the prompt's head, the most stable first."""
    columns = (
        Column("place", "Place"),
        Column("piece", "Piece"),
        Column("share", "Same text", "%", "of the sampled requests have its commonest text"),
        Column("tokens", "Tokens", "token"),
        Column("now", "Now at", "1", "mean place in the prompt as sent"),
        Column("remark", "Remark"),
    )
    rows = []
    shuffled = facts.effect("tool_order") is not None
    for place, item in enumerate(facts.audit.discovery.stability.segments(), start=1):
        remark = "" if item.share >= STATIC else "behind all that is shared"
        if item.kind == "tools":
            remark = "sort by name" if shuffled else ""
        tokens = item.size_bytes / facts.audit.cache.bytes_per_token
        name = f"{item.kind}: {item.label}" if item.kind not in ("user", "tools") else item.label
        rows.append((place, name, 100 * item.share, tokens, round(item.place + 1, 1), remark))
    sampled = facts.audit.discovery.stability.sampled
    note = f"Of {sampled:,} sampled requests. Tools keep the place that the interface gives them."
    return Table("Suggested order of the prompt's parts", columns, tuple(rows), note=note)


def read_table(facts: Hygiene) -> Table:
    """Lines by schema, and those that could not be read."""
    ledger = facts.audit.ledger
    rows = [
        *ledger.schemas.most_common(),
        *((f"not read: {why}", count) for why, count in ledger.reasons.most_common(8)),
    ]
    return Table("Lines of the log", (Column("schema", "Schema"), Column("lines", "Lines", "1")), tuple(rows))
