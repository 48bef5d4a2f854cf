"""MaxText's axes inside and across slices, its batch, and its limits."""

from typing import Any

import pytest
from tests.plan.formats.jobs import LLAMA70, MIXED, MIXTRAL, job

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.formats._common import Known, from_yaml
from ridgeline.plan.formats.maxtext import FORMAT

FULL: dict[str, Any] = {"recompute": "full"}


def test_axes_inside_and_across() -> None:
    made = job(tp=4, dp=64, cp=2, zero=3, shard=32, sequence_parallel=1, **FULL)
    data = from_yaml(FORMAT.write(made).text)
    inside = {name: data[f"ici_{name}_parallelism"] for name in ("tensor_sequence", "context", "fsdp", "data")}
    across = {name: data[f"dcn_{name}_parallelism"] for name in ("tensor_sequence", "context", "fsdp", "data")}
    assert inside == {"tensor_sequence": 4, "context": 2, "fsdp": 1, "data": 1}
    assert across == {"tensor_sequence": 1, "context": 1, "fsdp": 16, "data": 4}
    assert data["ici_tensor_parallelism"] == 1
    assert data["per_device_batch_size"] == 64 / 512
    assert data["gradient_accumulation_steps"] == 8


def test_experts_are_replicas() -> None:
    made = job(MIXTRAL, dp=64, ep=8, etp=1, zero=3, **FULL)
    data = from_yaml(FORMAT.write(made).text)
    assert (data["ici_expert_parallelism"], data["dcn_fsdp_parallelism"]) == (8, 8)
    assert (data["decoder_block"], data["base_moe_mlp_dim"], data["num_experts_per_tok"]) == ("mixtral", 14336, 2)


def test_a_pipeline_repeats() -> None:
    made = job(pp=4, dp=16, chunks=5, schedule="gpipe", zero=3, **FULL)
    data = from_yaml(FORMAT.write(made).text)
    assert (data["num_pipeline_repeats"], data["num_layers_per_pipeline_stage"]) == (5, 4)
    assert (data["num_pipeline_microbatches"], data["per_device_batch_size"]) == (32, 8.0)


def test_free_axes_take_the_chips() -> None:
    text = "ici_tensor_parallelism: 4\nper_device_batch_size: 2\nmax_target_length: 4096\n"
    found = FORMAT.read(text, Known(chips=64, node_size=8)).job
    assert (found.plan.tp, found.plan.dp, found.plan.shard, found.plan.sequence_parallel) == (4, 16, 2, 0)
    assert (found.sequences, found.plan.micro_batch) == (128, 8)
    with pytest.raises(InputError, match="Expected the number of chips"):
        FORMAT.read(text, Known())
    with pytest.raises(InputError, match="sizes that divide the chips"):
        FORMAT.read(text, Known(chips=30))


def test_what_bears_on_the_plan_is_never_dropped() -> None:
    text = "ici_fsdp_parallelism: 8\ndcn_data_parallelism: 1\nici_context_usp_ulysses_parallelism: 2\n"
    text += "per_device_batch_size: 1\nremat_policy: save_qkv_proj\noptimizer_memory_host_offload: true\nrun_name: x\n"
    text += "quantization: int8\n"
    found = FORMAT.read(text, Known())
    assert [item.partition(" ")[0] for item in found.lost] == [
        "remat_policy",
        "quantization",
        "ici_context_usp_ulysses_parallelism",
        "optimizer_memory_host_offload",
    ]
    assert found.ignored == ("run_name",)


def test_a_fraction_of_a_sequence_is_refused() -> None:
    text = "ici_fsdp_parallelism: 8\ndcn_data_parallelism: 1\nper_device_batch_size: 0.5\n"
    with pytest.raises(InfeasibleError, match=r"whole sequences in a micro-batch, got 0\.5"):
        FORMAT.read(text, Known())


@pytest.mark.parametrize(
    ("columns", "field", "nearest"),
    [
        ({"dp": 64}, "plan.recompute", "selective"),
        ({"dp": 64, "zero": 2, **FULL}, "plan.zero", "3"),
        ({"dp": 64, "cp": 2, "zero": 1, **FULL}, "plan.zero", "3 with shard 2"),
        ({"dp": 8, "pp": 4, "zero": 3, **FULL}, "plan.schedule", "gpipe"),
        ({"dp": 64, "pp": 8, "schedule": "gpipe", "micro_batch": 2, **FULL}, "plan.pp", "a divisor"),
        ({"dp": 5, "sequences": 500, "tp": 4, "zero": 3, **FULL}, "node_size", "a slice"),
        ({"dp": 64, "dtype": "fp16", **FULL}, "dtype", "bf16"),
    ],
)
def test_refusals(columns: dict[str, object], field: str, nearest: str) -> None:
    with pytest.raises(InfeasibleError, match=rf"\$\.{field}\n") as caught:
        FORMAT.write(job(LLAMA70, **columns))  # type: ignore[arg-type]
    assert caught.value.nearest.startswith(nearest)


def test_layers_without_a_general_block_are_named() -> None:
    written = FORMAT.write(job(MIXED, dp=64, zero=3, **FULL))
    assert "configs/models" in written.unsaid["model"]
    assert "base_emb_dim" not in written.text


def test_both_tensor_axes_are_one_too_many() -> None:
    text = "ici_fsdp_parallelism: 1\ndcn_data_parallelism: 1\n"
    text += "ici_tensor_parallelism: 2\nici_tensor_sequence_parallelism: 2\n"
    with pytest.raises(InfeasibleError, match="one of the tensor axes"):
        FORMAT.read(text, Known())
