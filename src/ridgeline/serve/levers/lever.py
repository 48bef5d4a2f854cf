"""One lever: whether a setup has it, whether it could, and the setup with and without it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.serve.levers.outcome import Load, Outcome, Setup, Site, evaluate

EXACT = "none: the same tokens"
SAME_DISTRIBUTION = "none: the same distribution"
UNKNOWN = "unknown: needs a gate"
RETRAIN = "decided before training"


@dataclass(frozen=True)
class Bought:
    """The outcome ``without`` and ``with_`` a lever; None for a side where nothing fits, ``why`` then says what."""

    without: Outcome | None
    with_: Outcome | None
    why: str = ""


class Lever(ABC):
    """A way to serve the same traffic cheaper or faster. Final classes only; they hold nothing."""

    name: str
    title: str
    quality: str

    @abstractmethod
    def in_use(self, setup: Setup) -> bool:
        """Whether the setup already has it: its worth is then priced in."""

    @abstractmethod
    def refused(self, setup: Setup, site: Site) -> str:
        """Why it cannot be turned on here; empty where it can."""

    @abstractmethod
    def on(self, setup: Setup) -> Setup:
        """The setup with it."""

    @abstractmethod
    def off(self, setup: Setup) -> Setup:
        """The setup without it."""

    def buys(self, setup: Setup, site: Site, load: Load) -> Bought:
        """What it buys alone: against the setup without it where it is in use, else with it."""
        used = self.in_use(setup)
        pair = (self.off(setup), setup) if used else (setup, self.on(setup))
        found: list[Outcome | None] = []
        why = ""
        for side in pair:
            try:
                found.append(evaluate(side, site, load))
            except (InfeasibleError, InputError) as error:
                found.append(None)
                why = f"{'with' if len(found) > 1 else 'without'} it: {error.message.splitlines()[0]}"
        return Bought(found[0], found[1], why)
