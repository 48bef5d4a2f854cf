"""Candidates under the step model: the operations of each at measured speed, and the engine's admission equation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.core.quantity import Quantity, derive
from ridgeline.serve.capacity.capacity import Capacity, capacity
from ridgeline.serve.codesign.evaluate import MEMORY, Configuration
from ridgeline.serve.codesign.need import Need
from ridgeline.serve.steps.quantities import Latency, Prices, Traffic, quantities
from ridgeline.serve.steps.step import steps


@dataclass(frozen=True)
class Measured:
    """One configuration as measured operations make it: ``turn`` is None where none was asked for."""

    configuration: Configuration
    latency: Latency
    turn: Quantity | None

    @property
    def timed(self) -> float:
        """The largest share that is used up of a limit on time or price."""
        return max(self._shares.values())

    @property
    def stress(self) -> dict[str, float]:
        """The share of every limit that is used up; above 1 it is missed."""
        batch, roof = self.configuration.sides["batch"], self.configuration.stress[MEMORY]
        if batch > self.fits:
            roof = batch / self.fits if self.fits else float("inf")
        return self._shares | {MEMORY: roof}

    @cached_property
    def room(self) -> Capacity | None:
        """What the admission equation says; None where the weights alone are too many."""
        need = self.configuration.group.need
        try:
            return capacity(self.configuration.deployment, int(need.prompt.value + need.output.value))
        except InfeasibleError:
            return None

    @property
    def fits(self) -> float:
        """Requests of full length that a replica holds at once."""
        return 0.0 if self.room is None else float(self.room.sequences.base)

    @cached_property
    def _shares(self) -> dict[str, float]:
        found = self.latency
        figures = {"turn": self.turn, "ttft": found.ttft, "tpot": found.tpot, "price": found.dollars}
        limits = self.configuration.group.need.limits
        return {
            name: float(figure.base) / float(limits[name].base)
            for name, figure in figures.items()
            if figure is not None and name in limits
        }

    @property
    def binding(self) -> str:
        """The limit that is nearest, or missed by most."""
        return max(self.stress, key=lambda name: self.stress[name])

    @property
    def meets(self) -> bool:
        """Whether every limit is kept."""
        return max(self.stress.values()) <= 1


@dataclass
class Bench:
    """Measures configurations of one need, each once."""

    need: Need
    known: dict[tuple[int, int], Measured] = field(default_factory=dict)

    def measure(self, one: Configuration) -> Measured:
        """The step model's answer; quantities are ``latency.*``, ``serve.*`` and ``turn.total``.

        Raises `InputError` where the catalog lacks a figure of the device, such as its link.
        """
        key = (id(one.group), one.index)
        if key not in self.known:
            self.known[key] = self._measure(one)
        return self.known[key]

    def _measure(self, one: Configuration) -> Measured:
        need, laid = self.need, one.deployment
        traffic = Traffic(one.sides["batch"], float(need.prompt.value), float(need.output.value))
        found = quantities(steps(laid), traffic, Prices(need.price))
        turn = None
        if "turn" in need.limits:
            turn = derive(
                "turn.total", "ttft + output*tpot + overhead", "s",
                ttft=found.ttft, output=need.output, tpot=found.tpot, overhead=need.overhead,
            ).titled("Turn")  # fmt: skip
        return Measured(one, found, turn)


def measurable(bench: Bench, one: Configuration) -> str:
    """Why the step model cannot answer for this device; empty where it can."""
    try:
        bench.measure(one)
    except InputError as error:
        return error.message
    return ""


def shares(stress: Mapping[str, float], names: Mapping[str, str]) -> str:
    """``TPOT 92%, memory 40%``, the nearest limit first."""
    ordered = sorted(stress.items(), key=lambda item: -item[1])
    return ", ".join(f"{names[name]} {100 * value:.0f}%" for name, value in ordered)
