"""What the S2 rules look at: the study, the run, its figures, and the same as quantities with stable names."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.serve.simulate import binding
from ridgeline.serve.simulate.engine.result import Result
from ridgeline.serve.simulate.frontier import Frontier, MaxRate
from ridgeline.serve.simulate.metrics import LATENCIES, Metrics, Power, Slo
from ridgeline.serve.simulate.study import Study
from ridgeline.serve.simulate.traffic.summary import Summary, summary

TITLES = {"ttft": "Time to first token", "tpot": "Time per output token", "e2e": "Whole answer", "queueing": "Queueing"}


@dataclass(frozen=True, eq=False)
class Simulated:
    """A run and what was made of it. ``highest`` and ``curve`` are None where they were not looked for.

    ``missed`` says why there is no highest rate.
    """

    study: Study
    result: Result
    metrics: Metrics
    slos: Mapping[str, Slo]
    highest: MaxRate | None = None
    curve: Frontier | None = None
    missed: str = ""

    @cached_property
    def source(self) -> Source:
        """Where the simulated figures come from."""
        load = self.result.workload
        return Source("discrete-event simulation", f"{len(load):,} requests, seed {self.result.seed}")

    def measured(self, name: str, value: float, unit: str, label: str, note: str = "") -> Quantity:
        """A figure of the run."""
        return leaf(name, value, unit, "measured", self.source, note).titled(label)

    @cached_property
    def summary(self) -> Summary | None:
        """The workload as it was sent; None in a closed loop, whose arrivals the run decides."""
        load = self.result.workload
        return None if load.closed else summary(load.arrival_s, load.input_tokens, load.output_tokens)

    @cached_property
    def binding(self) -> Mapping[str, float]:
        """Shares of the step time by what held the queue back."""
        return binding.binding(self.result)

    @cached_property
    def latencies(self) -> dict[str, Quantity]:
        """``simulate.ttft.p50`` and the like (s), for every latency that some request has."""
        found = {}
        for name in LATENCIES:
            item = self.metrics.latencies[name]
            for key, value in (item.figures if item else {}).items():
                label = f"{TITLES[name]}, {'mean' if key == 'mean' else f'{key[1:]}th percentile'}"
                found[f"{name}.{key}"] = self.measured(f"simulate.{name}.{key}", value, "s", label)
        return found

    @cached_property
    def rates(self) -> dict[str, Quantity]:
        """What was served a second, and how the engine was used, by the last part of its name."""
        m = self.metrics
        found = {
            "requests_per_s": self.measured("simulate.requests_per_s", m.requests_per_s, "request/s", "Served"),
            "output_tokens_per_s": self.measured(
                "simulate.output_tokens_per_s", m.output_tokens_per_s, "token/s", "Output"
            ),
            "busy": self.measured("simulate.busy", 100 * m.busy, "%", "Time in steps"),
            "batch": self.measured("simulate.batch", m.batch, "1", "Sequences in a step"),
            "kv_mean": self.measured("simulate.kv.mean", 100 * m.kv_mean, "%", "Key-value blocks in use"),
            "kv_peak": self.measured("simulate.kv.peak", 100 * m.kv_peak, "%", "Key-value blocks in use, peak"),
            "hit_rate": self.measured("simulate.hit_rate", 100 * m.hit_rate, "%", "Prompt tokens found in the cache"),
        }
        if m.goodput is not None:
            found["goodput"] = self.measured(
                "simulate.goodput", m.goodput.requests_per_s, "request/s", "Requests that meet the SLO"
            )
            found["goodput_share"] = self.measured(
                "simulate.goodput.share", 100 * m.goodput.share, "%", "Share that meets the SLO"
            )
        if self.highest is not None:
            found["max_rate"] = self.measured(
                "simulate.max_rate", self.highest.rate_per_s, "request/s", "Highest rate that meets the SLO",
                "bisected to within 2%",
            )  # fmt: skip
        return found

    @cached_property
    def chips(self) -> Quantity:
        """``simulate.chips``: of all workers."""
        return given("simulate.chips", self.study.chips, "chip", "--count, replicas").titled("Chips")

    @cached_property
    def makespan(self) -> Quantity:
        """``simulate.makespan`` (s): from the first arrival to the last token."""
        return self.measured("simulate.makespan", self.result.makespan_s, "s", "First arrival to last token")

    @cached_property
    def output(self) -> Quantity:
        """``simulate.output_tokens``: of all served requests."""
        load, done = self.result.workload, self.result.served
        return self.measured("simulate.output_tokens", int(load.output_tokens[done].sum()), "token", "Tokens written")

    @cached_property
    def dollars(self) -> Quantity | None:
        """``serve.dollars_per_million_tokens``: the rent of every chip over the run; None without a price."""
        price = self._price()
        if price is None or not self.output.value:
            return None
        inputs = {"chips": self.chips, "time": self.makespan, "price": price, "tokens": self.output}
        found = derive("serve.dollars_per_million_tokens", "chips*time*price/tokens", "USD/(1e6*token)", **inputs)
        return found.titled("Rent per million output tokens")

    def _price(self) -> Quantity | None:
        own = self.study.spec.money.dollars_per_chip_hour
        if own is not None:
            return given("price.chip_hour", own, "USD/(chip*h)", "$.money.dollars_per_chip_hour")
        return constant(f"prices.chip_hour.{self.study.deployment.device.slug}", missing_ok=True)

    @cached_property
    def joules(self) -> Quantity | None:
        """``simulate.joules_per_token``: the chips' energy over the run; None where the device's power is not known.

        Rated power while a step runs and while none does, unless the spec says what a chip draws: an upper bound.
        """
        money, rated = self.study.spec.money, self.study.deployment.device.power
        if not self.output.value or (money.busy_watts is None and rated is None):
            return None
        busy = money.busy_watts if money.busy_watts is not None else float(rated.value)  # type: ignore[union-attr]
        idle = money.idle_watts if money.idle_watts is not None else busy
        if idle > busy:
            raise InputError.expected(f"idle watts of at most {busy:g}", idle, where="$.money.idle_watts")
        note = "" if money.busy_watts is not None else "rated power throughout: an upper bound on the chips"
        energy = self.measured(
            "simulate.energy", Power(busy, idle).joules(self.result, self.study.deployment.chips), "J", "Energy", note
        )
        found = derive("simulate.joules_per_token", "energy/tokens", "J/token", energy=energy, tokens=self.output)
        return found.titled("Energy per output token", note)

    @cached_property
    def growth(self) -> Quantity:
        """``simulate.growth`` (%): queueing gained over the time in which it was."""
        value = round(100 * binding.growth(self.result), 1) + 0.0  # no minus before a zero
        return self.measured("simulate.growth", value, "%", "Queueing gained over time")

    @cached_property
    def achievable(self) -> Quantity:
        """``simulate.hit_rate.achievable`` (%): what a cache that never evicts would find."""
        value = 100 * binding.achievable(self.result.workload)
        return self.measured("simulate.hit_rate.achievable", value, "%", "Prompt tokens seen before")

    def share(self, name: str) -> Quantity:
        """``simulate.bound.<name>`` (%): the step time in which that held the queue back."""
        key = name.replace(" ", "_").replace("-", "_")
        return self.measured(f"simulate.bound.{key}", 100 * self.binding.get(name, 0.0), "%", f"Held back by {name}")

    @property
    def queueing_share(self) -> float:
        """Mean queueing over mean time to first token; 0 where nothing was served."""
        ttft, queued = self.metrics.latencies["ttft"], self.metrics.latencies["queueing"]
        if ttft is None or queued is None or not ttft.mean > 0:
            return 0.0
        return min(1.0, queued.mean / ttft.mean)

    @property
    def quantities(self) -> list[Quantity]:
        """Everything that a case publishes."""
        known = [self.dollars, self.joules]
        found = [*self.latencies.values(), *self.rates.values(), self.growth, self.makespan, self.chips, self.output]
        if self.summary is not None and math.isfinite(self.summary.rate_per_s):
            found.append(self.measured("simulate.offered", self.summary.rate_per_s, "request/s", "Offered"))
        return found + [item for item in known if item is not None]
