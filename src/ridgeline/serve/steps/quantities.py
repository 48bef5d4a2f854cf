"""A serving estimate as quantities with derivations: TPOT, TTFT, throughput, MBU and MFU, dollars and joules.

The seconds of each term are looked up in `StepModel`; what follows from them is derived. A replica shares its time
between decode steps and the prompts of the requests that replace finished ones: each step, ``batch/output`` of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.arithmetic.inputs import known, require_not_negative, require_positive, under
from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.serve.steps.step import StepModel, Times

_WHERE = Source("serving surfaces", "docs/design/serving-surfaces.md")
_LABELS = {
    "dense": "Dense matmuls and element-wise kernels",
    "attention": "Attention and states",
    "experts": "Routed experts",
    "head": "Head and sampler",
    "tensor_parallel": "All-reduces of tensor parallelism",
    "expert_exchange": "Exchange with the experts",
    "pipeline": "Hand-over between stages",
    "host": "Waiting for the host",
}


@dataclass(frozen=True)
class Traffic:
    """``batch`` sequences at once, each of ``prompt`` tokens (of which ``cached`` need no prefill) and ``output``."""

    batch: float
    prompt: float
    output: float
    cached: float = 0.0


@dataclass(frozen=True)
class Prices:
    """Optional: ``chip_hour`` (USD/(chip*h)), ``power`` (W/chip, of the whole server share), ``queue`` (s)."""

    chip_hour: Quantity | None = None
    power: Quantity | None = None
    queue: Quantity | None = None


@dataclass(frozen=True)
class Latency:
    """``step`` and ``prompt`` are the waterfall, by term (s). ``low`` and ``high`` are 80% ends by quantity's name."""

    tpot: Quantity
    prefill: Quantity
    ttft: Quantity
    tokens_per_s: Quantity
    mbu: Quantity
    mfu: Quantity
    dollars: Quantity | None
    joules: Quantity | None
    step: Mapping[str, Quantity]
    prompt: Mapping[str, Quantity]
    ends: Mapping[str, tuple[float, float]]

    @property
    def all(self) -> tuple[Quantity, ...]:
        """Everything that a Case should carry."""
        found = (self.tpot, self.prefill, self.ttft, self.tokens_per_s, self.mbu, self.mfu, self.dollars, self.joules)
        return tuple(item for item in found if item is not None)


def quantities(model: StepModel, traffic: Traffic, prices: Prices | None = None, prefix: str = "") -> Latency:
    """``latency.tpot`` (s/token), ``latency.prefill`` and ``latency.ttft`` (s), ``serve.*`` of one deployment.

    TPOT is that of steps without prompts, at the mean context. Raises `InputError` for sizes below one.
    """
    prices = prices or Prices()
    laid = model.deployment
    mean = traffic.prompt + traffic.output / 2
    decode = model.decode(traffic.batch, mean)
    # a prompt of which everything is cached computes its last token again
    past = min(traffic.cached, traffic.prompt - 1)
    prompt = model.prefill(traffic.prompt - past, past)
    chips = given("serve.chips", laid.chips, "chip", "the deployment")
    step = _terms(decode, under(prefix, "latency.step"))
    whole = _terms(prompt, under(prefix, "latency.prefill"))
    one = derive(under(prefix, "latency.step"), " + ".join(step), "s", **step)
    token = given(under(prefix, "serve.tokens_a_step"), 1, "token", "one token a sequence and step")
    tpot = derive(under(prefix, "latency.tpot"), "step/token", "s/token", step=one, token=token)
    tpot = tpot.titled("Time per output token", "steps without prompts, at the mean context")
    prefill = derive(under(prefix, "latency.prefill"), " + ".join(whole), "s", **whole).titled("Prefill")
    ttft = _ttft(prefill, prices.queue, prefix)
    rate = _rate(tpot, prefill, traffic, prefix)
    mbu = _share(under(prefix, "serve.mbu"), decode.bytes[0], "B", one, chips, known_bandwidth(model))
    mfu = _share(under(prefix, "serve.mfu"), prompt.flops[0], "FLOP", prefill, chips, known_peak(model))
    return Latency(
        tpot,
        prefill,
        ttft,
        rate,
        mbu.titled("Memory bandwidth utilization of a decode step"),
        mfu.titled("MFU of the prefill"),
        per_million("dollars", "USD", prices.chip_hour, chips, rate, prefix),
        per_million("joules", "J", prices.power, chips, rate, prefix),
        step,
        whole,
        {
            tpot.name: (float(decode.low[0]), float(decode.high[0])),
            prefill.name: (float(prompt.low[0]), float(prompt.high[0])),
        },
    )


def _terms(times: Times, name: str) -> dict[str, Quantity]:
    """Terms above zero as leaves."""
    return {
        term: leaf(f"{name}.{term}", float(seconds[0]), "s", "assumed", _WHERE, "look-up in fitted surfaces").titled(
            _LABELS[term]
        )
        for term, seconds in times.terms.items()
        if seconds[0] > 0
    }


def _ttft(prefill: Quantity, queue: Quantity | None, prefix: str) -> Quantity:
    name = under(prefix, "latency.ttft")
    if queue is None:
        found = derive(name, "prefill", "s", prefill=prefill)
        return found.titled("Time to first token", "of an idle engine: a request waits in no queue")
    require_not_negative(queue)
    return derive(name, "queue + prefill", "s", queue=queue, prefill=prefill).titled("Time to first token")


def _rate(tpot: Quantity, prefill: Quantity, traffic: Traffic, prefix: str) -> Quantity:
    batch = given(under(prefix, "serve.batch"), traffic.batch, "1", "the traffic")
    output = given(under(prefix, "serve.output"), traffic.output, "token", "the traffic")
    return output_rate(batch, tpot, prefill, output, prefix)


def output_rate(batch: Quantity, tpot: Quantity, prefill: Quantity, output: Quantity, prefix: str = "") -> Quantity:
    """``serve.tokens_per_s`` (token/s) of a replica that decodes ``batch`` sequences (1) at ``tpot`` (s/token), of
    ``output`` tokens each (token), with a ``prefill`` (s) for each of them. Any may be an array of candidates.
    """
    require_positive(batch, output)
    found = derive(
        under(prefix, "serve.tokens_per_s"), "batch/(tpot + batch*prefill/output)", "token/s",
        batch=batch, tpot=tpot, prefill=prefill, output=output,
    )  # fmt: skip
    return found.titled("Output tokens per second", "decode steps and the prompts of new requests share the replica")


def known_bandwidth(model: StepModel) -> Quantity:
    """The memory bandwidth of the deployment's device (B/s/chip)."""
    device = model.deployment.device
    return known(device.hbm_bandwidth, f"the memory bandwidth of {device.name}")


def known_peak(model: StepModel) -> Quantity:
    """The peak of the deployment's weights where the device has units for them, else the 16-bit peak (FLOP/s/chip)."""
    device, weights = model.deployment.device, model.deployment.weights
    rate = next((item for item in (weights, "bf16", "fp16") if item in device.peaks), device.dtypes[-1])
    return known(device.peak(rate), f"the {rate} peak of {device.name}")


def _share(name: str, amount: float, unit: str, time: Quantity, chips: Quantity, rate: Quantity) -> Quantity:
    work = leaf(f"{name}.work", float(amount), unit, "specified", Source("the model's operations", "one step"))
    return derive(name, "work/(time*chips*rate)", "%", work=work, time=time, chips=chips, rate=rate)


def served(spec: ModelSpec, prompt: float, answer: float) -> tuple[Quantity, ...]:
    """What a price of served tokens is for: ``params.active``, ``serve.prompt`` and ``serve.output`` (token)."""
    lengths = (
        given("serve.prompt", prompt, "token", "the traffic").titled("Tokens of a prompt, mean"),
        given("serve.output", answer, "token", "the traffic").titled("Tokens of an answer, mean"),
    )
    return (params(spec).active, *lengths)


def per_million(
    what: str, unit: str, each: Quantity | None, chips: Quantity, rate: Quantity, prefix: str = ""
) -> Quantity | None:
    """``serve.dollars_per_million_tokens`` or joules: what the chips cost a second over the output tokens a second."""
    if each is None:
        return None
    require_not_negative(each)
    name = under(prefix, f"serve.{what}_per_million_tokens")
    found = derive(name, "each*chips/rate", f"{unit}/(1e6*token)", each=each, chips=chips, rate=rate)
    return found.titled(f"{what.capitalize()} per million output tokens", "prompts included")
