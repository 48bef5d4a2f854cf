"""A ledger as quantities: what each lever's cost and saving rest on, and what the rules read."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.serve.levers.acceptance import table_source
from ridgeline.serve.levers.ledger import Ledger, Row
from ridgeline.serve.levers.outcome import Outcome
from ridgeline.serve.levers.speculation import Speculation

SOURCE = Source("the step model and the admission equation of this version", "serve/levers/outcome.py")


@dataclass(frozen=True)
class LeverFacts:
    """A ledger, its speculation, and the price of a chip (USD/(chip*h); None where nobody knows one)."""

    ledger: Ledger
    speculation: Speculation
    price: Quantity | None

    @cached_property
    def baseline(self) -> Quantity:
        """``levers.baseline.cost`` of a million output tokens as it is: in dollars, or chip-seconds without a price."""
        return self._cost("levers.baseline", self.ledger.baseline).titled("Cost of output tokens, as it is")

    @cached_property
    def saved(self) -> Quantity:
        """``levers.together``: the sum of what every applied lever adds at its turn."""
        applied = {row.lever.name: self.marginal(row) for row in self.ledger.rows if row.after is not None}
        if not applied:
            return leaf("levers.together", 0.0, self.unit, "measured", SOURCE, "no lever is open").titled(
                "Saved together"
            )
        return derive("levers.together", " + ".join(applied), self.unit, **applied).titled("Saved together")

    @cached_property
    def final(self) -> Quantity:
        """``levers.final``: the cost with every open lever."""
        found = derive("levers.final", "baseline - saved", self.unit, baseline=self.baseline, saved=self.saved)
        return found.titled("Cost of output tokens with every open lever")

    @property
    def unit(self) -> str:
        """Of a cost: dollars, or chip-seconds where there is no price."""
        return "chip*s/Mtoken" if self.price is None else "USD/Mtoken"

    def alone(self, row: Row) -> Quantity | None:
        """``levers.<name>.alone``: what it saves by itself, in use or not; None where one side serves nothing."""
        sides = self._sides(row)
        if sides is None:
            return None
        found = derive(f"levers.{row.lever.name}.alone", "off - on", self.unit, off=sides[0], on=sides[1])
        return found.titled(f"{row.lever.title}: saves alone")

    def share(self, row: Row) -> Quantity | None:
        """``levers.<name>.share``: the same as a share of the cost without it."""
        sides = self._sides(row)
        if sides is None:
            return None
        found = derive(f"levers.{row.lever.name}.share", "(off - on)/off", "%", off=sides[0], on=sides[1])
        return found.titled(f"{row.lever.title}: share saved alone")

    def marginal(self, row: Row) -> Quantity:
        """``levers.<name>.marginal``: what it saves at its turn."""
        name = f"levers.{row.lever.name}"
        if row.before is None or row.after is None:
            return leaf(f"{name}.marginal", 0.0, self.unit, "measured", SOURCE, row.why or "not applied")
        before, after = self._cost(f"{name}.before", row.before), self._cost(f"{name}.after", row.after)
        return derive(f"{name}.marginal", "before - after", self.unit, before=before, after=after).titled(
            f"{row.lever.title}: saves at its turn"
        )

    def _sides(self, row: Row) -> tuple[Quantity, Quantity] | None:
        without, with_ = row.alone.without, row.alone.with_
        if without is None or with_ is None:
            return None
        name = f"levers.{row.lever.name}"
        if row.status == "in use":
            return self._cost(f"{name}.without", without), self.baseline
        return self.baseline, self._cost(f"{name}.with", with_)

    def _cost(self, name: str, outcome: Outcome) -> Quantity:
        rate = leaf(f"{name}.rate", outcome.tokens_s_chip, "token/(s*chip)", "measured", SOURCE)
        rate = rate.titled("Output tokens a second and chip, at the largest rate")
        if self.price is None:
            return derive(f"{name}.cost", "1/rate", self.unit, rate=rate)
        return derive(f"{name}.cost", "price/rate", self.unit, price=self.price, rate=rate)

    @cached_property
    def speedup(self) -> Quantity:
        """``levers.speculative.speedup`` of a sequence at the batch and context of the baseline."""
        value = float(np.ravel(self.speculation.speedup(self.batch, self.context, self.drafted))[0])
        found = leaf("levers.speculative.speedup", value, "1", "measured", SOURCE)
        return found.titled("Speed of a sequence with speculation over that without")

    @cached_property
    def break_even(self) -> Quantity:
        """``levers.speculative.break_even`` (token): acceptance length at which it neither wins nor loses there."""
        value = float(np.ravel(self.speculation.break_even_length(self.batch, self.context, self.drafted))[0])
        found = leaf("levers.speculative.break_even", value, "token", "measured", SOURCE)
        return found.titled("Tokens a step at which speculation breaks even")

    @cached_property
    def length(self) -> Quantity:
        """``levers.speculative.length`` (token): expected tokens a step."""
        value = float(self.speculation.acceptance.length(self.drafted))
        asked = self.ledger.setup.traffic.speculation
        if asked.acceptance is not None:
            found = given("levers.speculative.length", value, "token", "traffic, speculation.acceptance")
        else:
            note = f"fitted to {asked.model}" if asked.model else "the middle of the measured heads, not of this model"
            found = leaf("levers.speculative.length", value, "token", "assumed", table_source(), note)
        return found.titled("Tokens a step with speculation")

    @property
    def drafted(self) -> int:
        """Drafted tokens a step."""
        return self.ledger.setup.traffic.speculation.drafted

    @property
    def batch(self) -> float:
        """Sequences that decode together at the ledger's rate."""
        return self.ledger.baseline.batch

    @property
    def context(self) -> float:
        """Mean tokens in a request's cache."""
        return self.ledger.setup.traffic.context
