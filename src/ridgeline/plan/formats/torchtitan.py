"""torchtitan: the TOML job configuration.

Names checked against ``torchtitan/config/job_config.py`` of the 0.2 line (the last with TOML files; later ones are
Python), with the rules of ``distributed/parallel_dims.py`` there: the world is replicate*shard*cp*tp*pp, parameters are
sharded over shard*cp, experts take their ranks from shard*cp (etp = tp) or shard*cp*tp (etp = 1), tensor parallelism
always splits the sequence too, and plain replication allows no second dimension.
"""

import json
import tomllib
from typing import Any

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.formats._common import (
    Format,
    Keys,
    Known,
    Reading,
    Written,
    first_refusal,
    flat,
    header,
    needed,
    refuse,
    replicas,
    unsaid_cluster,
)
from ridgeline.plan.job import Job, Plan

TITLE, CHECKED = "torchtitan", "torchtitan 0.2 (job_config.py)"
_SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "Interleaved1F1B"}
_MODES = {"none": "none", "selective": "selective", "full": "full"}
_DTYPES = {"bf16": "bfloat16", "fp32": "float32"}
_FLOAT8 = "quantize.linear.float8"
_OPTIMIZERS = {"adam": "AdamW"}
_BEARS = (
    r"^parallelism\.|^training\.(enable_cpu_offload|local|global)|^activation_checkpoint\.|^fault_tolerance\.|^mx\."
)


def _write(job: Job) -> Written:
    plan = job.plan
    if job.seq is None:
        raise needed("seq", TITLE)
    _check(job)
    unsaid = unsaid_cluster(job)
    if job.model is not None:
        unsaid["model"] = "its name and flavor are torchtitan's own: fill in [model]"
    tables: dict[str, dict[str, Any]] = {
        "model": {"name": "<MODEL>", "flavor": "<FLAVOR>"},
        "optimizer": {"name": _OPTIMIZERS[job.optimizer]},
        "training": _training(job),
        "parallelism": _parallelism(job),
        "activation_checkpoint": {"mode": _MODES[plan.recompute]},
    }
    if plan.recompute == "selective":
        tables["activation_checkpoint"]["selective_ac_option"] = "op"
    if job.dtype == "fp8":
        tables["model"]["converters"] = [_FLOAT8]
    lines = [header(TITLE, CHECKED)]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), ""]
    return Written("\n".join(lines), unsaid)


def _check(job: Job) -> None:
    """What torchtitan cannot run, field by field."""
    plan, whole = job.plan, job.plan.zero == 0
    first_refusal(
        TITLE,
        [
            (plan.zero == 1, "plan.zero", 1, "2, which keeps the weights whole"),
            (whole and plan.cp > 1, "plan.zero", "0 under context parallelism", f"3 with shard {plan.cp}"),
            (whole and plan.chips > plan.dp > 1, "plan.zero", "0 beside another dimension", "2 or 3"),
            (plan.shard % plan.cp > 0, "plan.shard", plan.shard, f"a multiple of cp ({plan.cp})"),
            (plan.tp > 1 and not plan.sequence_parallel, "plan.sequence_parallel", 0, "1"),
            (plan.schedule not in _SCHEDULES, "plan.schedule", plan.schedule, "interleaved or 1f1b"),
            (
                plan.chunks > 1 and plan.schedule != "interleaved",
                "plan.chunks",
                f"{plan.chunks} under {plan.schedule}",
                "1, or interleaved",
            ),
            (job.dtype == "fp16", "dtype", "fp16", "bf16"),
            (job.gradients != "fp32", "gradients", job.gradients, "fp32"),
            (job.optimizer not in _OPTIMIZERS, "optimizer", job.optimizer, "adam"),
        ],
    )
    if plan.ep > 1:
        _check_experts(plan)


def _check_experts(plan: Plan) -> None:
    shard = 1 if plan.zero == 0 else plan.shard
    if plan.etp not in (1, plan.tp):
        raise refuse("plan.etp", plan.etp, TITLE, f"1 or {plan.tp}")
    least, most = (plan.cp, shard) if plan.etp == plan.tp else (plan.cp * plan.tp, shard * plan.tp)
    if plan.ep % least or most % plan.ep:
        raise refuse("plan.ep", plan.ep, TITLE, f"a multiple of {least} that divides {most}")


def _training(job: Job) -> dict[str, Any]:
    plan = job.plan
    local = job.sequences // plan.dp if plan.pp > 1 else plan.micro_batch
    table: dict[str, Any] = {"local_batch_size": local, "global_batch_size": job.sequences, "seq_len": job.seq}
    if job.steps is not None:
        table["steps"] = job.steps
    return table | {"mixed_precision_param": _DTYPES.get(job.dtype, "bfloat16"), "mixed_precision_reduce": "float32"}


def _parallelism(job: Job) -> dict[str, Any]:
    plan = job.plan
    shard = plan.shard // plan.cp if plan.zero else 1
    table: dict[str, Any] = {
        "data_parallel_replicate_degree": plan.dp // shard,
        "data_parallel_shard_degree": shard,
        "fsdp_reshard_after_forward": "never" if plan.zero == 2 else "always",
        "tensor_parallel_degree": plan.tp,
        "context_parallel_degree": plan.cp,
        "expert_parallel_degree": plan.ep,
        "expert_tensor_parallel_degree": plan.etp if plan.ep > 1 else 1,
        "pipeline_parallel_degree": plan.pp,
    }
    if plan.pp == 1:
        return table
    table["pipeline_parallel_schedule"] = _SCHEDULES[plan.schedule]
    table["pipeline_parallel_microbatch_size"] = plan.micro_batch
    if plan.chunks > 1:
        table["pipeline_parallel_layers_per_stage"] = _layers_per_stage(job)
    return table | {"pipeline_parallel_first_stage_less_layers": 0, "pipeline_parallel_last_stage_less_layers": 0}


def _layers_per_stage(job: Job) -> int:
    if job.model is None:
        raise needed("model", f"{TITLE} with more than one chunk a stage")
    layers, stages = job.model.layers, job.plan.pp * job.plan.chunks
    per_stage = -(-layers // stages)
    if not _makes(layers, stages):
        nearest = next(n for n in range(job.plan.chunks, 0, -1) if _makes(layers, job.plan.pp * n) or n == 1)
        raise refuse("plan.chunks", f"{job.plan.chunks} for {layers} layers", TITLE, str(nearest))
    return per_stage


def _makes(layers: int, stages: int) -> bool:
    """Whether layers per stage, rounded up, make that many stages."""
    return -(-layers // -(-layers // stages)) == stages


def _read(text: str, known: Known) -> Reading:
    try:
        keys = Keys(flat(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise InputError.expected("a TOML file", str(error), where="FILE") from None
    columns: dict[str, Any] = {
        "tp": keys.size("parallelism.tensor_parallel_degree"),
        "pp": keys.size("parallelism.pipeline_parallel_degree"),
        "cp": keys.size("parallelism.context_parallel_degree"),
        "ep": keys.size("parallelism.expert_parallel_degree"),
        "sequence_parallel": 1,
        "recompute": keys.word("activation_checkpoint.mode", _MODES, "selective"),
    }
    if columns["ep"] > 1:
        columns["etp"] = keys.size("parallelism.expert_tensor_parallel_degree")
    lost = [] if columns["recompute"] != "selective" else _every_nth(keys)
    columns |= _sharding(keys, columns, known)
    sequences, columns["micro_batch"] = _batch(keys, columns)
    columns |= _pipeline(keys, columns["pp"], known)
    if columns["pp"] > 1:
        lost += _drains(keys, sequences // columns["dp"])
        ends = [f"parallelism.pipeline_parallel_{end}_stage_less_layers" for end in ("first", "last")]
        uneven = [keys.whole(name, 1) for name in ends]
        lost += [f"{name} = {less}" for name, less in zip(ends, uneven, strict=True) if less]
    job = Job(
        plan=Plan.of(**columns),
        sequences=sequences,
        seq=keys.whole("training.seq_len", 2048),
        steps=keys.whole("training.steps", 0) or None,
        dtype=_dtype(keys),
        optimizer=keys.word("optimizer.name", {"AdamW": "adam", "Adam": "adam"}, "AdamW"),
    )
    keys.take("training.mixed_precision_reduce")
    keys.take("parallelism.expert_tensor_parallel_degree")
    more, ignored = keys.left(_BEARS)
    return Reading(known.fill(job), (*lost, *more), ignored)


def _every_nth(keys: Keys) -> list[str]:
    option = str(keys.take("activation_checkpoint.selective_ac_option", "2"))
    return [] if option == "op" else [f"activation_checkpoint.selective_ac_option = {option}: whole layers, every n-th"]


def _drains(keys: Keys, share: int) -> list[str]:
    local = keys.size("training.local_batch_size", 8)
    return [] if local == share else [f"training.local_batch_size = {local} of {share}: the pipeline drains between"]


def _sharding(keys: Keys, columns: dict[str, Any], known: Known) -> dict[str, Any]:
    replicate = keys.size("parallelism.data_parallel_replicate_degree")
    shard = keys.whole("parallelism.data_parallel_shard_degree", -1)
    if shard == -1:
        shard = replicas(known, replicate * columns["tp"] * columns["pp"] * columns["cp"], target=TITLE)
    if shard < 1:
        raise InputError.expected("at least 1, or -1", shard, where="parallelism.data_parallel_shard_degree")
    policy = keys.take("parallelism.fsdp_reshard_after_forward", "default")
    whole = policy == "never" or (policy == "default" and columns["pp"] > 1)
    group = shard * columns["cp"]
    zero = 0 if group == 1 else 2 if whole else 3
    return {"dp": replicate * shard, "zero": zero, "shard": group if zero else replicate * group}


def _batch(keys: Keys, columns: dict[str, Any]) -> tuple[int, int]:
    local = keys.size("training.local_batch_size", 8)
    total = keys.whole("training.global_batch_size", -1)
    size = keys.size("parallelism.pipeline_parallel_microbatch_size")
    return (local * columns["dp"] if total < 1 else total), (size if columns["pp"] > 1 else local)


def _pipeline(keys: Keys, pp: int, known: Known) -> dict[str, Any]:
    words = {theirs: ours for ours, theirs in _SCHEDULES.items()}
    schedule = keys.word("parallelism.pipeline_parallel_schedule", words, "1F1B")
    per_stage = keys.whole("parallelism.pipeline_parallel_layers_per_stage", 0)
    if pp == 1 or schedule != "interleaved":
        return {"schedule": schedule}
    if not per_stage:
        return {"schedule": schedule, "chunks": 2}
    if known.model is None:
        hint = "give the model with --model, so that its layers can be counted"
        raise InputError("Expected the model, whose layers make the stages, got none,", where="FILE", hint=hint)
    ends = [keys.whole(f"parallelism.pipeline_parallel_{end}_stage_less_layers", 1) for end in ("first", "last")]
    stages = -(-(known.model.layers + sum(ends)) // per_stage)
    if stages % pp or stages < 1:
        text = f"Expected stages over the {pp} pipeline ranks, got {stages}, at pipeline_parallel_layers_per_stage"
        raise InfeasibleError(text, limit="whole stages on every rank", nearest=f"{stages // pp * pp} stages")
    return {"schedule": schedule, "chunks": stages // pp}


def _dtype(keys: Keys) -> str:
    converters = keys.take("model.converters", [])
    dtype = keys.word("training.mixed_precision_param", {v: k for k, v in _DTYPES.items()}, "bfloat16")
    return "fp8" if "float8" in str(converters) else dtype


FORMAT = Format(
    name="torchtitan",
    title=TITLE,
    suffix=".toml",
    checked=CHECKED,
    sniff=lambda text: "[parallelism]" in text and "_parallel_" in text,
    write=_write,
    read=_read,
    program=lambda file: ("", f"-m torchtitan.train --job.config_file {file}"),
)
