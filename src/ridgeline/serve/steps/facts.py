"""What a deployment's latency case holds: expected times with intervals, utilisation, floor, price and energy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.core import catalog
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.core.specs import Spec
from ridgeline.serve.capacity.capacity import capacity
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.calibrate import Check
from ridgeline.serve.steps.energy import power, watts
from ridgeline.serve.steps.expected import Calibration, predict
from ridgeline.serve.steps.load import TERMS, Loaded, load_of, shape_of, step_model
from ridgeline.serve.steps.published import Row
from ridgeline.serve.steps.quantities import known_bandwidth, known_peak, per_million, served

_FITTED = Source("serving model fitted to published rows", "core/data/serving.json")
_MOST_SEQUENCES = 2**20  # far above what the memory of any replica holds
_NAMES = {"tpot": ("Time per output token", "s/token"), "ttft": ("Time to first token", "s")}


_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(Spec):
    """What ``--spec`` may hold beside the flags: types, sizes, engine, and latency needs in milliseconds."""

    parallel: str = ""
    weights: str = "bf16"
    kv: str = "bf16"
    engine: str = "vllm"
    slo_tpot_ms: _Positive | None = None
    slo_ttft_ms: _Positive | None = None


@dataclass(frozen=True)
class LatencyFacts:
    """``latency.*`` and ``serve.*`` of one deployment and load; ``ends`` are both ends of the 80% intervals by target.

    ``terms`` are the seconds of a step by what they are for, adding up to ``latency.tpot`` times a token. ``floor`` is
    what no software can beat: bytes over bandwidth or FLOPs over peak, whichever is longer (s/token). ``fit`` is how
    many requests of that length the memory holds (``capacity.sequences``).
    """

    load: Loaded
    settings: Settings
    tpot: Quantity
    ttft: Quantity
    ends: Mapping[str, tuple[Quantity, Quantity]]
    tokens_per_s: Quantity
    mbu: Quantity
    mfu: Quantity
    floor: Quantity
    floors: Mapping[str, Quantity]
    power: Quantity | None
    dollars: Quantity | None
    joules: Quantity | None
    terms: Mapping[str, Quantity]
    klass: str
    calibration: Calibration | None = None
    checks: Mapping[str, Check] | None = None
    fit: Quantity | None = None

    @property
    def deployment(self) -> Deployment:
        """What is served."""
        return self.load.row.deployment

    def share(self, *names: str) -> Quantity:
        """The share of a step that the named terms take (%)."""
        inputs = {name: self.terms[name] for name in names if name in self.terms}
        name = "latency.share." + "_".join(names)
        if not inputs:
            return leaf(name, 0, "%", note="the deployment has no such term")
        text = "(" + " + ".join(inputs) + ")/(tpot*token)"
        token = given("latency.one_token", 1, "token", "one token a sequence and step")
        return derive(name, text, "%", **inputs, tpot=self.tpot, token=token)


def load_for(deployment: Deployment, context: float, answer: float, batch: float) -> Loaded:
    """The load of ``batch`` requests in a closed loop, each of ``context`` tokens of which ``answer`` are written.

    Raises `InputError` for an answer that leaves no prompt, or a batch below 1 or above what any system holds.
    """
    if not 1 <= answer < context:
        raise InputError.expected(f"at least 1 and fewer than the {context:,.0f} tokens of --context", answer,
                                  where="--output-tokens")  # fmt: skip
    if not 1 <= batch <= _MOST_SEQUENCES:
        raise InputError.expected(f"1 to {_MOST_SEQUENCES:,} sequences", f"{batch:g}", where="--batch",
                                  hint="requests that one replica decodes at once")  # fmt: skip
    row = Row("asked", deployment, context - answer, answer, batch, batch, engine=deployment.engine)
    return load_of(row)


def facts_of(
    load: Loaded,
    settings: Settings,
    usd_chip_hour: float | None = None,
    calibration: Calibration | None = None,
    checks: Mapping[str, Check] | None = None,
) -> LatencyFacts:
    """Everything that the case holds. Raises `InputError` where the catalog lacks the device's peak or bandwidth, and
    `InfeasibleError` where the weights leave no room for a cache.
    """
    found = predict([load], calibration)
    note = f"residuals {found.classes[0]}" + ("" if calibration is None else f", {calibration.rows} measured rows")
    values, ends = {}, {}
    for name, (label, unit) in _NAMES.items():
        value = float(found.value(name)[0])
        values[name] = leaf(f"latency.{name}", value, unit, "measured", _FITTED, note).titled(label, note)
        low, high = (float(side[0]) for side in found.interval(name))
        ends[name] = tuple(
            leaf(f"latency.{name}.{side}80", end, unit, "measured", _FITTED, note).titled(f"{label}, {word} end of 80%")
            for side, end, word in (("low", low, "lower"), ("high", high, "upper"))
        )
    terms = {
        name: leaf(f"latency.terms.{name}", float(share) * float(values["tpot"].value), "s", "measured", _FITTED,
                   "share of the fitted terms of a step")
        for name, share in zip(TERMS, found.shares[0], strict=True) if share > 0
    }  # fmt: skip
    return _with_rates(load, settings, usd_chip_hour, values, {name: (a, b) for name, (a, b) in ends.items()}, terms,
                       (found.classes[0], calibration, checks))  # fmt: skip


def _with_rates(
    load: Loaded,
    settings: Settings,
    usd_chip_hour: float | None,
    values: Mapping[str, Quantity],
    ends: Mapping[str, tuple[Quantity, Quantity]],
    terms: Mapping[str, Quantity],
    rest: tuple[str, Calibration | None, Mapping[str, Check] | None],
) -> LatencyFacts:
    model, tpot = step_model(load.row.deployment), values["tpot"]
    chips = given("serve.chips", load.row.deployment.chips, "chip", "the deployment")
    token = given("latency.one_token", 1, "token", "one token a sequence and step")
    moved, done = (
        leaf(name, amount, unit, "specified", Source("the model's operations", "one step with its share of prompts"))
        for name, amount, unit in (("serve.step.bytes", load.bytes, "B"), ("serve.step.flops", load.flops, "FLOP"))
    )
    floors = {
        "memory": derive("latency.floor.memory", "moved/(chips*rate*token)", "s/token", moved=moved, chips=chips,
                         rate=known_bandwidth(model), token=token),
        "compute": derive("latency.floor.compute", "done/(chips*rate*token)", "s/token", done=done, chips=chips,
                          rate=known_peak(model), token=token),
    }  # fmt: skip
    shares = {
        name: derive(f"serve.{name}", "floor/tpot", "%", floor=floors[side], tpot=tpot).titled(label)
        for name, side, label in (
            ("mbu", "memory", "Memory bandwidth utilisation"), ("mfu", "compute", "Model FLOPs utilisation"),
        )
    }  # fmt: skip
    rate = closed_rate(load, tpot, values["ttft"])
    drawn = _power(load, float(tpot.value))
    cost = catalog.constant(f"prices.chip_hour.{load.row.deployment.device.slug}", missing_ok=True)
    if usd_chip_hour is not None:
        cost = given("serve.price", usd_chip_hour, "USD/(chip*h)", "--price")
    klass, calibration, checks = rest
    return LatencyFacts(
        load, settings, tpot, values["ttft"], ends, rate, shares["mbu"], shares["mfu"],
        derive("latency.floor", "max(memory, compute)", "s/token", **floors).titled("No software is faster"),
        floors, drawn, per_million("dollars", "USD", cost, chips, rate),
        per_million("joules", "J", drawn, chips, rate), terms, klass, calibration, checks,
        capacity(load.row.deployment, round(load.row.prompt + load.row.answer)).sequences,
    )  # fmt: skip


def closed_rate(load: Loaded, tpot: Quantity, ttft: Quantity) -> Quantity:
    """``serve.tokens_per_s`` (token/s) of a replica from ``tpot`` (s/token) and ``ttft`` (s).

    Little's law of a closed loop: each place writes one answer per whole request, the wait for its first token
    in it.

    On 169 published rows that state all three, this is 3% off the measured rate in the median; batch/tpot is 83%.
    """
    batch = given("serve.batch", load.sequences, "1", "--batch")
    _, _, answer = served(load.row.deployment.spec, load.row.prompt, load.row.answer)
    one = given("latency.one_token", 1, "token", "one token a sequence and step")
    found = derive("serve.tokens_per_s", "batch*answer/(ttft + (answer - one)*tpot)", "token/s",
                   batch=batch, answer=answer, ttft=ttft, one=one, tpot=tpot)  # fmt: skip
    return found.titled("Output tokens per second", "of a closed loop: each request is replaced when it ends")


def _power(load: Loaded, tpot_s: float) -> Quantity | None:
    if load.row.deployment.device.power is None:
        return None
    note = f"held-out J a token misses by {power().error:.0%} in the median"
    return leaf("serve.power", watts(load, tpot_s), "W/chip", "measured", _FITTED, note).titled(
        "Power of a chip with its share of the server", note
    )


def ridge_batch(facts: LatencyFacts) -> float:
    """Sequences from which a step's matmuls are bound by FLOPs: weights' bytes against twice the parameters."""
    model = step_model(facts.deployment)
    shape = shape_of(facts.deployment.spec)
    ridge = float(known_peak(model).base) / float(known_bandwidth(model).base)
    return ridge * float(dtype_bytes(facts.deployment.weights).base) / 2 * shape.total / shape.active
