"""DeepSpeed's batch arithmetic and its limits."""

import json

import pytest
from tests.plan.formats.jobs import LLAMA70, MIXTRAL, job

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.formats._common import Known
from ridgeline.plan.formats.deepspeed import FORMAT


def test_the_batch_adds_up() -> None:
    data = json.loads(FORMAT.write(job(dp=64, micro_batch=2, zero=1)).text)
    assert data["train_batch_size"] == 512
    assert data["train_micro_batch_size_per_gpu"] * data["gradient_accumulation_steps"] * 64 == 512
    assert data["zero_optimization"] == {"stage": 1}
    assert data["bf16"] == {"enabled": True}


def test_tensor_expert_and_hybrid() -> None:
    assert json.loads(FORMAT.write(job(dp=32, tp=4)).text)["tensor_parallel"] == {"autotp_size": 4}
    experts = json.loads(FORMAT.write(job(MIXTRAL, dp=32, ep=8, zero=2)).text)
    assert experts["expert_parallel"] == {"enabled": True, "autoep_size": 8}
    assert json.loads(FORMAT.write(job(dp=64, zero=3, shard=8)).text)["zero_optimization"]["mics_shard_size"] == 8


def test_what_the_program_sets_is_named() -> None:
    unsaid = FORMAT.write(job(dp=64, recompute="full", steps=10)).unsaid
    assert {"seq", "steps", "model", "plan.recompute"} <= set(unsaid)


@pytest.mark.parametrize(
    ("sizes", "chips", "found"),
    [
        (
            {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4},
            0,
            (64, 2, 8),
        ),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2}, 8, (64, 2, 8)),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 4}, 8, (64, 2, 8)),
        ({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}, 8, (64, 2, 8)),
        ({"train_batch_size": 64}, 8, (64, 8, 8)),
    ],
)
def test_two_sizes_give_the_third(sizes: dict[str, int], chips: int, found: tuple[int, int, int]) -> None:
    made = FORMAT.read(json.dumps(sizes), Known(chips=chips)).job
    assert (made.sequences, made.plan.micro_batch, made.plan.dp) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"train_batch_size": "auto"}', "Expected a number, got 'auto'"),
        ('{"train_batch_size": 64}', "train_micro_batch_size_per_gpu, got fewer"),
        (
            '{"train_batch_size": 60, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4}',
            "ranks = 60",
        ),
        ("[]", "Expected a JSON object"),
        ("{", "Expected a JSON document"),
        (
            '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Lamb"}}',
            "optimizer.type",
        ),
    ],
)
def test_files_that_say_too_little(text: str, said: str) -> None:
    with pytest.raises((InputError, InfeasibleError), match=said):
        FORMAT.read(text, Known())


def test_what_bears_on_the_plan_is_never_dropped() -> None:
    data = {
        "train_batch_size": 8,
        "train_micro_batch_size_per_gpu": 1,
        "sequence_parallel_size": 2,
        "steps_per_print": 5,
    }
    data |= {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "zero_hpz_partition_size": 8}}  # type: ignore[dict-item]
    found = FORMAT.read(json.dumps(data), Known())
    assert len(found.lost) == 3
    assert found.ignored == ("steps_per_print",)


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"pp": 4, "dp": 8}, "plan.pp"),
        ({"cp": 4, "dp": 8}, "plan.cp"),
        ({"tp": 4, "dp": 8, "sequence_parallel": 1}, "plan.sequence_parallel"),
        ({"dp": 8, "zero": 2, "shard": 4}, "plan.shard"),
        ({"dp": 8, "dtype": "fp8"}, "dtype"),
    ],
)
def test_refusals(columns: dict[str, object], field: str) -> None:
    with pytest.raises(InfeasibleError, match=rf"\$\.{field}\n") as caught:
        FORMAT.write(job(LLAMA70, **columns))  # type: ignore[arg-type]
    assert caught.value.nearest


def test_experts_not_beside_tensors() -> None:
    with pytest.raises(InfeasibleError, match=r"4 beside tp 2"):
        FORMAT.write(job(MIXTRAL, dp=8, tp=2, ep=4))
