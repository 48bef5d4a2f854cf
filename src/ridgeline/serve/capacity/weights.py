"""The weights on one chip: every tensor divided as tensor, expert and pipeline parallelism divide it.

Attention, mixers, feed-forward blocks and vocabulary tables are split over ``tp`` and copied over ``dp_attention``;
experts are split over the whole stage. Key and value projections are copied once a chip has one head; routers, norms
and the down-projections of latents are on every chip. The first stage holds the token table, the last the head.
"""

from ridgeline.arithmetic.flops import add
from ridgeline.arithmetic.kv import Share
from ridgeline.arithmetic.params import Leaves, Place, places
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import Attention, Block, ModelSpec, Part, Weight
from ridgeline.arithmetic.tensor_split import split_of
from ridgeline.core import formula as formulas
from ridgeline.core.catalog import constant
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.serve.deployment import Deployment

QUANTIZED = (Part.ATTENTION, Part.MIXER, Part.MLP, Part.EXPERTS, Part.SHARED_EXPERTS)
_COPIED = ("indexer.", "compressor.")  # computed whole by every chip of a group


def stages(spec: ModelSpec, pp: int) -> list[dict[str, int]]:
    """Layers of each kind on each stage, by label; what does not divide goes to the stages before the last."""
    each, rest = divmod(spec.layers, pp)
    sizes = [each] * pp
    for index in range(rest):
        sizes[-2 - index] += 1
    found, start = [], 0
    for size in sizes:
        here = spec.pattern[start : start + size]
        found.append({f"layer{kind}": here.count(kind) for kind in dict.fromkeys(here)})
        start += size
    return found


def share_of(deployment: Deployment, stage: int, *, mtp: bool = False) -> Share:
    """The part of the model on one chip of that stage; prediction modules are on the last."""
    layers = stages(deployment.spec, deployment.pp)[stage]
    if mtp and stage == deployment.pp - 1:
        layers |= {f"mtp{index}": 1 for index in range(len(deployment.spec.mtp))} | {"mtp": 1}
    return Share(given("deployment.tp", deployment.tp, "1", "--parallel"), layers)


def element(dtype: str) -> Quantity:
    """Bytes of one weight of that type, with its share of the scales."""
    scale = constant(f"admission.scale.{dtype}", missing_ok=True)
    if scale is None:
        return dtype_bytes(dtype)
    return derive(f"weights.element.{dtype}", "element + scale", "B", element=dtype_bytes(dtype), scale=scale)


def chip_weights(deployment: Deployment, share: Share, stage: int) -> Quantity:
    """``chip.weights`` (B): the weights on one chip of a stage."""
    leaves = Leaves(deployment.spec)
    terms: dict[str, Quantity] = {}
    for place in places(deployment.spec):
        found = _place(leaves, deployment, share, place, _here(deployment, place, stage))
        if found is not None:
            terms[place.label.replace(".", "_")] = found
    return add(f"{share.name}.weights", terms, "B").titled("Weights on one chip")


def _here(deployment: Deployment, place: Place, stage: int) -> tuple[Weight, ...]:
    """The weights of a block that this stage holds: all, but for those outside the layers."""
    if place.label != "outside":
        return place.block.weights
    first, last = stage == 0, stage == deployment.pp - 1
    at_end = (Part.HEAD, Part.NORM)
    table = deployment.spec.tied and last
    return tuple(
        w for w in place.block.weights
        if (last if w.part in at_end else first or (table and w.part is Part.EMBEDDING))
    )  # fmt: skip


def _place(
    leaves: Leaves, deployment: Deployment, share: Share, place: Place, weights: tuple[Weight, ...]
) -> Quantity | None:
    layer = place.label.partition(".")[0]
    layers = 1 if layer == "outside" else share.layers.get(layer, 0)
    if not weights or not layers:
        return None
    plain = deployment.weights == "bf16"
    narrow = [w for w in weights if not plain and w.matmul and w.part in QUANTIZED]
    wide = [w for w in weights if w not in narrow]
    text = " + ".join(f"{size}*({_params(place.block, group)})" for size, group in (("narrow", narrow), ("wide", wide))
                      if group)  # fmt: skip
    inputs: dict[str, Quantity] = {}
    sizes = {"tp": share.tp, "stage": _stage(deployment), "narrow": element(deployment.weights),
             "wide": dtype_bytes("bf16")}  # fmt: skip
    if layer != "outside":
        copies = min(layers, place.stored)  # layers that share weights keep one copy on the chip
        inputs["layers"] = leaves.get(f"{share.name}.{layer}.stored", copies)
        text = f"layers*({text})"
    for symbol in formulas.parse(text).names:
        if symbol not in inputs:
            inputs[symbol] = sizes[symbol] if symbol in sizes else leaves.dim(place, symbol)
    return derive(f"{share.name}.weights.{place.label}", text, "B", **inputs)


def _stage(deployment: Deployment) -> Quantity:
    return given("deployment.stage", deployment.stage, "1", note="chips of one pipeline stage")


def _params(block: Block, weights: list[Weight]) -> str:
    """Parameters on one chip, as a sum over the ways in which tensors are divided."""
    ways = {"/tp": "({})/tp", "/stage": "({})/stage", "kv": "({})*ceil(kv_heads/tp)/kv_heads", "": "{}"}
    groups: dict[str, list[str]] = {way: [] for way in ways}
    for weight in weights:
        groups[_way(block, weight)].append(weight.formula())
    return " + ".join(ways[way].format(" + ".join(texts)) for way, texts in groups.items() if texts)


def _way(block: Block, weight: Weight) -> str:
    if weight.part in (Part.NORM, Part.OTHER):
        return ""
    if weight.part is Part.EXPERTS:
        return "/stage"
    if isinstance(block, Attention) and weight.name.startswith(("k_proj", "v_proj", "kv_proj")):
        return "kv"
    copied = split_of(weight) == "copied" or weight.name.startswith(_COPIED)
    return "" if copied else "/tp"
