"""``ridgeline model``: one model's counts, its matmuls, and what a token costs, as a `Case`."""

from collections.abc import Mapping
from typing import Any

from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.pairs import MASKS, Batch, Mask
from ridgeline.arithmetic.params import Matmul, Params, matmuls, params
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.case import Case, Column, InputFile, Section, Table
from ridgeline.core.quantity import Quantity, derive

PARTS, MATMULS, FLOPS = "model.parts", "model.matmuls", "model.flops"


def model_case(spec: ModelSpec, source: InputFile, *, context: int, mask: Mask = "half", command: str = "") -> Case:
    """Counts by part, the matmuls of one token, its training FLOPs and its cache in sequences of ``context`` tokens.

    Quantities: ``params.total``, ``params.active``, ``params.embedding``, ``params.non_embedding``, ``params.mtp``,
    ``params.<part>``, ``flops.per_token``, ``kv.per_token``, ``kv.per_sequence`` and what they rest on. ``mask``
    says how the causal mask counts.
    """
    counted = params(spec)
    batch = Batch.of(context)
    spent = flops(spec, batch, mask=mask)
    cache = kv_cache(spec, batch.seq)
    decision = "{params.total|4}, of which {params.active|4} work on each token; {flops.per_token|4} to train"
    case = Case("model", f"Model {spec.name}", decision, command, [source])
    case.add(*counted.all, *spent.all, *cache.all)
    case.add_table(PARTS, _parts_table(spec, counted))
    case.add_table(FLOPS, _flops_table(spent.step_parts, spent.train_step, mask))
    case.add_table(MATMULS, _matmul_table(matmuls(spec)))
    counting = f"FLOPs of forward and backward at {context:,} tokens of context; {MASKS[mask]}."
    kept = "A conversation keeps {kv.per_sequence} of cache at that length in bf16; a token adds {kv.per_token}."
    case.sections = [Section("What it is", (_describe(spec), *spec.notes, counting, kept), (PARTS, FLOPS, MATMULS))]
    return case


def _describe(spec: ModelSpec) -> str:
    tied = "one table for input and output" if spec.tied else "separate input and output tables"
    kinds = "all alike" if len(spec.kinds) == 1 else f"of {len(spec.kinds)} kinds"
    return f"{spec.family}: {spec.layers} layers, {kinds}, d_model {spec.d_model}, vocabulary {spec.vocab}, {tied}."


def _parts_table(spec: ModelSpec, counted: Params) -> Table:
    columns = (
        Column("part", "Part", meaning="where the parameters are accounted"),
        Column("params", "Parameters", "param", "stored parameters"),
        Column("exact", "Exactly", meaning="the same, to the last one"),
        Column("share", "Share", "%", "of the total"),
    )
    present = {part.value: quantity for part, quantity in counted.parts.items() if quantity.value}
    rows = [(name, q, q.value, _share(q, counted.total)) for name, q in present.items()]
    largest = max(range(len(rows)), key=lambda i: rows[i][2])
    rows.append(("total", counted.total, counted.total.value, _share(counted.total, counted.total)))
    rows.append(("active per token", counted.active, counted.active.value, _share(counted.active, counted.total)))
    note = "Multi-token-prediction modules are trained but are not in the total." if spec.mtp else ""
    return Table("Parameters by part", columns, tuple(rows), highlight=largest, mark="largest part", note=note)


def _share(part: Quantity, whole: Quantity) -> Quantity:
    return derive(f"{part.name}.share", "part/whole", "%", part=part, whole=whole)


def _flops_table(parts: Mapping[Any, Quantity], step: Quantity, mask: Mask) -> Table:
    columns = (
        Column("part", "Part"),
        Column("flops", "Share of the FLOPs", "%", f"of forward and backward; {MASKS[mask]}"),
    )
    rows = tuple((str(term).replace("_", " "), _share(quantity, step)) for term, quantity in parts.items())
    return Table("Training FLOPs by part", columns, rows)


def _matmul_table(found: list[Matmul]) -> Table:
    columns = (
        Column("place", "Place", meaning="kind of layer and block; outside: not in a layer"),
        Column("weight", "Weight"),
        Column("k", "k", "1", "contracted width"),
        Column("n", "n", "1", "output width"),
        Column("copies", "Active", "1", "copies one token multiplies by (experts: top-k)"),
        Column("uses", "Layers", "1", "how many layers do this matmul"),
        Column("flops", "Forward", "FLOP/token", "2*k*n*copies*uses"),
    )
    rows = tuple((m.place, m.name, m.k, m.n, m.copies, m.uses, m.flops_per_token) for m in found)
    return Table("Matmuls of one token, forward", columns, rows)
