"""Megatron-LM's arguments and Megatron-Bridge's overrides: names, defaults and limits."""

import shlex

import pytest
from tests.plan.formats.jobs import GPT3, LLAMA70, MIXED, MIXTRAL, beside, job

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.described import described
from ridgeline.plan.formats._common import Known, from_yaml
from ridgeline.plan.formats.megatron import FORMAT
from ridgeline.plan.formats.nemo import FORMAT as NEMO
from ridgeline.plan.job import Job

LAUNCHED = """
torchrun --nproc_per_node 8 --nnodes=4 pretrain_gpt.py \\
    --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 \\
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \\
    --ffn-hidden-size 14336 --vocab-size 128256 --seq-length 8192 --max-position-embeddings 8192 \\
    --position-embedding-type rope --swiglu --disable-bias-linear --normalization RMSNorm \\
    --untie-embeddings-and-output-weights --num-layers-per-virtual-pipeline-stage 4 \\
    --micro-batch-size 2 --global-batch-size 256 --bf16 --use-distributed-optimizer --sequence-parallel \\
    --recompute-activations --lr 3e-4 --save out --tp-comm-overlap
"""


def words(made: Job) -> list[str]:
    """The arguments as a shell splits them."""
    return shlex.split(FORMAT.write(made).text, comments=True)


def value(made: Job, name: str) -> str:
    """The word behind an argument."""
    found = words(made)
    return found[found.index(name) + 1]


def test_a_launch_line_is_read_whole() -> None:
    found = FORMAT.read(LAUNCHED, Known())
    plan = found.job.plan
    assert (plan.tp, plan.pp, plan.dp, plan.chunks, plan.zero, plan.sequence_parallel) == (4, 2, 4, 4, 1, 1)
    assert (plan.micro_batch, plan.recompute, plan.schedule) == (2, "selective", "interleaved")
    assert (found.job.sequences, found.job.seq, found.job.steps, found.job.dtype) == (256, 8192, None, "bf16")
    assert found.job.model is not None
    known = described(found.job.model)
    assert known is not None
    assert (known[0].kv_heads, known[0].d_ff, known[0].tied, known[0].head_dim) == (8, 14336, False, 128)
    assert found.lost == ()
    assert set(found.ignored) == {"lr", "save", "tp_comm_overlap"}


SCRIPT = """#!/bin/bash
TP=4
NODES=${1:-2}
export LAYERS=8
MODEL_ARGS=(
    --num-layers $LAYERS --hidden-size 512 --num-attention-heads 8 --padded-vocab-size 1024 --swiglu
    --normalization RMSNorm --disable-bias-linear --position-embedding-type rope   # as Llama
)
MODEL_ARGS+=( --tensor-model-parallel-size "${TP}" --micro-batch-size 2 --global-batch-size 16 --bf16 )
torchrun --nnodes $NODES --nproc_per_node 8 pretrain_gpt.py ${MODEL_ARGS[@]} --data-path $DATA
"""


def test_a_whole_script_is_read() -> None:
    found = FORMAT.read(SCRIPT, Known())
    assert (found.job.plan.tp, found.job.plan.dp, found.job.plan.micro_batch, found.job.sequences) == (4, 4, 2, 16)
    assert found.job.model is not None
    assert (found.job.model.layers, found.job.model.vocab, found.job.model.tied) == (8, 1024, True)
    assert (found.lost, found.ignored) == ((), ("data_path",))


def test_branches_are_said() -> None:
    text = SCRIPT + "if [[ $X == fp8 ]]; then\n  MODEL_ARGS+=( --fp8-format hybrid )\nfi\n"
    assert FORMAT.read(text, Known()).lost == ("the script branches: every argument in it is read",)


def test_a_variable_that_is_not_set_is_refused() -> None:
    with pytest.raises(InputError, match=r"a whole number, got '\$TP', at tensor_model_parallel_size"):
        FORMAT.read(SCRIPT.replace("TP=4\n", "").replace("${TP}", "$TP"), Known())


def test_ranks_are_needed() -> None:
    with pytest.raises(InputError, match="Expected the number of chips") as caught:
        FORMAT.read(LAUNCHED.replace("--nnodes=4", ""), Known())
    assert "--cluster" in caught.value.hint
    assert FORMAT.read(LAUNCHED, Known(chips=64)).job.plan.dp == 8
    with pytest.raises(InfeasibleError, match="divide the chips, got 8 of 20"):
        FORMAT.read(LAUNCHED, Known(chips=20))


def test_what_bears_on_the_plan_is_never_dropped() -> None:
    text = LAUNCHED + " --pipeline-model-parallel-layout 'Et*4|' --cpu-offload --recompute-granularity full"
    text += " --recompute-method block --recompute-num-layers 3 --context-parallel-new 4"
    lost = " ".join(FORMAT.read(text, Known(chips=32)).lost)
    for name in (
        "recompute_method = block",
        "pipeline_model_parallel_layout",
        "context_parallel_new = 4",
        "cpu_offload",
    ):
        assert name in lost


def test_zero_stages() -> None:
    assert "--use-distributed-optimizer" not in words(job(dp=64))
    assert "--use-megatron-fsdp" not in words(job(dp=64, zero=1))
    assert value(job(dp=64, zero=1, shard=16), "--num-distributed-optimizer-instances") == "4"
    assert value(job(dp=64, zero=2), "--data-parallel-sharding-strategy") == "optim_grads"
    assert value(job(dp=64, zero=3), "--data-parallel-sharding-strategy") == "optim_grads_params"
    assert value(job(dp=64, zero=3), "--ckpt-format") == "fsdp_dtensor"


def test_experts() -> None:
    made = job(MIXED, tp=2, dp=32, ep=8, etp=1, zero=1, sequence_parallel=1)
    assert value(made, "--expert-model-parallel-size") == "8"
    assert value(made, "--expert-tensor-parallel-size") == "1"
    assert value(made, "--moe-layer-freq") == "([0]*2+[1]*22)"
    assert value(made, "--num-experts") == "64"
    assert value(made, "--window-size") == "1023,0"
    assert value(made, "--window-attn-skip-freq") == "4"


def test_gpt3_is_its_own_defaults() -> None:
    made = job(GPT3, seq=2048, tp=8, pp=8, dp=8)
    assert value(made, "--position-embedding-type") == "learned_absolute"
    assert value(made, "--max-position-embeddings") == "2048"
    assert value(made, "--normalization") == "LayerNorm"
    assert not {"--swiglu", "--disable-bias-linear", "--untie-embeddings-and-output-weights"} & set(words(made))
    assert value(made, "--make-vocab-size-divisible-by") == "1", "50257 is prime to everything: padded to tp, no more"


def test_precisions() -> None:
    assert "--accumulate-allreduce-grads-in-fp32" in words(job(dp=64))
    assert "--grad-reduce-in-bf16" in words(job(dp=64, gradients="bf16"))
    assert value(job(dp=64, dtype="fp8"), "--fp8-format") == "hybrid"
    assert "--bf16" not in words(job(dp=64, dtype="fp32"))


@pytest.mark.parametrize("form", [FORMAT, NEMO], ids=["megatron", "nemo"])
@pytest.mark.parametrize(
    ("columns", "field", "nearest"),
    [
        ({"pp": 2, "dp": 8, "schedule": "gpipe"}, "plan.schedule", "1f1b"),
        ({"pp": 2, "dp": 8, "chunks": 2, "schedule": "dualpipe"}, "plan.schedule", "interleaved"),
        ({"pp": 4, "dp": 8, "chunks": 3}, "plan.chunks", "2"),
        ({"dp": 8, "zero": 2, "shard": 4}, "plan.shard", "8"),
        ({"dp": 8, "zero": 3, "optimizer": "muon"}, "optimizer", "plan.zero 1"),
    ],
)
def test_refusals(form: object, columns: dict[str, object], field: str, nearest: str) -> None:
    with pytest.raises(InfeasibleError, match=rf"\$\.{field}\n") as caught:
        form.write(job(LLAMA70, **columns))  # type: ignore[attr-defined, arg-type]
    assert caught.value.nearest.startswith(nearest)


@pytest.mark.parametrize("pattern", ["[0]*99999999999*9", "__import__('os')", "[1]*31", "([1,0]*16)", "(" * 90])
def test_a_pattern_is_only_a_list(pattern: str) -> None:
    text = FORMAT.write(job(MIXTRAL, dp=64)).text.replace("'([0]*0+[1]*32)'", f'"{pattern}"')
    found = FORMAT.read(text, Known(chips=64))
    assert found.job.model is None
    assert "the model is not read" in found.lost[0]


def test_bridge_groups() -> None:
    made = job(tp=8, pp=4, dp=16, zero=1, chunks=5, sequence_parallel=1, recompute="full", steps=1000)
    data = from_yaml(NEMO.write(made).text)
    assert data["model"]["virtual_pipeline_model_parallel_size"] == 5
    assert data["model"]["recompute_method"] == "uniform"
    assert data["train"] == {"micro_batch_size": 1, "global_batch_size": 512, "train_iters": 1000}
    assert data["ddp"] == {"use_distributed_optimizer": True}
    assert data["dataset"]["seq_length"] == data["model"]["seq_length"] == 8192
    assert data["mixed_precision"] == "bf16_mixed"
    with pytest.raises(InfeasibleError, match=r"\$\.gradients\n"):
        NEMO.write(job(dp=64, gradients="bf16"))
    with pytest.raises(InfeasibleError, match="8192 with 2048 learned positions"):
        NEMO.write(job(GPT3, dp=64))


def test_a_partial_override_is_read() -> None:
    text = "model:\n  tensor_model_parallel_size: 2\ntrain:\n  global_batch_size: 64\n  micro_batch_size: 2\n"
    text += "mixed_precision: bf16_with_mxfp8_mixed\nlogger:\n  log_interval: 5\n"
    found = NEMO.read(text, Known(chips=16, model=LLAMA70))
    assert (found.job.plan.dp, found.job.dtype, found.job.seq, found.job.model) == (8, "fp8", None, LLAMA70)
    assert "bf16_with_mxfp8_mixed" in found.lost[0]
    assert found.ignored == ("logger.log_interval",)
    with pytest.raises(InputError, match="global_batch_size"):
        NEMO.read("model:\n  tensor_model_parallel_size: 2\n", Known(chips=16))


def test_the_user_may_not_contradict_the_file() -> None:
    made = job(dp=64, zero=1)
    assert FORMAT.read(FORMAT.write(made).text, beside(made)).job.plan == made.plan
