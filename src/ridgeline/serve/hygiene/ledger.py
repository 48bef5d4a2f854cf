"""What a log held and what of it could not be used: counted, and listed by line."""

from collections import Counter
from dataclasses import dataclass, field

MOST_LISTED = 20
_MOST_SAID = 8  # of a sentence


@dataclass
class Ledger:
    """Counts of one log. ``schemas``: lines by reader; ``listed``: the first unreadable lines as (line, reason)."""

    schemas: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    listed: list[tuple[int, str]] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def unreadable(self, line: int, why: str) -> None:
        """Count a line that no request could be read from."""
        self.reasons[why] += 1
        if len(self.listed) < MOST_LISTED:
            self.listed.append((line, why))

    def note(self, what: str, count: int = 1) -> None:
        """Count something that was set aside."""
        self.notes[what] += count

    @property
    def unread(self) -> int:
        """Lines that no request could be read from."""
        return sum(self.reasons.values())

    def lost(self) -> list[str]:
        """Everything that was not used, as sentences."""
        lines = [what if count == 1 else f"{count:,} x {what}" for what, count in self.notes.items()]
        for why, count in self.reasons.items():
            at = [str(line) for line, reason in self.listed if reason == why][:_MOST_SAID]
            more = ["..."] if count > len(at) else []
            what = "1 line holds" if count == 1 else f"{count:,} lines hold"
            lines.append(f"{what} no readable request, {why}: line {', '.join(at + more)}")
        return lines
