"""DeepSpeed: the JSON configuration.

Names checked against ``docs/_pages/config-json.md`` and ``deepspeed/runtime`` of DeepSpeed 0.19. The batch is
micro-batch * accumulation * data-parallel ranks, from which the replicas follow. Tensor parallelism is AutoTP
(``tensor_parallel.autotp_size``), expert parallelism AutoEP (``expert_parallel.autoep_size``, not beside AutoTP), a
smaller shard group MiCS (``zero_optimization.mics_shard_size``, stage 3). Pipelines, context parallelism, recomputation
and the sequence are set in the program, not in the file.
"""

import json
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
    unsaid_cluster,
)
from ridgeline.plan.job import Job, Plan

TITLE, CHECKED = "DeepSpeed", "DeepSpeed 0.19 (config-json)"
_OPTIMIZERS = {"adam": "AdamW", "muon": "Muon"}
_OURS = {"AdamW": "adam", "Adam": "adam", "Muon": "muon"}
_BEARS = (
    r"^(pipeline|sequence_parallel_size|activation_checkpointing|tensor_parallel|expert_parallel|checkpoint_parallel"
    r"|elasticity|data_types|fp8|torch_autocast)|^zero_optimization\.(offload|zero_hpz|zero_quantized|mics)"
)
_CODE = "set in the training program, not in the file"


def _write(job: Job) -> Written:
    plan = job.plan
    _check(job)
    unsaid = unsaid_cluster(job)
    for name in ("seq", "steps", "model"):
        if getattr(job, name) is not None:
            unsaid[name] = _CODE
    if plan.recompute != "none":
        unsaid["plan.recompute"] = _CODE
    tables: dict[str, Any] = {
        "train_batch_size": job.sequences,
        "train_micro_batch_size_per_gpu": plan.micro_batch,
        "gradient_accumulation_steps": job.micro_batches,
        "optimizer": {"type": _OPTIMIZERS[job.optimizer]},
        "bf16": {"enabled": job.dtype == "bf16"},
        "fp16": {"enabled": job.dtype == "fp16"},
        "data_types": {"grad_accum_dtype": job.gradients},
        "zero_optimization": {"stage": plan.zero},
    }
    if plan.zero == 3 and plan.shard < plan.dp:
        tables["zero_optimization"]["mics_shard_size"] = plan.shard
    if plan.tp > 1:
        tables["tensor_parallel"] = {"autotp_size": plan.tp}
    if plan.ep > 1:
        tables["expert_parallel"] = {"enabled": True, "autoep_size": plan.ep}
    return Written(json.dumps(tables, indent=2) + "\n", unsaid)


def _check(job: Job) -> None:
    """What a DeepSpeed file cannot say, field by field."""
    plan = job.plan
    hybrid = plan.shard < plan.dp * plan.cp
    first_refusal(
        TITLE,
        [
            (plan.pp > 1, "plan.pp", plan.pp, "1: pipeline stages are built in the training program"),
            (plan.cp > 1, "plan.cp", plan.cp, "1: sequences are split in the training program"),
            (plan.sequence_parallel > 0, "plan.sequence_parallel", 1, "0"),
            (plan.ep > 1 and plan.tp > 1, "plan.ep", f"{plan.ep} beside tp {plan.tp}", "1, or tp 1"),
            (plan.ep > 1 and plan.etp > 1, "plan.etp", plan.etp, "1"),
            (hybrid and plan.zero < 3, "plan.shard", f"{plan.shard} under plan.zero {plan.zero}", f"{plan.dp}"),
            (hybrid and plan.ep > 1, "plan.shard", f"{plan.shard} beside ep {plan.ep}", f"{plan.dp}"),
            (job.dtype == "fp8", "dtype", "fp8", "bf16"),
            (job.optimizer not in _OPTIMIZERS, "optimizer", job.optimizer, "adam or muon"),
        ],
    )


def _read(text: str, known: Known) -> Reading:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.expected("a JSON document", str(error), where="FILE") from None
    if not isinstance(data, dict):
        raise InputError.expected("a JSON object", type(data).__name__, where="FILE")
    keys = Keys(flat(data))
    columns: dict[str, Any] = {"tp": max(1, keys.whole("tensor_parallel.autotp_size", 1)), "sequence_parallel": 0}
    if keys.flag("expert_parallel.enabled"):
        columns["ep"] = keys.whole("expert_parallel.autoep_size", 1)
    keys.take("expert_parallel.autoep_size")
    sequences, columns["micro_batch"], columns["dp"] = _batch(keys, known, columns["tp"])
    columns["zero"] = keys.whole("zero_optimization.stage", 0)
    shard = keys.whole("zero_optimization.mics_shard_size", -1)
    if shard > 0 and columns["zero"] == 3:
        columns["shard"] = shard
    job = Job(
        plan=Plan.of(**columns),
        sequences=sequences,
        dtype=_dtype(keys),
        gradients=keys.word("data_types.grad_accum_dtype", {"fp32": "fp32", "bf16": "bf16"}, "fp32"),
        optimizer=keys.word("optimizer.type", _OURS, "AdamW"),
    )
    lost, ignored = keys.left(_BEARS)
    return Reading(known.fill(job), lost, ignored)


def _batch(keys: Keys, known: Known, tp: int) -> tuple[int, int, int]:
    """Sequences of a step, of a micro-batch, and replicas; what the file leaves out follows from the rest."""
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    for name in names:
        if keys.take(name) == "auto":
            raise InputError.expected("a number", "auto", where=name, hint="write the sizes that the trainer fills in")
    total, micro, steps = (keys.whole(name, 0) for name in names)
    dp = known.chips // tp if known.chips else 0
    if not dp and not (total and micro):
        hint = "give both, or the chips with --cluster, such as --cluster 64xH100"
        raise InputError(f"Expected {names[0]} and {names[1]}, got fewer,", where="FILE", hint=hint)
    if not micro:
        micro = total // (dp * max(1, steps))
    if not total:
        total = micro * max(1, steps) * dp
    if not dp:
        dp = total // (micro * max(1, steps))
    if micro < 1 or dp < 1 or (steps and total != micro * steps * dp):
        text = f"Expected micro-batch * accumulation * ranks = {total}, got {micro} * {max(1, steps)} * {dp}, at FILE"
        raise InfeasibleError(text, limit="the batch adds up", nearest=f"{max(1, micro) * max(1, steps) * max(1, dp)}")
    return total, micro, dp


def _dtype(keys: Keys) -> str:
    enabled = {name: keys.take(f"{name}.enabled", default=False) for name in ("bf16", "fp16")}
    if "auto" in enabled.values():
        raise InputError.expected("true or false", "auto", where="bf16.enabled")
    return next((name for name, on in enabled.items() if on is True), "fp32")


FORMAT = Format(
    name="deepspeed",
    title=TITLE,
    suffix=".json",
    checked=CHECKED,
    sniff=lambda text: '"zero_optimization"' in text or '"train_micro_batch_size_per_gpu"' in text,
    write=_write,
    read=_read,
    program=lambda file: ("", f"<TRAINING_PROGRAM>.py --deepspeed --deepspeed_config {file}"),
)
