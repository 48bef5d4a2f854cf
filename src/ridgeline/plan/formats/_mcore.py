"""What Megatron-LM arguments and Megatron-Bridge overrides share: the fields of Megatron Core's configuration classes.

Groups as Megatron-Bridge has them (``model``, ``ddp``, ``train``); Megatron-LM spells most of them with hyphens.
Names checked against Megatron Core 0.20 (``model_parallel_config.py``, ``transformer_config.py``,
``distributed_data_parallel_config.py``). ZeRO-1 is the distributed optimizer; ZeRO-2 and 3 are Megatron-FSDP with the
sharding strategies ``optim_grads`` and ``optim_grads_params``; a smaller shard group is more instances of the
distributed optimizer. Experts have their own tensor-parallel size.
"""

import ast
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ridgeline.arithmetic.shape import Shape
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.described import Style, decoder, described
from ridgeline.plan.formats._common import Keys, Known, refuse, replicas
from ridgeline.plan.job import Job, Plan

Groups = dict[str, dict[str, Any]]
_STRATEGIES = {2: "optim_grads", 3: "optim_grads_params"}
_OPTIMIZERS = {"adam": "adam", "sgd-momentum": "sgd", "muon": "muon"}
OURS = {theirs: ours for ours, theirs in _OPTIMIZERS.items()} | {"adamw": "adam"}
_LONGEST = 2**12  # entries of a layer pattern
BEARS = (
    r"(parallel|pipeline|virtual|recompute|shard|fsdp|distributed_optimizer|offload|batch_size|cpu_initial"
    r"|microbatch_group|fp8|fp4|hierarchical)"
)


def check(job: Job, target: str) -> None:
    """Raise for what Megatron Core cannot run, field by field."""
    plan = job.plan
    wanted = "interleaved" if plan.chunks > 1 else "1f1b"
    if plan.schedule != wanted:
        raise refuse("plan.schedule", plan.schedule, target, wanted)
    if job.model is not None and job.model.layers % (plan.pp * plan.chunks):
        layers = job.model.layers
        nearest = next(n for n in range(plan.chunks, 0, -1) if layers % (plan.pp * n) == 0 or n == 1)
        text = f"{nearest}" if layers % (plan.pp * nearest) == 0 else "a pp that divides the layers"
        raise refuse("plan.chunks", f"{plan.chunks} for {layers} layers over pp {plan.pp}", target, text)
    if job.optimizer not in _OPTIMIZERS:
        raise refuse("optimizer", job.optimizer, target, ", ".join(_OPTIMIZERS))
    if plan.zero >= 2 and job.optimizer == "muon":
        raise refuse("optimizer", "muon under plan.zero 2 or 3", target, "plan.zero 1, or adam")
    if plan.zero == 2 and plan.shard < plan.dp * plan.cp:
        raise refuse("plan.shard", f"{plan.shard} under plan.zero 2", target, f"{plan.dp * plan.cp}")


def plan_groups(job: Job) -> Groups:
    """The plan, the batch and the optimizer."""
    plan = job.plan
    parallel: dict[str, Any] = {
        "tensor_model_parallel_size": plan.tp,
        "pipeline_model_parallel_size": plan.pp,
        "context_parallel_size": plan.cp,
        "expert_model_parallel_size": plan.ep,
        "sequence_parallel": bool(plan.sequence_parallel),
    }
    if plan.ep > 1:
        parallel["expert_tensor_parallel_size"] = plan.etp
    if plan.chunks > 1:
        parallel["virtual_pipeline_model_parallel_size"] = plan.chunks
    if plan.recompute != "none":
        parallel["recompute_granularity"] = plan.recompute
    if plan.recompute == "full":
        parallel |= {"recompute_method": "uniform", "recompute_num_layers": 1}
    train: dict[str, Any] = {"micro_batch_size": plan.micro_batch, "global_batch_size": job.sequences}
    if job.steps is not None:
        train["train_iters"] = job.steps
    return {
        "model": parallel,
        "ddp": _ddp(plan),
        "train": train,
        "optimizer": {"optimizer": _OPTIMIZERS[job.optimizer]},
    }


def _ddp(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {"use_distributed_optimizer": plan.zero > 0}
    if plan.zero >= 2:
        found |= {"use_megatron_fsdp": True, "data_parallel_sharding_strategy": _STRATEGIES[plan.zero]}
    if plan.zero and plan.shard < plan.dp * plan.cp:
        found["num_distributed_optimizer_instances"] = plan.dp * plan.cp // plan.shard
    return found


def model_group(job: Job) -> tuple[dict[str, Any], dict[str, str]]:
    """The dimensions of the job's model, or why they are not written."""
    if job.model is None:
        return {}, {}
    found = described(job.model)
    if found is None:
        return {}, {"model": "not a plain decoder: give its dimensions yourself"}
    shape, style = found
    group: dict[str, Any] = {
        "num_layers": shape.layers,
        "hidden_size": shape.d_model,
        "ffn_hidden_size": shape.d_ff or shape.expert_ff,
        "num_attention_heads": shape.heads,
        "num_query_groups": shape.kv_heads or shape.heads,
        "kv_channels": shape.head_dim or shape.d_model // shape.heads,
        "vocab_size": shape.vocab,
        "normalization": "LayerNorm" if style.layer_norm else "RMSNorm",
        "position_embedding_type": "learned_absolute" if style.positions else "rope",
        "gated_linear_unit": shape.gated,
        "add_bias_linear": style.bias,
        "add_qkv_bias": shape.qkv_bias,
        "qk_layernorm": shape.qk_norm,
        "share_embeddings_and_output_weights": shape.tied,
    }
    if shape.window is not None:
        group["window_size"] = [shape.window - 1, 0]
    if shape.full_every is not None:
        group["window_attn_skip_freq"] = shape.full_every
    return group | _experts(shape), {}


def positions(job: Job) -> int:
    """Rows of the model's position table; 0 without one."""
    found = None if job.model is None else described(job.model)
    return found[1].positions if found is not None else 0


def _experts(shape: Shape) -> dict[str, Any]:
    if shape.experts is None:
        return {}
    found: dict[str, Any] = {
        "num_moe_experts": shape.experts,
        "moe_router_topk": shape.top_k,
        "moe_ffn_hidden_size": shape.expert_ff,
        "moe_layer_freq": [0] * shape.dense_layers + [1] * (shape.layers - shape.dense_layers),
    }
    if shape.shared_ff:
        found["moe_shared_expert_intermediate_size"] = shape.shared_ff
    return found


def read_plan(keys: Keys, known: Known, model: ModelSpec | None, target: str) -> tuple[Plan, list[str]]:
    """The plan of Megatron Core's fields, and what of it a job has no place for."""
    columns: dict[str, Any] = {
        "tp": keys.size("tensor_model_parallel_size"),
        "pp": keys.size("pipeline_model_parallel_size"),
        "cp": keys.size("context_parallel_size"),
        "ep": keys.size("expert_model_parallel_size"),
        "micro_batch": keys.size("micro_batch_size"),
        "sequence_parallel": int(keys.flag("sequence_parallel")),
    }
    columns["etp"] = keys.size("expert_tensor_parallel_size", columns["tp"])
    columns["dp"] = replicas(known, columns["tp"] * columns["pp"] * columns["cp"], target=target)
    columns["chunks"] = _chunks(keys, columns["pp"], model)
    columns["recompute"], lost = _recompute(keys)
    return Plan.of(**columns, **_sharding(keys, columns["dp"] * columns["cp"])), lost


def _chunks(keys: Keys, pp: int, model: ModelSpec | None) -> int:
    per_stage = keys.whole("num_layers_per_virtual_pipeline_stage", 0)
    chunks = keys.size("virtual_pipeline_model_parallel_size")
    if not per_stage or pp == 1:
        return chunks if pp > 1 else 1
    layers = 0 if model is None else model.layers
    if not layers or layers % (pp * per_stage):
        where = "num_layers_per_virtual_pipeline_stage"
        raise InputError.expected("a number of layers that the virtual stages divide", layers or None, where=where)
    return layers // (pp * per_stage)


def _recompute(keys: Keys) -> tuple[str, list[str]]:
    words = {"none": "none", "selective": "selective", "full": "full"}
    kind = keys.word("recompute_granularity", words, "selective" if keys.flag("recompute_activations") else "none")
    method, layers = keys.take("recompute_method"), keys.whole("recompute_num_layers", 1)
    modules = keys.take("recompute_modules", ["core_attn"])
    lost = []
    if kind == "full" and (method == "block" or layers != 1):
        lost.append(f"recompute_method = {method} with recompute_num_layers = {layers}: read as every layer on its own")
    if kind == "selective" and modules not in (["core_attn"], "core_attn"):
        lost.append(f"recompute_modules = {modules}: read as the core of attention")
    return kind, lost


def _sharding(keys: Keys, group: int) -> dict[str, Any]:
    stages = {"no_shard": "0", "optim": "1", "optim_grads": "2", "optim_grads_params": "3"}
    stage = keys.word("data_parallel_sharding_strategy", stages, "optim_grads_params")
    distributed = keys.flag("use_distributed_optimizer")
    if keys.flag("use_torch_fsdp2"):
        zero = 3
    elif keys.flag("use_megatron_fsdp"):
        zero = int(stage)
    else:
        zero = int(distributed)
    instances = keys.whole("num_distributed_optimizer_instances", 1)
    if instances < 1 or group % instances:
        text = (
            f"Expected instances that divide dp*cp ({group}), got {instances}, at num_distributed_optimizer_instances"
        )
        raise InfeasibleError(text, limit="whole shard groups", nearest="1")
    return {"zero": zero, "shard": group // instances}


def read_model(keys: Keys) -> tuple[ModelSpec | None, list[str]]:
    """The model of the dimensions, None where the file has none; and why it has them but no model is made."""
    asked = {name: keys.take(name) for name in ("num_layers", "hidden_size", "num_attention_heads")}
    vocab = keys.take("padded_vocab_size") or keys.take("vocab_size")
    values = {**asked, "vocab_size": vocab}
    others = _other_dims(keys)
    if any(value is None for value in values.values()):
        missing = ", ".join(name for name, value in values.items() if value is None)
        return None, [f"no {missing}: the model is not read"] if any(asked.values()) else []
    try:
        shape, style = _shape(values, others)
        return decoder(shape, style), []
    except (ValidationError, InputError, ValueError, TypeError, LookupError, SyntaxError, RecursionError) as error:
        return None, [f"the model is not read: {' '.join(str(error).split())[:160]}"]


_DIMS = (
    *("ffn_hidden_size", "num_query_groups", "kv_channels", "normalization", "position_embedding_type"),
    *("gated_linear_unit", "add_bias_linear", "add_qkv_bias", "qk_layernorm", "window_size", "moe_layer_freq"),
    *("share_embeddings_and_output_weights", "window_attn_skip_freq", "num_moe_experts", "moe_router_topk"),
    *("moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "max_position_embeddings"),
    *("group_query_attention", "multi_latent_attention", "mtp_num_layers"),
)


def _other_dims(keys: Keys) -> dict[str, Any]:
    return {name: keys.take(name) for name in _DIMS}


def _shape(values: Mapping[str, Any], others: Mapping[str, Any]) -> tuple[Shape, Style]:
    beyond = next((name for name in ("multi_latent_attention", "mtp_num_layers") if others[name]), None)
    if beyond is not None:
        raise ValueError(f"{beyond} is not among the keys of a shape")
    layers, d_model, heads = (int(values[name]) for name in ("num_layers", "hidden_size", "num_attention_heads"))
    d_ff = int(others["ffn_hidden_size"] or 4 * d_model)
    keys: dict[str, Any] = {
        "layers": layers,
        "d_model": d_model,
        "heads": heads,
        "kv_heads": int(others["num_query_groups"] or heads),
        "head_dim": int(others["kv_channels"] or d_model // heads),
        "vocab": int(values["vocab_size"]),
        "tied": others["share_embeddings_and_output_weights"] is not False,
        "gated": bool(others["gated_linear_unit"]),
        "qkv_bias": bool(others["add_qkv_bias"]),
        "qk_norm": bool(others["qk_layernorm"]),
        "context": others["max_position_embeddings"],
    }
    window = others["window_size"]
    if window:
        keys["window"] = int(window[0]) + 1
        keys["full_every"] = others["window_attn_skip_freq"]
    dense = layers
    if others["num_moe_experts"]:
        dense = _dense_layers(others["moe_layer_freq"], layers)
        keys |= {"experts": others["num_moe_experts"], "top_k": others["moe_router_topk"] or 2, "dense_layers": dense}
        keys["expert_ff"] = others["moe_ffn_hidden_size"] or d_ff
        keys["shared_ff"] = others["moe_shared_expert_intermediate_size"] or 0
    if dense:
        keys["d_ff"] = d_ff
    bias = others["add_bias_linear"] is not False
    learned = (others["position_embedding_type"] or "learned_absolute") == "learned_absolute"
    positions = int(others["max_position_embeddings"] or 0) if learned else 0
    layer_norm = (others["normalization"] or "LayerNorm") == "LayerNorm"
    return Shape.model_validate(keys), Style(layer_norm, bias, positions)


def _dense_layers(pattern: Any, layers: int) -> int:
    """Dense layers before the experts. Raises `ValueError` for another order."""
    found = _pattern(ast.parse(pattern, mode="eval").body) if isinstance(pattern, str) else pattern
    if found in (None, 1):
        return 0
    if not isinstance(found, list) or len(found) != layers:
        raise ValueError(f"moe_layer_freq {pattern} is not one entry a layer")
    dense = next((index for index, kind in enumerate(found) if kind), layers)
    if not all(found[dense:]):
        raise ValueError(f"moe_layer_freq {pattern} mixes dense layers among experts")
    return dense


def _pattern(node: ast.expr) -> Any:
    """The value of ``([0]*1+[1]*60)``: lists, whole numbers, sums and products, nothing else."""
    if isinstance(node, ast.List):
        return [_pattern(item) for item in node.elts]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _pattern(node.left), _pattern(node.right)
        longest = max(len(side) if isinstance(side, list) else side for side in (left, right))
        if longest > _LONGEST:
            raise ValueError("moe_layer_freq is too long")
        return left + right if isinstance(node.op, ast.Add) else left * right
    raise ValueError("moe_layer_freq is not a list expression")
