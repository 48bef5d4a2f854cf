"""What the S3 rules look at: an audit, its figures as quantities with stable names, and what a token is worth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ridgeline.core.catalog import constant
from ridgeline.core.finding import Cost, Finding, Rule, Verdict
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.serve.hygiene.audit import Audit, Effect
from ridgeline.serve.hygiene.money import Price
from ridgeline.serve.hygiene.normalise import CAUSES

KIND_WORDS = {"tools": "the tools", "system": "the system prompt", "user": "the user's messages",
              "assistant": "the assistant's messages", "tool": "tool results", "prompt": "the prompt"}  # fmt: skip
FEW_REQUESTS = 20  # below it a log does not say what is missing


@dataclass(frozen=True, eq=False)
class Hygiene:
    """An audit with the prices; ``prefill`` (token/s) is how fast prompts are computed. Both may be None."""

    audit: Audit
    price: Price | None = None
    prefill: Quantity | None = None

    def measured(self, name: str, value: float, unit: str, label: str, note: str = "") -> Quantity:
        """A figure of the log."""
        source = Source(str(self.audit.path), f"{self.audit.sent.requests:,} requests")
        return leaf(name, value, unit, "measured", source, note).titled(label)

    @property
    def few(self) -> bool:
        """Whether the log is too short to say what is not in it."""
        return self.audit.sent.requests < FEW_REQUESTS

    @cached_property
    def estimate(self) -> str:
        """Says where tokens come from."""
        whole, exact = self.audit.sent.requests, self.audit.exact
        if exact >= whole:
            return "tokens as the log counts them"
        share = "every request" if not exact else f"{whole - exact:,} of {whole:,} requests"
        return f"estimated for {share} as {self.audit.cache.bytes_per_token:g} bytes a token"

    @cached_property
    def tokens(self) -> Quantity:
        """``hygiene.tokens``: of all prompts."""
        return self.measured("hygiene.tokens", self.audit.sent.tokens, "token", "Prompt tokens", self.estimate)

    @cached_property
    def requests(self) -> Quantity:
        """``hygiene.requests``: those that could be read."""
        return self.measured("hygiene.requests", self.audit.sent.requests, "request", "Requests read")

    @cached_property
    def achievable(self) -> Quantity:
        """``hygiene.hit_rate.achievable`` (%): prompts as sent, a cache without limit of space."""
        note = "block-exact prefix walk, weighted by tokens"
        return self._rate("achievable", self.audit.sent.rate, "Hit rate that the prompts allow as sent", note)

    @cached_property
    def ceiling(self) -> Quantity:
        """``hygiene.hit_rate.ceiling`` (%): with every cause gone."""
        return self._rate("ceiling", max(self.audit.fixed.rate, self.audit.sent.rate), "Hit rate with every cause gone")

    @cached_property
    def achieved(self) -> Quantity | None:
        """``hygiene.hit_rate.achieved`` (%): what the server counted; None where the log does not say."""
        counted = self.audit.achieved
        if not counted.tokens:
            return None
        note = f"{counted.requests:,} requests with usage fields"
        return self._rate("achieved", counted.cached / counted.tokens, "Hit rate that the server counted", note)

    @cached_property
    def limited(self) -> Quantity | None:
        """``hygiene.hit_rate.limited`` (%): as sent, a cache of the stated capacity, least recently used leaves."""
        if self.audit.limited is None:
            return None
        return self._rate("limited", self.audit.limited[0], "Hit rate of a cache of that capacity")

    @cached_property
    def working_set(self) -> Quantity:
        """``hygiene.working_set``: tokens of distinct prefixes, what a cache holds that forgets nothing."""
        return self.measured("hygiene.working_set", self.audit.unique_tokens, "token", "Distinct prefixes in the log")

    @cached_property
    def lost_tokens(self) -> Quantity:
        """``hygiene.refilled``: prompt tokens computed again for the causes found."""
        value = sum(effect.tokens for effect in self.audit.effects)
        return self.measured("hygiene.refilled", value, "token", "Prompt tokens computed again for the causes")

    def _rate(self, name: str, value: float, label: str, note: str = "") -> Quantity:
        return self.measured(f"hygiene.hit_rate.{name}", 100 * value, "%", label, note)

    def effect(self, cause: str) -> Effect | None:
        """One cause of the audit."""
        return next((effect for effect in self.audit.effects if effect.fix.cause == cause), None)

    def cause(self, effect: Effect) -> dict[str, Quantity]:
        """The figures of a cause by their last name: requests, tokens, share, at, alone, together, dollars, seconds."""
        known = self._causes.get(effect.fix.cause)
        if known is None:
            known = self._causes[effect.fix.cause] = self._cause(effect)
        return known

    @cached_property
    def _causes(self) -> dict[str, dict[str, Quantity]]:
        return {}

    def _cause(self, effect: Effect) -> dict[str, Quantity]:
        key, title = f"hygiene.cause.{effect.fix.cause}", CAUSES[effect.fix.cause]
        at = effect.found.at_bytes / self.audit.cache.bytes_per_token
        rows: dict[str, tuple[float, str, str]] = {
            "requests": (effect.requests, "request", "requests that fixing it alone would help"),
            "tokens": (effect.tokens, "token", "tokens computed again"),
            "share": (100 * effect.share, "%", "share of the prompt tokens"),
            "at": (round(at), "token", "tokens before the first difference"),
            "alone": (100 * effect.alone.rate, "%", "hit rate with it alone gone"),
            "together": (100 * effect.together.rate, "%", "hit rate with it and what stands before it gone"),
        }
        found = {name: self.measured(f"{key}.{name}", v, unit, f"{title}: {label}")
                 for name, (v, unit, label) in rows.items()}  # fmt: skip
        cost = self.cost(found["tokens"], key)
        named = {"dollars": cost.dollars, "seconds": cost.seconds}
        return found | {name: item for name, item in named.items() if item is not None}

    def cost(self, tokens: Quantity, key: str) -> Cost:
        """What tokens computed again cost: dollars where there is a price, seconds where there is a prefill rate."""
        dollars = seconds = None
        if self.price is not None:
            dollars = derive(f"{key}.dollars", "tokens*(price - cached)", "USD", tokens=tokens, price=self.price.input,
                             cached=self.price.cached).titled(f"{tokens.label}, in money")  # fmt: skip
        if self.prefill is not None:
            seconds = derive(f"{key}.seconds", "tokens/rate", "s", tokens=tokens, rate=self.prefill)
            seconds = seconds.titled(f"{tokens.label}, in prefill time")
        return Cost(seconds=seconds, dollars=dollars)

    @property
    def span_s(self) -> float:
        """Seconds from the first request to the last; NaN where the log has no times."""
        return self.audit.last_s - self.audit.first_s

    @property
    def quantities(self) -> list[Quantity]:
        """Everything that a case publishes."""
        some = [self.achieved, self.limited, self.limit]
        found = [self.requests, self.tokens, self.achievable, self.ceiling, self.working_set, self.lost_tokens,
                 *(item for item in some if item is not None)]  # fmt: skip
        for effect in self.audit.effects:
            found += self.cause(effect).values()
        if self.audit.exact < self.audit.sent.requests:
            found.append(constant("hygiene.text.bytes_per_token"))
        return found + [
            item for item in vars(self.cost(self.lost_tokens, "hygiene.refilled")).values() if item is not None
        ]

    @cached_property
    def limit(self) -> Quantity | None:
        """``hygiene.capacity`` (token): the stated size of the cache."""
        size = self.audit.cache.capacity_tokens
        if math.isinf(size):
            return None
        return leaf("hygiene.capacity", size, "token", "specified", Source("given by the user", "--capacity"))


def cause_words(effect: Effect) -> str:
    """A cause and where it was found, as part of a sentence."""
    places = " and ".join(KIND_WORDS[kind] for kind, _ in effect.found.kinds.most_common(2))
    what = CAUSES[effect.fix.cause]
    return what if effect.fix.cause == "tool_order" else f"{what} in {places}"


def judge(facts: Hygiene, this: Rule, causes: Sequence[str], advice: str) -> list[Finding]:
    """The finding of a rule about causes: fail above its threshold, warn above a fifth of it, pass where there is none.

    A log of few requests that does not show the cause says nothing about it.
    """
    found = [effect for name in causes if (effect := facts.effect(name)) is not None]
    if not found:
        words = " or ".join(CAUSES[name] for name in causes)
        return [] if facts.few else [this.found(Verdict.PASS, f"No two prompts that agree again part at {words}.", "")]
    return [_judged(facts, this, effect, advice) for effect in found]


def _judged(facts: Hygiene, this: Rule, effect: Effect, advice: str) -> Finding:
    numbers = facts.cause(effect)
    key = f"hygiene.cause.{effect.fix.cause}"
    share = numbers["share"]
    assert this.threshold is not None
    verdict = Verdict.FAIL
    if this.holds(share):
        verdict = Verdict.WARN if float(share.value) > float(this.threshold.value) / 5 else Verdict.PASS
    what = cause_words(effect)
    sentence = (
        f"{what[0].upper()}{what[1:]}, {{{key}.at}} from the start, has {{{key}.tokens}} computed "
        f"again: without it {{{key}.alone}} of the prompt tokens would be found"
    )
    if effect.together.rate - effect.alone.rate > 0.001:
        sentence += f", {{{key}.together}} once what stands before it is gone too"
    cost = facts.cost(numbers["tokens"], key)
    cited = (numbers["at"], numbers["tokens"], numbers["alone"], numbers["together"])
    known = replace(cost, **{k: numbers[k] for k in ("dollars", "seconds") if k in numbers})
    return this.found(
        verdict, f"{sentence}.", "" if verdict is Verdict.PASS else advice, value=share, cost=known, cites=cited
    )
