"""The ledger: what every lever buys alone and together for one deployment and traffic, and what is already priced in.

Alone is against the setup as it is. Together, the levers that are open are applied in the order of
`ridgeline.serve.levers.catalogue`, each on what those before left; what a lever then adds is its marginal, so

    cost before - sum of the marginals = cost after

holds exactly. A lever that would make it dearer at its turn is left out. The sum of what levers buy alone is more than
together where two of them save the same thing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.serve.levers.catalogue import levers
from ridgeline.serve.levers.lever import RETRAIN, Bought, Lever
from ridgeline.serve.levers.outcome import Load, Outcome, Setup, Site, evaluate, loaded, sequence_limit

Status = Literal["in use", "open", "design", "no saving", "loses", "not here"]
_NOTHING = 5e-4  # of the cost: a saving below it is none


@dataclass(frozen=True)
class Row:
    """One lever. ``alone`` is what it buys by itself (in use: what it already buys). ``before`` and ``after`` are the
    outcomes around its turn together, None where it was not applied; ``why`` says what keeps it from being so."""

    lever: Lever
    status: Status
    alone: Bought
    before: Outcome | None = None
    after: Outcome | None = None
    why: str = ""

    @property
    def saving_alone(self) -> float | None:
        """Chip-seconds a million output tokens that it saves alone (in use: saves already), None where not known."""
        pair = self.alone.without, self.alone.with_
        return None if pair[0] is None or pair[1] is None else cost(pair[0]) - cost(pair[1])

    @property
    def marginal(self) -> float:
        """Chip-seconds a million output tokens that it saves at its turn; 0 where it was not applied."""
        return 0.0 if self.before is None or self.after is None else cost(self.before) - cost(self.after)

    @property
    def share_alone(self) -> float | None:
        """That saving as a share of the cost without it."""
        saved = self.saving_alone
        return None if saved is None or self.alone.without is None else saved / cost(self.alone.without)


@dataclass(frozen=True)
class Ledger:
    """The rows in the order of application, the outcome as it is and with every open lever, and the load of both."""

    setup: Setup
    load: Load
    baseline: Outcome
    final: Outcome
    rows: tuple[Row, ...]

    @property
    def ranked(self) -> list[Row]:
        """Open levers by what they buy alone, then those in use by what they already buy, then the others."""
        order = {"open": 0, "in use": 1, "design": 2, "no saving": 3, "loses": 4, "not here": 5}
        return sorted(self.rows, key=lambda row: (order[row.status], -(row.saving_alone or 0.0)))

    def row(self, name: str) -> Row:
        """The row of that lever."""
        return next(row for row in self.rows if row.lever.name == name)


def cost(outcome: Outcome) -> float:
    """Chip-seconds a million output tokens at the largest rate: what dollars are proportional to."""
    return 1e6 / outcome.tokens_s_chip


def ledger(setup: Setup, site: Site, dollars_chip_s: float | None = None, chosen: Sequence[Lever] = ()) -> Ledger:
    """Every lever priced. Raises `InfeasibleError` where the setup as it is serves nothing."""
    load = loaded(setup, site, dollars_chip_s)
    baseline = evaluate(setup, site, load)
    rows: list[Row] = []
    now, outcome = setup, baseline
    for lever in chosen or levers():
        row = _alone(lever, setup, site, load)
        if row.status in ("open", "no saving", "loses"):
            row, now, outcome = _at_its_turn(row, now, outcome, site, load)
        rows.append(row)
    return Ledger(setup, load, baseline, outcome, tuple(rows))


def _alone(lever: Lever, setup: Setup, site: Site, load: Load) -> Row:
    nothing = Bought(None, None)
    if lever.in_use(setup):
        row = Row(lever, "in use", lever.buys(setup, site, load))
        dearer = (row.share_alone or 0.0) < -_NOTHING
        return replace(row, why="costs more than it saves at the largest rate" if dearer else row.alone.why)
    refused = lever.refused(setup, site)
    if refused:
        return Row(lever, "not here", nothing, why=refused)
    bought = lever.buys(setup, site, load)
    if bought.with_ is None:
        return Row(lever, "not here", bought, why=bought.why)
    row = Row(lever, "design" if lever.quality == RETRAIN else "open", bought)
    if row.status == "design":
        return row
    share = row.share_alone or 0.0
    if share < -_NOTHING:
        return replace(row, status="loses")
    return row if share > _NOTHING else replace(row, status="no saving", why=_why_nothing(row, setup))


def _why_nothing(row: Row, setup: Setup) -> str:
    """Why a lever that loses nothing saves nothing: most often more room where memory does not bind."""
    without, with_, limit = row.alone.without, row.alone.with_, sequence_limit(setup.traffic)
    assert without is not None, "an open lever has both sides"
    assert with_ is not None, "an open lever has both sides"
    if with_.sequences > without.sequences >= limit:
        return f"more room is of no use: the engine decodes at most {limit:,.0f} sequences"
    return ""


def _at_its_turn(row: Row, now: Setup, outcome: Outcome, site: Site, load: Load) -> tuple[Row, Setup, Outcome]:
    tried = row.lever.on(now)
    try:
        found = evaluate(tried, site, load)
    except (InfeasibleError, InputError) as error:
        return replace(row, why=error.message.splitlines()[0]), now, outcome
    if cost(found) > cost(outcome):
        return replace(row, why=row.why or "dearer at its turn: left out"), now, outcome
    return replace(row, before=outcome, after=found), tried, found
