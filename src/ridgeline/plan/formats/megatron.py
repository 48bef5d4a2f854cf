"""Megatron-LM: command-line arguments, as a Bash array that a launch script sources.

Names checked against ``megatron/training/arguments.py`` and the configuration classes it builds arguments from, at
Megatron Core 0.20. The number of data-parallel replicas is not an argument: it follows from the number of ranks, which
is read from ``--nnodes`` and ``--nproc-per-node`` where the file holds the launcher's line too.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
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
    header,
    needed,
    unsaid_cluster,
)
from ridgeline.plan.job import Job

TITLE, CHECKED = "Megatron-LM", "Megatron Core 0.20 (arguments.py)"
_RENAMED = {
    "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "num_moe_experts": "num_experts",
    "gated_linear_unit": "swiglu",
}
_NEGATED = {
    "add_bias_linear": "disable_bias_linear",
    "share_embeddings_and_output_weights": "untie_embeddings_and_output_weights",
}
_DTYPES = {"bf16": ["bf16"], "fp16": ["fp16"], "fp32": []}
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^{}]*))?\}|\$(\w+)")
_BRANCHES = re.compile(r"^\s*(?:if|case|for|while)\s.*?--[a-z]", re.MULTILINE | re.DOTALL)
_DIVISOR = 128  # what the vocabulary is padded to a multiple of, times tp, when nobody says otherwise


def _write(job: Job) -> Written:
    if job.seq is None:
        raise needed("seq", TITLE)
    _mcore.check(job, TITLE)
    dims, unsaid = _mcore.model_group(job)
    groups = _mcore.plan_groups(job)
    plan = groups["model"] | groups["train"] | groups["ddp"] | groups["optimizer"]
    blocks = {
        "the plan": _arguments(plan) + _overlap(job),
        "precision": _precision(job),
        "the batch": [f"--seq-length {job.seq}"],
        "the model": _model_arguments(job, dims),
    }
    lines = [header(TITLE, CHECKED), comments((f"For {job.plan.chips} ranks: dp = {job.plan.dp} follows from them.",))]
    lines.append("MEGATRON_ARGS=(\n")
    for name, words in blocks.items():
        lines += [f"  # {name}\n", *(f"  {word}\n" for word in words)] if words else []
    return Written("".join([*lines, ")\n"]), unsaid | unsaid_cluster(job))


def _arguments(fields: dict[str, Any]) -> list[str]:
    """Fields of Megatron Core as arguments: a truth value is a flag or nothing, some are named otherwise."""
    found = []
    for field, value in fields.items():
        if field in _NEGATED:
            field, value = _NEGATED[field], not value
        name = "--" + _RENAMED.get(field, field).replace("_", "-")
        if value is True:
            found.append(name)
        elif value is not False:
            found.append(f"{name} {value}")
    return found


def _overlap(job: Job) -> list[str]:
    words = ["--overlap-grad-reduce"] if job.plan.dp * job.plan.cp > 1 else []
    words += ["--overlap-param-gather"] if job.plan.zero else []
    return words + (["--ckpt-format fsdp_dtensor"] if job.plan.zero >= 2 else [])


def _precision(job: Job) -> list[str]:
    words = [f"--{name}" for name in _DTYPES.get(job.dtype, ["bf16"])]
    words += ["--fp8-format hybrid"] if job.dtype == "fp8" else []
    if job.dtype in ("bf16", "fp8"):
        words.append("--accumulate-allreduce-grads-in-fp32" if job.gradients == "fp32" else "--grad-reduce-in-bf16")
    return words


def _model_arguments(job: Job, dims: dict[str, Any]) -> list[str]:
    if not dims or job.model is None or job.seq is None:
        return []
    fields = dict(dims)
    if fields["num_query_groups"] == fields["num_attention_heads"]:
        del fields["num_query_groups"]
    words = ["--group-query-attention"] if "num_query_groups" in fields else []
    learned = fields["position_embedding_type"] == "learned_absolute"
    rows = _mcore.positions(job) if learned else max(job.seq, job.model.max_context or 0)
    fields["max_position_embeddings"] = rows
    if "window_size" in fields:
        fields["window_size"] = ",".join(map(str, fields["window_size"]))
    if "moe_layer_freq" in fields:
        dense = fields["moe_layer_freq"].count(0)
        fields["moe_layer_freq"] = f"'([0]*{dense}+[1]*{len(fields['moe_layer_freq']) - dense})'"
        words += ["--moe-token-dispatcher-type alltoall", "--moe-grouped-gemm"]
    fields["make_vocab_size_divisible_by"] = _divisor(job.model.vocab, job.plan.tp)
    return [*_arguments(fields), *words, "--attention-dropout 0.0", "--hidden-dropout 0.0"]


def _divisor(vocab: int, tp: int) -> int:
    """The largest divisor, up to the usual one, under which nothing is padded; 1 pads to a multiple of tp."""
    return next((size for size in (_DIVISOR, 64, 32, 16, 8, 4, 2) if vocab % (size * tp) == 0), 1)


def _read(text: str, known: Known) -> Reading:
    values = _parse(text)
    known = _ranks(values, known)
    fp32 = bool(values.pop("accumulate_allreduce_grads_in_fp32", False))
    bf16_gradients = values.pop("grad_reduce_in_bf16", False) and not fp32
    keys = Keys(values)
    model, lost = _mcore.read_model(keys)
    plan, more = _mcore.read_plan(keys, known, model or known.model, TITLE)
    formed = keys.take("fp8_format") is not None
    dtype = "fp8" if formed else next((name for name in ("bf16", "fp16") if keys.flag(name)), "fp32")
    train_iters = keys.take("train_iters")
    job = Job(
        plan=plan,
        sequences=keys.whole("global_batch_size", plan.dp * plan.micro_batch),
        seq=keys.whole("seq_length", 0) or None,
        steps=keys.whole("train_iters", 0) if train_iters is not None else None,
        model=model,
        dtype=dtype,
        gradients="bf16" if bf16_gradients else "fp32",
        optimizer=keys.word("optimizer", _mcore.OURS, "adam"),
    )
    more += ["the script branches: every argument in it is read"] if _BRANCHES.search(text) else []
    left, ignored = keys.left(_mcore.BEARS)
    return Reading(known.fill(job), (*lost, *more, *left), ignored)


def _parse(text: str) -> dict[str, Any]:
    """Arguments as fields of Megatron Core: from an array, a launcher's line or a bare list."""
    values = _words(text)
    for ours, theirs in _RENAMED.items():
        if theirs in values:
            values[ours] = values.pop(theirs)
    for ours, theirs in _NEGATED.items():
        values[ours] = not values.pop(theirs, False)
    values.setdefault("gated_linear_unit", False)
    if isinstance(values.get("window_size"), str):
        values["window_size"] = values["window_size"].strip("()").split(",")
    if re.fullmatch(r"\d+", str(values.get("moe_layer_freq", ""))):
        values["moe_layer_freq"] = int(values["moe_layer_freq"])
    return values


def _words(text: str) -> dict[str, Any]:
    """Each argument with its word, its words, or True where it has none; variables that the text sets are put in."""
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InputError.expected("shell words", str(error), where="FILE") from None
    values: dict[str, Any] = {}
    variables: dict[str, str] = {}
    name = ""
    for word in words:
        assigned = _ASSIGNED.fullmatch(word)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            values[name] = _filled(value, variables) if equals else True
            name = "" if equals else name
        elif assigned or word == ")" or word.endswith(".py"):
            name = ""
            variables |= {assigned[1]: _filled(assigned[2], variables)} if assigned else {}
        elif name:
            word = _filled(word, variables)
            values[name] = word if values[name] is True else [*_listed(values[name]), word]
    return values


def _filled(word: str, variables: Mapping[str, str]) -> str:
    """A word with the variables that are known, or that have a default; the others stay as they are."""
    return _VARIABLE.sub(lambda m: variables.get(m[1] or m[3], m[2] or m[0]), word)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _ranks(values: dict[str, Any], known: Known) -> Known:
    """The ranks that a launcher's words in the same file say, unless the user has said them."""
    nodes, processes = values.pop("nnodes", None), values.pop("nproc_per_node", None)
    if known.chips or not (str(nodes).isdigit() and str(processes).isdigit()):
        return known
    return replace(known, chips=int(nodes) * int(processes))


FORMAT = Format(
    name="megatron",
    title=TITLE,
    suffix=".sh",
    checked=CHECKED,
    sniff=lambda text: "--tensor-model-parallel-size" in text or "--pipeline-model-parallel-size" in text,
    write=_write,
    read=_read,
    program=lambda file: (f"source {file}", 'pretrain_gpt.py "${MEGATRON_ARGS[@]}"'),
)
