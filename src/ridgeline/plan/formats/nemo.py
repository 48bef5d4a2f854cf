"""NeMo Megatron-Bridge: YAML overrides of a recipe's ``ConfigContainer``.

Names checked against Megatron-Bridge 0.7 (``training/config.py``, ``training/mixed_precision.py``, the recipes and
``docs/recipe-usage.md``). Groups are the container's; fields are Megatron Core's. The number of replicas follows from
the number of ranks. A recipe's precision is one of its named ones, which reduce gradients in fp32.
"""

from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.plan.formats import _mcore
from ridgeline.plan.formats._common import (
    Format,
    Keys,
    Known,
    Reading,
    Written,
    comments,
    first_refusal,
    flat,
    from_yaml,
    header,
    needed,
    to_yaml,
    unsaid_cluster,
)
from ridgeline.plan.job import Job

TITLE, CHECKED = "NeMo Megatron-Bridge", "Megatron-Bridge 0.7 (ConfigContainer)"
_PRECISIONS = {"bf16": "bf16_mixed", "fp16": "fp16_mixed", "fp8": "bf16_with_fp8_delayed_scaling_mixed"}
_GROUPS = ("model.", "train.", "ddp.", "optimizer.", "dist.")


def _write(job: Job) -> Written:
    if job.seq is None:
        raise needed("seq", TITLE)
    _mcore.check(job, TITLE)
    table = _mcore.positions(job)
    first_refusal(
        TITLE,
        [
            (job.dtype not in _PRECISIONS, "dtype", job.dtype, "bf16"),
            (job.gradients != "fp32", "gradients", job.gradients, "fp32"),
            (table not in (0, job.seq), "seq", f"{job.seq} with {table} learned positions", f"{table}"),
        ],
    )
    dims, unsaid = _mcore.model_group(job)
    groups = _mcore.plan_groups(job)
    groups["model"] = dims | groups["model"] | {"seq_length": job.seq}
    if "num_moe_experts" in dims:
        groups["model"]["moe_token_dispatcher_type"] = "alltoall"
    tables: dict[str, Any] = groups | {"dataset": {"seq_length": job.seq}, "mixed_precision": _PRECISIONS[job.dtype]}
    if job.plan.zero >= 2:
        tables["dist"] = {"use_megatron_fsdp": True}
        tables["checkpoint"] = {"ckpt_format": "fsdp_dtensor"}
    first = comments((f"For {job.plan.chips} ranks: dp = {job.plan.dp} follows from them. Merge into a recipe.",))
    return Written(header(TITLE, CHECKED) + first + to_yaml(tables), unsaid | unsaid_cluster(job))


def _read(text: str, known: Known) -> Reading:
    values: dict[str, Any] = {}
    for name, value in flat(from_yaml(text)).items():
        group = next((group for group in _GROUPS if name.startswith(group)), "")
        values[name.removeprefix(group)] = value
    keys = Keys(values)
    seq = keys.whole("dataset.seq_length", keys.whole("seq_length", 0))
    if str(values.get("position_embedding_type")) == "learned_absolute":
        values = values | {"max_position_embeddings": seq}
        keys = Keys(values)
        seq = keys.whole("dataset.seq_length", keys.whole("seq_length", 0))
    if "global_batch_size" not in keys:
        raise InputError("Expected train.global_batch_size, got none,", where="train")
    model, lost = _mcore.read_model(keys)
    plan, more = _mcore.read_plan(keys, known, model or known.model, TITLE)
    precision = str(keys.take("mixed_precision", "bf16_mixed")).replace("-", "_")
    job = Job(
        plan=plan,
        sequences=keys.whole("global_batch_size", 0),
        seq=seq or None,
        steps=keys.whole("train_iters", 0) or None,
        model=model,
        dtype="fp8" if "fp8" in precision else precision.partition("_")[0],
        optimizer=keys.word("optimizer", _mcore.OURS, "adam"),
    )
    if precision not in _PRECISIONS.values():
        more.append(f"mixed_precision = {precision}: read as {job.dtype}")
    left, ignored = keys.left(_mcore.BEARS)
    return Reading(known.fill(job), (*lost, *more, *left), ignored)


FORMAT = Format(
    name="nemo",
    title=TITLE,
    suffix=".yaml",
    checked=CHECKED,
    sniff=lambda text: "tensor_model_parallel_size:" in text or "pipeline_model_parallel_size:" in text,
    write=_write,
    read=_read,
    program=lambda file: ("", f"<RECIPE_SCRIPT>.py --config-file {file}"),
)
