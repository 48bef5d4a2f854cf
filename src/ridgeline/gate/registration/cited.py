"""What a decision says about its registration: the facts of the rules G107 and G108, and the check that they block."""

from dataclasses import dataclass, field, replace

from ridgeline.core.finding import RuleConfig, Verdict, run_rules
from ridgeline.core.plugins import rules_of
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import blocked
from ridgeline.gate.registration.looks import Look, others
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.registration.record import Change, Record, Seen, changes, other_data, seen_before

CODES = ("G107", "G108")


@dataclass(frozen=True)
class Cited:
    """``plan`` is what decided, ``record`` what was registered (None: nothing), ``looks`` those before this one.

    ``data`` is the hash of what this decision read, ``n`` its pairs.
    """

    plan: Plan
    record: Record | None = None
    seen: Seen = field(default_factory=lambda: Seen(()))
    looks: tuple[Look, ...] = ()
    data: str = ""
    n: int = 0

    @property
    def changes(self) -> tuple[Change, ...]:
        """Keys of the plan that are not as registered."""
        return () if self.record is None else changes(self.record, self.plan)

    @property
    def differs(self) -> list[str]:
        """In what the data are not those registered."""
        return [] if self.record is None else other_data(self.record, self.seen)

    @property
    def late(self) -> str:
        """Why the plan may have been registered with the results in sight."""
        return "" if self.record is None else seen_before(self.record, self.seen)

    @property
    def earlier(self) -> str:
        """Earlier looks at other data."""
        return others(self.looks, self.data)


def with_registration(decided: Decided, cited: Cited, config: RuleConfig | None = None) -> Decided:
    """The decision with the findings about its registration; one that fails them cannot be SHIP.

    A rule that the configuration ignores is silent, and blocks all the same: what was registered stays registered.
    """
    found = [item for code in CODES for item in run_rules(rules_of("gate", config), cited, config, family=code)]
    unheard = [item for code in CODES for item in run_rules(rules_of("gate"), cited, family=code)]
    bad = [item.sentence.rstrip(".") for item in unheard if item.verdict is Verdict.FAIL]
    checks = (*decided.checks, blocked("registration", "; ".join(bad))) if bad else decided.checks
    return replace(decided, checks=checks, findings=(*decided.findings, *found))
