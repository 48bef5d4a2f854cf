"""Every candidate through the formulas of one model: parameters, cache, roofline times, price, and the law's loss.

The times are the roofline of `ridgeline.arithmetic.latency`: prefill at 2N FLOPs a token and one sweep of weights and
caches a step, at the device's full rates. They are lower bounds, so what misses a limit here misses it in truth;
`ridgeline.serve.codesign.measured` asks the step model about the rest.
A mixture's loss is that of the dense model which a joint law calls its equal, no larger than all its parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.budget import tokens_for
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.kv import Caching, Share, kept
from ridgeline.arithmetic.latency import Chip, Served, Turn, decode_step, interactive_turn, prefill_time
from ridgeline.arithmetic.params import Leaves, Params, params
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.catalog import constant
from ridgeline.core.device import Device
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, Source, derive, leaf, renamed
from ridgeline.serve.capacity.memory import captured
from ridgeline.serve.codesign.grid import Frame, frames, label
from ridgeline.serve.codesign.need import LIMITS, Need
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.quantities import output_rate, per_million

Floats = np.ndarray[Any, np.dtype[np.float64]]
MEMORY = "memory"
NAMES = {"turn": "a turn", "ttft": "TTFT", "tpot": "TPOT", "price": "the price", MEMORY: "memory"}
_ROOF = "roofline"


@dataclass(frozen=True)
class Group:
    """A frame in one pair of element types. ``figures`` are arrays of candidates by short name: total, active, tokens,
    loss, prefill, tpot, and turn and price where they apply. ``stress`` is what each limit has used up: 1 is all."""

    need: Need
    frame: Frame
    weights: str
    kv: str
    figures: Mapping[str, Quantity]
    stress: Mapping[str, Floats]

    @cached_property
    def worst(self) -> Floats:
        """The largest stress of each candidate."""
        found: Floats = np.max(list(self.stress.values()), axis=0)
        return found

    @cached_property
    def loss(self) -> Floats:
        """The law's loss; not a number where no law covers the candidate."""
        return np.asarray(self.figures["loss"].value, dtype=np.float64)


@dataclass(frozen=True)
class Configuration:
    """One candidate of a group."""

    group: Group
    index: int

    @property
    def sides(self) -> dict[str, int]:
        """Its dimensions."""
        return self.group.frame.at(self.index)

    @property
    def spec(self) -> ModelSpec:
        """Its model."""
        return self.group.frame.spec(self.index)

    @property
    def deployment(self) -> Deployment:
        """How it would be served: tensor parallel over all the chips of a replica."""
        need = self.group.need
        return Deployment(
            self.spec, need.device, tp=int(need.chips.value), weights=self.group.weights, kv=self.group.kv
        )

    @property
    def label(self) -> str:
        """``40 x 5120, 8 KV heads, fp8/bf16``."""
        return f"{self.shape}, {self.types}"

    @property
    def shape(self) -> str:
        """``40 x 5120, 8 KV heads``."""
        return label(self.sides, self.group.frame.attention)

    @property
    def types(self) -> str:
        """Element types of weights and cache."""
        return f"{self.group.weights}/{self.group.kv}"

    @property
    def stress(self) -> dict[str, float]:
        """The share of every limit that the roofline uses up."""
        return {name: float(values[self.index]) for name, values in self.group.stress.items()}

    @property
    def timed(self) -> float:
        """The largest of them but memory."""
        return max(value for name, value in self.stress.items() if name != MEMORY)

    def figure(self, name: str, prefix: str = "") -> Quantity:
        """One figure with its derivation; names that are of this candidate alone get the prefix."""
        found = self.group.figures[name].at(self.index, lambda own: f"{prefix}.{own}" if prefix else own)
        # an idle expert of a dense model is a plain zero, not an array, and still this candidate's
        return renamed([found], lambda own: f"{prefix}.{own}" if prefix and own.startswith("params.") else own)[0]


def groups(need: Need) -> list[Group]:
    """The whole search, evaluated."""
    found = []
    for frame in frames(need):
        counted = params(frame.spec(0), frame.vary())
        losses = _losses(need, need.law, frame, counted)
        for weights in need.axes.weights:
            found += [_group(need, frame, counted, losses, (weights, kv)) for kv in need.axes.kv]
    return found


def _group(need: Need, frame: Frame, counted: Params, losses: Mapping[str, Quantity], types: tuple[str, str]) -> Group:
    weights, kv = types
    batch = leaf("codesign.batch", frame.columns["batch"], "1", "specified", Source("co-design", "batches"))
    chip, memory = _chip(need.device, weights), _memory(need)
    served, resident = _served(need, frame, counted, batch, types)
    timed = _times(need, served, chip)
    rate = output_rate(batch, timed["tpot"], timed["prefill"], need.output, _ROOF)
    price = per_million("dollars", "USD", need.price, need.chips, rate, _ROOF)
    taken = derive("codesign.memory", "resident/room", "1", resident=resident, room=memory)
    figures = {"total": counted.total, "active": counted.active, MEMORY: taken, **losses, **timed}
    figures |= {"price": price} if price is not None else {}
    over = {"turn": "turn", "ttft": "prefill", "tpot": "tpot", "price": "price"}
    stress = {name: _share(figures[over[name]], need.limits[name]) for name in LIMITS if name in need.limits}
    return Group(need, frame, weights, kv, figures, stress | {MEMORY: np.asarray(taken.value)})


def _share(figure: Quantity, limit: Quantity) -> Floats:
    return np.asarray(figure.base, dtype=np.float64) / float(limit.base)


def _times(need: Need, served: Served, chip: Chip) -> dict[str, Quantity]:
    if "turn" in need.limits:
        asked = Turn(need.prompt, need.output, need.overhead, need.limits["turn"])
        time = interactive_turn(served, chip, asked, need.chips, _ROOF)
        return {"prefill": time.prefill, "tpot": time.step, "turn": time.total}
    return {
        "prefill": prefill_time(served, need.prompt, need.chips, chip, _ROOF),
        "tpot": decode_step(served, need.chips, chip, _ROOF),
    }


def _served(
    need: Need, frame: Frame, counted: Params, batch: Quantity, types: tuple[str, str]
) -> tuple[Served, Quantity]:
    """The model being served, and the bytes that a replica holds: weights and all caches at their longest."""
    weights, kv = types
    width = dtype_bytes(weights)
    stored = derive("codesign.weights", "total*width/one", "B", total=counted.total, width=width, one=_one_param())
    longest = derive("codesign.context", "prompt + output", "token", prompt=need.prompt, output=need.output)
    share = Share(leaf("codesign.tp", int(need.chips.value), "1"), {"layer0": 1})
    cache = kept(Leaves(frame.spec(0), frame.vary()), longest, Caching(kv), share)
    inputs = {"each": cache.per_token, "chips": need.chips, "prompt": need.prompt, "output": need.output}
    # half an answer is there on average while it is decoded; every chip reads its own part or copy
    mean = derive("codesign.cache", "each*count(chips)*(prompt + output/2)", "B", **inputs)
    resident = derive(
        "codesign.resident", "weights + batch*count(chips)*cache", "B",
        weights=stored, batch=batch, chips=need.chips, cache=cache.per_sequence,
    )  # fmt: skip
    swept = None
    if frame.mixture:
        experts, top_k = (leaf(f"codesign.{n}", frame.columns[n], "1", "specified") for n in ("experts", "top_k"))
        swept = derive(
            "codesign.swept", "width/one*(total - (total - active)*(1 - top_k/experts)**(batch - 1))", "B",
            width=width, one=_one_param(), total=counted.total, active=counted.active, top_k=top_k, experts=experts,
            batch=batch,
        ).titled("Bytes that a step reads: the experts that its batch reaches")  # fmt: skip
    return Served(counted.active, stored, swept, mean, batch), resident


def _one_param() -> Quantity:
    return leaf("codesign.one_param", 1, "param", "specified", Source("a weight", "one element"))


def _chip(device: Device, weights: str) -> Chip:
    """The device's figures at the rate of the weights' type, or 16 bits where it has no units for that."""
    rate = next((item for item in (weights, "bf16", "fp16") if item in device.peaks), device.dtypes[-1])
    return Chip.of(device, rate)


def _memory(need: Need) -> Quantity:
    """Bytes of a replica for weights and caches: what the engine takes, less graphs and what no tensor accounts for."""
    size = "one" if int(need.chips.value) == 1 else "many"
    found = derive(
        "codesign.room", "chips*memory*share - count(chips)*(graphs + outside)", "B",
        chips=need.chips, memory=known(need.device.hbm_bytes, f"the memory of {need.device.name}"),
        share=constant("admission.utilisation"), graphs=captured(need.device),
        outside=constant(f"admission.outside.{size}"),
    )  # fmt: skip
    return found.titled("Room for weights and caches")


def _losses(need: Need, law: Law, frame: Frame, counted: Params) -> dict[str, Quantity]:
    """``tokens`` on the budget, ``effective`` dense parameters and ``loss``."""
    tokens = tokens_for(need.compute, counted.active)
    effective = counted.total
    if frame.mixture:
        c = frame.columns
        wide = leaf("codesign.expansion", c["experts"] / c["top_k"], "1", "specified", Source("co-design", "experts"))
        wide = wide.titled("Experts over those a token uses: as many as wide as the dense layer, one used")
        equal = laws.dense_equivalent(need.joint, counted.active, tokens, wide, "codesign.equal")
        effective = derive("codesign.effective", "min(equal, total)", "param", equal=equal, total=counted.total)
        effective = effective.titled("Dense model with the same loss, at most all parameters")
    return {"tokens": tokens, "effective": effective, "loss": laws.loss(law, effective, tokens, "codesign.loss")}


def losses_under(need: Need, law: Law, group: Group) -> Floats:
    """The same candidates' losses under another law; a joint one is asked directly."""
    active, tokens = group.figures["active"], group.figures["tokens"]
    if law.kind == "moe_joint":
        c = group.frame.columns
        wide = leaf("codesign.expansion", c["experts"] / c["top_k"], "1", "specified", Source("co-design", "experts"))
        found = laws.joint_loss(law, active, tokens, wide, "codesign.other")
    else:
        found = laws.loss(law, group.figures["effective"], tokens, "codesign.other")
    return np.asarray(found.value, dtype=np.float64)
