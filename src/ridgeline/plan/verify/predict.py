"""What the plan says of one rank of its twin: traffic of `plan.steps.traffic`, FLOPs and bytes of `arithmetic`.

Beside the prediction stand the terms that the compiler counts otherwise, each with its reason and its amount in
closed form. They are part of the comparison, not of the plan.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic.activations import Keeping, activations
from ridgeline.arithmetic.flops import AGAIN, Recompute, Term, forward_parts
from ridgeline.arithmetic.memory import training_state
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import Leaves
from ridgeline.arithmetic.sharding import FP32
from ridgeline.core.quantity import given
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.traffic import Widths, owned, parameters, sent
from ridgeline.plan.verify.compiled import Amount, Key
from ridgeline.plan.verify.twin import Twin

ELEMENT_BYTES = 4  # the twin computes in fp32 and its tokens are int32
_WIDTHS = Widths(ELEMENT_BYTES, ELEMENT_BYTES, ELEMENT_BYTES, ELEMENT_BYTES)


@dataclass(frozen=True)
class Named:
    """Something that the compiler counts otherwise: what it adds to the plan's number (negative: leaves out)."""

    reason: str
    count: float = 0.0
    amount: float = 0.0


def traffic(twin: Twin) -> dict[Key, Amount]:
    """Collectives of a step by term."""
    rows = sent(twin.spec, (twin.sequences, twin.seq), _layout(twin), _WIDTHS)
    return {Key(r.term, r.kind, r.group): Amount(float(r.count[0]), float(r.bytes[0])) for r in rows}


def named_traffic(twin: Twin) -> dict[Key, list[Named]]:
    """What the compiled program does not send although the plan does, by term."""
    found: dict[Key, list[Named]] = {}
    plan, micro = twin.plan, twin.micro_batches
    _, _, table = parameters(twin.spec)
    if plan.zero >= 3 and plan.shard > 1 and not twin.shape.tied:
        reason = "the backward pass of a lookup reads no table, so the input table is not gathered again"
        lost = Named(reason, -micro, -micro * table / plan.tp * ELEMENT_BYTES)
        found[Key("shards", "all_gather", "shard")] = [lost]
    if plan.recompute == "full" and plan.tp > 1:
        reason = "nothing reads what a layer ends with, so its last reduction is not computed again"
        layers = sum(_ends_dense(twin, index) for index in range(twin.shape.layers)) * micro
        stream = plan.micro_batch * twin.seq * twin.shape.d_model * ELEMENT_BYTES
        kind = "reduce_scatter" if plan.sequence_parallel else "all_reduce"
        found[Key("layer_stream", kind, "tp")] = [Named(reason, -layers, -layers * stream)]
    return found


def _ends_dense(twin: Twin, layer: int) -> bool:
    """Whether a layer has an MLP or shared experts; what routed experts return is read by the router's gradient."""
    return twin.shape.experts is None or layer < twin.shape.dense_layers or twin.shape.shared_ff > 0


def flops(twin: Twin) -> dict[str, float]:
    """FLOPs of a step on one rank by term, a causal triangle of attention, recompute included."""
    again = AGAIN[_recompute(twin)]
    forward = _forward(twin)
    return {str(term): value * (3 + (term in again)) for term, value in forward.items()}


def named_flops(twin: Twin) -> dict[str, list[Named]]:
    """What the compiler multiplies otherwise, by term."""
    found: dict[str, list[Named]] = {}
    forward, mode = _forward(twin), _recompute(twin)
    square = 2 * twin.seq / (twin.seq + 1)
    again = AGAIN[mode]
    for term in (Term.SCORES, Term.VALUES):
        passes = 3 + (term in again)
        reason = "the dense kernel computes every pair of the square, masked or not"
        found[str(term)] = [Named(reason, amount=forward[term] * passes * (square - 1))]
    if mode == "selective":
        reason = "the product with the values is kept for the output projection, so it is not computed again"
        found[str(Term.VALUES)].append(Named(reason, amount=-forward[Term.VALUES] * square))
    if mode == "full":
        reason = "nothing reads what a layer ends with, so its last matmul is not computed again"
        share = 1 / 3 if twin.shape.gated else 1 / 2
        for term in (Term.MLP, Term.SHARED_EXPERTS):
            if term in forward:
                found[str(term)] = [Named(reason, amount=-forward[term] * share)]
    return found


def _forward(twin: Twin) -> dict[Term, float]:
    """The forward pass on one rank: every term over the ranks that share its work."""
    batch = Batch(given("batch.seq_len", twin.seq, "token"), given("batch.sequences", twin.sequences, "1"))
    parts = forward_parts(Leaves(twin.spec), batch, "exact")
    rows = twin.plan.tp if twin.plan.sequence_parallel else 1
    split = {term: twin.plan.dp * (rows if term is Term.ROUTER else twin.plan.tp) for term in parts}
    return {term: float(value.base) / split[term] for term, value in parts.items()}


def memory(twin: Twin) -> dict[str, float]:
    """Bytes of one rank: ``arguments`` (parameters, moments, tokens) and the parts of ``temporary``."""
    plan, micro = (
        twin.plan,
        Batch(given("batch.seq_len", twin.seq, "token"), given("batch.sequences", twin.plan.micro_batch, "1")),
    )
    layout = _layout(twin)
    sharding = layout.sharding(twin.sequences)
    state = training_state(twin.spec, sharding, precision=FP32)
    tokens = 2 * twin.micro_batches * plan.micro_batch * twin.seq * ELEMENT_BYTES
    keeping = Keeping(_recompute(twin), "unfused", False, "fp32")
    kept = activations(twin.spec, micro, sharding, keeping)
    dense, experts = (float(part[0]) for part in owned(twin.spec, layout, np.ones(1)))
    return {
        "arguments": _first(state.weights.base) + _first(state.optimizer.base) + tokens,
        "gradients": _first(state.gradients.base) if plan.zero >= 3 else (dense + experts) * ELEMENT_BYTES,
        "activations": _first(kept.kept.base) + _first(kept.working.base),
        "logits": _first(kept.logits.base),
    }


def _first(value: object) -> float:
    return float(np.asarray(value).reshape(-1)[0])


def _recompute(twin: Twin) -> Recompute:
    return twin.plan.recompute  # type: ignore[return-value]


def _layout(twin: Twin) -> Layout:
    return Layout.of(**twin.plan.columns)
