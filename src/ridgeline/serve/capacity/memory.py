"""What one chip has left for the cache: its memory less weights, activations, graphs and what no tensor accounts for.

The terms are those of an engine's start-up log: memory x utilisation - weights - activation peak of a prefill step -
captured graphs - memory outside the framework. A term read from a log replaces the one worked out here.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.inputs import known, one_chip
from ridgeline.arithmetic.kv import Share
from ridgeline.arithmetic.params import Leaves, Place, places
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLP, Block, MoE
from ridgeline.core import formula as formulas
from ridgeline.core.catalog import constant
from ridgeline.core.device import Device
from ridgeline.core.quantity import Quantity, derive, given, leaf
from ridgeline.serve.capacity.settings import Settings
from ridgeline.serve.capacity.weights import chip_weights
from ridgeline.serve.deployment import Deployment

_COMPILED = ("Google", "AWS")  # vendors whose chips run whole compiled programs


@dataclass(frozen=True)
class Room:
    """Bytes on one chip of the stage: ``memory`` all of it, ``usable`` what the engine takes, ``free`` for the cache
    (negative where the rest does not fit), and the terms between."""

    memory: Quantity
    usable: Quantity
    weights: Quantity
    activations: Quantity
    graphs: Quantity
    outside: Quantity
    free: Quantity

    @property
    def terms(self) -> tuple[Quantity, ...]:
        """What is taken before the cache gets anything, in the order of a log."""
        return (self.weights, self.activations, self.graphs, self.outside)


def room(deployment: Deployment, settings: Settings, share: Share, stage: int) -> Room:
    """The memory of one chip of a stage. Raises `InputError` for a device whose memory is not known."""
    memory, usable = usable_memory(deployment, settings)
    weights = _told("weights", settings.model) or chip_weights(deployment, share, stage)
    graphs = _told("graphs", settings.graphs) or captured(deployment.device).named("chip.graphs")
    size = "one" if deployment.chips == 1 else "many"
    outside = _told("outside", settings.outside) or constant(f"admission.outside.{size}").named("chip.outside")
    terms = {
        "usable": usable,
        "weights": weights,
        "activations": _told("activations", settings.activations) or activations(deployment, settings, share),
        "graphs": graphs,
        "outside": outside,
    }
    free = derive("chip.free", "usable - weights - activations - graphs - outside", "B", **terms)
    return Room(memory, **terms, free=free.titled("Room for the cache on one chip"))


def captured(device: Device) -> Quantity:
    """``admission.graphs`` (B): what captured graphs take of one chip; none where programs are compiled ahead."""
    if device.vendor not in _COMPILED:
        return constant("admission.graphs")
    note = f"{device.vendor}'s chips run programs compiled ahead: no launches are captured"
    return leaf("admission.graphs", 0, "B", "assumed", note=note).titled("Captured graphs", note)


def usable_memory(deployment: Deployment, settings: Settings) -> tuple[Quantity, Quantity]:
    """``chip.memory`` and ``chip.usable`` (B): all of a chip's memory, and the share that the engine takes."""
    memory = _told("memory", settings.memory)
    if memory is None:
        hbm = known(deployment.device.hbm_bytes, f"the memory of {deployment.device.name}")
        memory = derive("chip.memory", "hbm*chip", "B", hbm=hbm, chip=one_chip())
    share = constant("admission.utilisation")
    if settings.utilisation is not None:
        share = given("chip.utilisation", settings.utilisation, "1", "--spec, utilisation")
    usable = derive("chip.usable", "memory*share", "B", memory=memory, share=share)
    return memory.titled("Memory of one chip"), usable.titled("Memory that the engine may use")


def activations(deployment: Deployment, settings: Settings, share: Share) -> Quantity:
    """``chip.activations`` (B): the peak of one prefill step, or the logits of a full decode step if larger.

    A gated block holds its two inner products, their product and the residual at once. Where attention is data
    parallel, the experts of a chip see the tokens of every group.
    """
    leaves = Leaves(deployment.spec)
    here = [p for p in places(deployment.spec) if share.layers.get(p.label.partition(".")[0], 0)]
    inner = [_inner(leaves, deployment, share, place) for place in here if isinstance(place.block, MLP | MoE)]
    widest = max(inner, key=lambda q: float(q.value), default=given("chip.inner.none", 0, "1"))
    inputs = {
        "chunk": _count("chunk", settings.chunk),
        "sequences": _count("sequences", settings.sequences),
        "wide": dtype_bytes("bf16"),
        "logit": dtype_bytes("fp32"),
        "d_model": leaves.get("model.d_model", deployment.spec.d_model),
        "vocab": leaves.get("model.vocab", deployment.spec.vocab),
        "inner": widest,
    }
    text = "max(count(chunk)*wide*(d_model + inner), sequences*vocab*logit)"
    return derive("chip.activations", text, "B", **inputs).titled("Activation peak of a prefill step")


def _inner(leaves: Leaves, deployment: Deployment, share: Share, place: Place) -> Quantity:
    """Elements per token inside a feed-forward block on one chip."""
    text = _inner_text(place.block)
    sizes = {"tp": share.tp, "stage": given("deployment.stage", deployment.stage, "1"),
             "groups": given("deployment.dp_attention", deployment.dp_attention, "1"),
             "ep": given("deployment.ep", deployment.ep, "1")}  # fmt: skip
    inputs = {s: sizes[s] if s in sizes else leaves.dim(place, s) for s in formulas.parse(text).names}
    return derive(f"chip.inner.{place.label}", text, "1", **inputs)


def _inner_text(block: Block) -> str:
    if isinstance(block, MoE):
        width = "d_model" if block.latent is None else "latent"
        return f"top_k*groups/ep*({3 if block.gated else 2}*expert_ff*ep/stage + {width})"
    assert isinstance(block, MLP)
    return f"{3 if block.gated else 2}*d_ff/tp"


def _told(name: str, value_bytes: float | None) -> Quantity | None:
    """A term that the user read from a log."""
    return None if value_bytes is None else given(f"chip.{name}", value_bytes, "B", f"--spec, {name}")


def _count(name: str, value: int | None) -> Quantity:
    default = constant(f"admission.{name}")
    return default if value is None else given(f"chip.{name}", value, default.unit, f"--spec, {name}")
