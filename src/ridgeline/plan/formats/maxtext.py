"""MaxText: the YAML configuration.

Names checked against ``src/maxtext/configs/base.yml`` and ``types.py`` of 2026-08-22. Every axis has a size inside a
slice (``ici_*``) and one across slices (``dcn_*``); here the slice is the scale-up domain. Its sharding rules make
``fsdp``, ``context`` and ``expert`` together the group over which weights are sharded, ``data``, ``fsdp`` and
``expert`` the replicas, ``tensor_sequence`` tensor parallelism with the sequence split and ``tensor`` without, and give
experts the tensor axes of the dense layers. Its pipeline runs all forward passes, then all backward ones.
"""

import math
from typing import Any

from pydantic import ValidationError

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.described import shape_of
from ridgeline.plan.formats._common import (
    Format,
    Keys,
    Known,
    Reading,
    Written,
    first_refusal,
    flat,
    from_yaml,
    header,
    needed,
    refuse,
    shape_or_reason,
    to_yaml,
    unsaid_cluster,
)
from ridgeline.plan.job import Job, Plan

TITLE, CHECKED = "MaxText", "MaxText of 2026-08-22 (base.yml)"
_AXES = ("tensor", "tensor_sequence", "context", "expert", "fsdp", "pipeline", "data")
_POLICIES = {"selective": "minimal", "full": "full"}
_DTYPES = {"bf16": "bfloat16", "fp32": "float32", "fp8": "bfloat16"}
_GRADIENTS = {"fp32": "float32", "bf16": "bfloat16"}
_OPTIMIZERS = {"adam": "adamw", "muon": "muon"}
_OURS = {"adamw": "adam", "adam_pax": "adam", "muon": "muon"}
_BEARS = (
    r"_parallelism$|^(pipeline_|optimizer_memory|parameter_memory|custom_mesh_and_rule$|context_parallel_strategy"
    r"|use_batch_split|num_diloco)"
)


def _write(job: Job) -> Written:
    plan = job.plan
    if job.seq is None:
        raise needed("seq", TITLE)
    _check(job)
    shape, unsaid = shape_or_reason(job)
    if shape is not None and not _block(shape):
        shape, unsaid = None, {"model": "no general decoder block has its layers: name one of configs/models"}
    unsaid |= unsaid_cluster(job, keeps_domain=0 < job.node_size < plan.chips)
    tables: dict[str, Any] = {} if shape is None else _dims(shape)
    share = job.sequences if plan.pp > 1 else plan.dp * plan.micro_batch
    tables |= {"max_target_length": job.seq, "per_device_batch_size": share / plan.chips}
    tables["gradient_accumulation_steps"] = job.sequences // share
    if job.steps is not None:
        tables["steps"] = job.steps
    tables |= {"remat_policy": _POLICIES[plan.recompute], "opt_type": _OPTIMIZERS[job.optimizer]}
    tables |= {"dtype": _DTYPES[job.dtype], "grad_dtype": _GRADIENTS[job.gradients]}
    tables["quantization"] = "fp8" if job.dtype == "fp8" else ""
    tables["shard_optimizer_over_data"] = plan.zero == 1
    if plan.pp > 1:
        tables |= _pipeline(job)
    return Written(header(TITLE, CHECKED) + to_yaml(tables | _mesh(job)), unsaid)


def _check(job: Job) -> None:
    """What MaxText cannot run, field by field."""
    plan = job.plan
    joint = plan.cp * plan.ep
    first_refusal(
        TITLE,
        [
            (plan.recompute not in _POLICIES, "plan.recompute", plan.recompute, "selective"),
            (plan.zero == 2, "plan.zero", 2, "3, or 1"),
            (plan.zero < 3 and joint > 1, "plan.zero", f"{plan.zero} with cp*ep {joint}", f"3 with shard {joint}"),
            (plan.zero == 1 and plan.shard < plan.dp, "plan.shard", plan.shard, f"{plan.dp}"),
            (plan.zero == 3 and plan.shard % joint > 0, "plan.shard", plan.shard, f"a multiple of cp*ep ({joint})"),
            (plan.dp % plan.ep > 0, "plan.ep", plan.ep, f"{math.gcd(plan.dp, plan.ep)}, which divides dp"),
            (plan.ep > 1 and plan.etp != plan.tp, "plan.etp", plan.etp, f"{plan.tp}"),
            (plan.pp > 1 and plan.schedule != "gpipe", "plan.schedule", plan.schedule, "gpipe"),
            (plan.pp > 1 and job.micro_batches % plan.pp > 0, "plan.pp", plan.pp, "a divisor of the micro-batches"),
            (job.dtype not in _DTYPES, "dtype", job.dtype, "bf16"),
            (job.optimizer not in _OPTIMIZERS, "optimizer", job.optimizer, "adam or muon"),
        ],
    )


def _dims(shape: Shape) -> dict[str, Any]:
    dims: dict[str, Any] = {
        "decoder_block": _block(shape),
        "base_emb_dim": shape.d_model,
        "base_num_decoder_layers": shape.layers,
        "base_num_query_heads": shape.heads,
        "base_num_kv_heads": shape.kv_heads or shape.heads,
        "head_dim": shape.head_dim or shape.d_model // shape.heads,
        "base_mlp_dim": shape.d_ff or shape.expert_ff,
        "vocab_size": shape.vocab,
        "mlp_activations": ["silu", "linear"] if shape.gated else ["gelu"],
        "logits_via_embedding": shape.tied,
        "use_qk_norm": shape.qk_norm,
        "attention_bias": shape.qkv_bias,
    }
    if shape.experts is not None:
        dims |= {"num_experts": shape.experts, "num_experts_per_tok": shape.top_k, "base_moe_mlp_dim": shape.expert_ff}
    return dims


def _block(shape: Shape) -> str:
    """The decoder block whose layers these are, empty where no general one is."""
    if shape.window or shape.shared_ff or shape.dense_layers:
        return ""
    plain, normed = ("llama2", "qwen3") if shape.experts is None else ("mixtral", "qwen3_moe")
    return normed if shape.qk_norm else plain


def _pipeline(job: Job) -> dict[str, Any]:
    if job.model is None:
        raise needed("model", f"{TITLE} with a pipeline")
    layers, stages = job.model.layers, job.plan.pp * job.plan.chunks
    if layers % stages:
        raise refuse("plan.chunks", f"{job.plan.chunks} for {layers} layers", TITLE, "stages that divide the layers")
    return {
        "num_pipeline_repeats": job.plan.chunks,
        "num_layers_per_pipeline_stage": layers // stages,
        "num_pipeline_microbatches": job.micro_batches,
        "scan_layers": False,
    }


def _mesh(job: Job) -> dict[str, int]:
    """Every axis inside a slice and across: the first axes are filled first, as long as the slice has room."""
    plan = job.plan
    fsdp = plan.shard // (plan.cp * plan.ep) if plan.zero == 3 else 1
    sizes = dict.fromkeys(_AXES, 1)
    sizes |= {"context": plan.cp, "expert": plan.ep, "fsdp": fsdp, "pipeline": plan.pp}
    sizes["data"] = plan.dp // (fsdp * plan.ep)
    sizes["tensor_sequence" if plan.sequence_parallel else "tensor"] = plan.tp
    room = job.node_size or plan.chips
    if plan.chips % room and plan.chips > room:
        raise refuse("node_size", room, TITLE, "a slice that divides the chips")
    room = min(room, plan.chips)
    inside: dict[str, int] = {}
    for axis in _AXES:
        inside[axis] = math.gcd(sizes[axis], room)
        room //= inside[axis]
    if room > 1:
        raise refuse("node_size", job.node_size, TITLE, f"{(job.node_size or plan.chips) // room}")
    across = {f"dcn_{axis}_parallelism": sizes[axis] // inside[axis] for axis in _AXES}
    return {f"ici_{axis}_parallelism": inside[axis] for axis in _AXES} | across


def _read(text: str, known: Known) -> Reading:
    keys = Keys(flat(from_yaml(text)))
    sizes, slice_size = _sizes(keys, known)
    lost: list[str] = []
    if sizes["tensor"] > 1 and sizes["tensor_sequence"] > 1:
        text = "Expected one of the tensor axes, got both, at ici_tensor_sequence_parallelism"
        raise InfeasibleError(text, limit="one tensor-parallel group", nearest="ici_tensor_sequence_parallelism alone")
    columns: dict[str, Any] = {"tp": sizes["tensor"] * sizes["tensor_sequence"], "pp": sizes["pipeline"]}
    columns |= {"cp": sizes["context"], "ep": sizes["expert"], "etp": columns["tp"]}
    columns["dp"] = sizes["data"] * sizes["fsdp"] * sizes["expert"]
    columns["sequence_parallel"] = int(sizes["tensor_sequence"] > 1)
    group = sizes["fsdp"] * sizes["context"] * sizes["expert"]
    over_data = keys.flag("shard_optimizer_over_data")
    columns |= {"zero": 3, "shard": group} if group > 1 else {"zero": int(over_data)}
    policy = keys.take("remat_policy", "full")
    columns["recompute"] = "full" if policy == "full" else "selective"
    lost += [] if policy in _POLICIES.values() else [f"remat_policy = {policy}: read as selective"]
    dims, more = _read_model(keys)
    sequences, columns["micro_batch"] = _batch(keys, columns)
    columns["chunks"] = _chunks(keys, columns["pp"], dims)
    columns["schedule"] = "gpipe"
    dtype = keys.word("dtype", {"bfloat16": "bf16", "float32": "fp32"}, "bfloat16")
    quantization = str(keys.take("quantization", ""))
    lost += [f"quantization = {quantization}"] if quantization and "fp8" not in quantization else []
    job = Job(
        plan=Plan.of(**columns),
        sequences=sequences,
        seq=keys.whole("max_target_length", 2048),
        steps=max(0, keys.whole("steps", 0)) or None,
        model=None if dims is None else model(dims),
        node_size=known.node_size or slice_size,
        dtype="fp8" if "fp8" in quantization else dtype,
        gradients=keys.word("grad_dtype", {v: k for k, v in _GRADIENTS.items()}, "float32"),
        optimizer=keys.word("opt_type", _OURS, "adamw"),
    )
    if keys.peek("context_parallel_strategy") == "all_gather":
        keys.take("context_parallel_strategy")
    left, ignored = keys.left(_BEARS)
    return Reading(known.fill(job), (*lost, *more, *left), ignored)


def _sizes(keys: Keys, known: Known) -> tuple[dict[str, int], int]:
    """Each axis, inside times across, and the size of a slice, 0 for a single one; -1 is what the chips leave."""
    usual = {"ici_fsdp_parallelism": -1, "dcn_data_parallelism": -1}
    found: dict[str, int] = {}
    for link in ("ici", "dcn"):
        for axis in _AXES:
            name = f"{link}_{axis}_parallelism"
            found[name] = keys.whole(name, usual.get(name, 1))
    across = [name for name in found if name.startswith("dcn")]
    free = [name for name, size in found.items() if size == -1]
    if free:
        found |= _leftover(free, math.prod(size for size in found.values() if size > 0), known)
    if min(found.values()) < 1:
        raise InputError.expected("sizes of at least 1, or -1", min(found.values()), where="ici_*_parallelism")
    sizes = {axis: found[f"ici_{axis}_parallelism"] * found[f"dcn_{axis}_parallelism"] for axis in _AXES}
    slice_size = math.prod(size for name, size in found.items() if name not in across)
    return sizes, slice_size if any(found[name] > 1 for name in across) else 0


def _leftover(free: list[str], fixed: int, known: Known) -> dict[str, int]:
    """The axes that are -1: one inside a slice, one across, or either alone."""
    if not known.chips:
        hint = "say how many chips with --cluster, such as --cluster 512xH100"
        raise InputError(
            f"Expected the number of chips, which {free[0]} = -1 needs, got none,", where="FILE", hint=hint
        )
    left, rest = divmod(known.chips, fixed)
    slices = -(-known.chips // known.node_size) if known.node_size else 1
    outer = math.gcd(slices, left)
    if rest or len({name[:3] for name in free}) < len(free):
        raise InputError.expected("one free axis a link, and sizes that divide the chips", known.chips, where=free[0])
    if len(free) == 1:
        return {free[0]: left}
    return {name: outer if name.startswith("dcn") else left // outer for name in free}


def _batch(keys: Keys, columns: dict[str, Any]) -> tuple[int, int]:
    chips = columns["tp"] * columns["pp"] * columns["cp"] * columns["dp"]
    share = keys.number("per_device_batch_size", 12) * chips
    steps = keys.whole("gradient_accumulation_steps", 1)
    groups = keys.whole("num_pipeline_microbatches", -1) if columns["pp"] > 1 else 1
    groups = columns["pp"] if groups < 1 else groups
    micro = round(share / (columns["dp"] * groups))
    if micro < 1 or abs(micro * columns["dp"] * groups - share) > 1e-6 * share:
        text = f"Expected whole sequences in a micro-batch, got {share / (columns['dp'] * groups):g}, at the batch"
        raise InfeasibleError(text, limit="a sequence on one replica", nearest=f"{max(1, micro)}")
    return round(share) * steps, micro


def _chunks(keys: Keys, pp: int, dims: Shape | None) -> int:
    repeats = keys.whole("num_pipeline_repeats", -1)
    per_stage = keys.whole("num_layers_per_pipeline_stage", 1)
    if pp == 1:
        return 1
    if repeats > 0:
        return repeats
    if dims is None or dims.layers % (pp * per_stage):
        where = "num_layers_per_pipeline_stage"
        raise InputError.expected("layers that the stages divide", dims.layers if dims else None, where=where)
    return dims.layers // (pp * per_stage)


def _read_model(keys: Keys) -> tuple[Shape | None, list[str]]:
    """The keys of the model, None where the file has no dimensions of its own."""
    names = ("base_emb_dim", "base_num_decoder_layers", "base_num_query_heads", "vocab_size")
    d_model, layers, heads, vocab = (keys.whole(name, 0) for name in names)
    block = str(keys.take("decoder_block", "llama2"))
    experts = keys.whole("num_experts", 1)
    d_ff, expert_ff = keys.whole("base_mlp_dim", 0), keys.whole("base_moe_mlp_dim", -1)
    activations = keys.take("mlp_activations", ["silu", "linear"])
    values: dict[str, Any] = {
        "layers": layers,
        "d_model": d_model,
        "heads": heads,
        "kv_heads": keys.whole("base_num_kv_heads", heads),
        "head_dim": keys.whole("head_dim", 128),
        "vocab": vocab,
        "tied": keys.flag("logits_via_embedding"),
        "gated": isinstance(activations, list) and len(activations) == 2,
        "qk_norm": keys.flag("use_qk_norm"),
        "qkv_bias": keys.flag("attention_bias"),
    }
    top_k = keys.whole("num_experts_per_tok", 1)
    if experts > 1:
        values |= {"experts": experts, "top_k": top_k, "expert_ff": expert_ff if expert_ff > 0 else d_ff}
    else:
        values["d_ff"] = d_ff
    if not (d_model and layers and heads and vocab and d_ff):
        return None, []
    if block not in ("llama2", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe"):
        return None, [f"decoder_block = {block}: the model is not read"]
    try:
        return shape_of(model(Shape.model_validate(values))), []
    except (ValidationError, InputError) as error:
        return None, [f"the model is not read: {' '.join(str(error).split())[:160]}"]


FORMAT = Format(
    name="maxtext",
    title=TITLE,
    suffix=".yml",
    checked=CHECKED,
    sniff=lambda text: "ici_" in text and "_parallelism" in text,
    write=_write,
    read=_read,
    program=lambda file: ("", f"-m maxtext.trainers.pre_train.train {file}"),
    starter="python",
)
