"""torchtitan's names, defaults and limits."""

import tomllib

import pytest
from tests.plan.formats.jobs import LLAMA70, MIXTRAL, job

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.formats._common import Known
from ridgeline.plan.formats.torchtitan import FORMAT

BARE = "[training]\nlocal_batch_size = 2\nseq_len = 8192\n[parallelism]\n"


def test_a_pipeline_in_its_names() -> None:
    made = job(tp=8, pp=4, dp=16, zero=2, sequence_parallel=1, chunks=5, recompute="selective")
    data = tomllib.loads(FORMAT.write(made).text)
    assert data["training"]["local_batch_size"] == 32, "of a replica, cut into micro-batches by the pipeline"
    assert data["training"]["global_batch_size"] == 512
    assert data["activation_checkpoint"] == {"mode": "selective", "selective_ac_option": "op"}
    assert data["parallelism"] == {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": 16,
        "fsdp_reshard_after_forward": "never",
        "tensor_parallel_degree": 8,
        "context_parallel_degree": 1,
        "expert_parallel_degree": 1,
        "expert_tensor_parallel_degree": 1,
        "pipeline_parallel_degree": 4,
        "pipeline_parallel_schedule": "Interleaved1F1B",
        "pipeline_parallel_microbatch_size": 1,
        "pipeline_parallel_layers_per_stage": 4,
        "pipeline_parallel_first_stage_less_layers": 0,
        "pipeline_parallel_last_stage_less_layers": 0,
    }


def test_hybrid_sharding_and_context() -> None:
    made = job(tp=2, cp=4, dp=16, zero=3, shard=16, sequence_parallel=1)
    data = tomllib.loads(FORMAT.write(made).text)["parallelism"]
    assert (data["data_parallel_replicate_degree"], data["data_parallel_shard_degree"]) == (4, 4)
    assert data["fsdp_reshard_after_forward"] == "always"


def test_its_defaults() -> None:
    found = FORMAT.read(BARE + "tensor_parallel_degree = 8\n", Known(chips=64, model=LLAMA70)).job
    assert (found.plan.dp, found.plan.zero, found.plan.shard, found.sequences) == (8, 3, 8, 16)
    assert found.plan.recompute == "selective"
    assert found.plan.sequence_parallel == 1
    pipelined = FORMAT.read(BARE + "pipeline_parallel_degree = 2\n", Known(chips=8))
    assert pipelined.job.plan.zero == 2, "resharding is off by default under a pipeline"
    assert any("first_stage_less_layers = 1" in item for item in pipelined.lost)


def test_every_second_layer_is_lost_and_said() -> None:
    text = BARE + "data_parallel_shard_degree = 8\n[activation_checkpoint]\nmode = 'selective'\n"
    assert "every n-th" in FORMAT.read(text, Known()).lost[0]


def test_interleaved_without_layers_has_two_chunks() -> None:
    text = BARE + "pipeline_parallel_degree = 2\npipeline_parallel_schedule = 'Interleaved1F1B'\n"
    assert FORMAT.read(text, Known(chips=8)).job.plan.chunks == 2
    with pytest.raises(InputError, match="Expected the model") as caught:
        FORMAT.read(text + "pipeline_parallel_layers_per_stage = 10\n", Known(chips=8))
    assert "--model" in caught.value.hint
    text += "pipeline_parallel_layers_per_stage = 10\npipeline_parallel_first_stage_less_layers = 0\n"
    text += "pipeline_parallel_last_stage_less_layers = 0\n"
    assert FORMAT.read(text, Known(chips=8, model=LLAMA70)).job.plan.chunks == 4


def test_what_bears_on_the_plan_is_never_dropped() -> None:
    text = (
        "[training]\nenable_cpu_offload = true\n[parallelism]\ndata_parallel_shard_degree = 8\nnew_parallel_thing = 4\n"
    )
    found = FORMAT.read("[comm]\ntrace_buf_size = 1\n[profiling]\nprofile_freq = 2\n" + text, Known())
    assert "training.enable_cpu_offload = True" in found.lost
    assert "parallelism.new_parallel_thing = 4" in found.lost
    assert set(found.ignored) == {"comm.trace_buf_size", "profiling.profile_freq"}


@pytest.mark.parametrize("schedule", ["ZBVZeroBubble", "InterleavedZeroBubble", "DualPipeV", "LoopedBFS"])
def test_schedules_that_a_job_cannot_hold(schedule: str) -> None:
    text = BARE + f"pipeline_parallel_degree = 2\npipeline_parallel_schedule = '{schedule}'\n"
    with pytest.raises(InfeasibleError, match="pipeline_parallel_schedule") as caught:
        FORMAT.read(text, Known(chips=8))
    assert "Interleaved1F1B" in caught.value.nearest


@pytest.mark.parametrize(
    ("columns", "field", "nearest"),
    [
        ({"dp": 8, "zero": 1}, "plan.zero", "2"),
        ({"dp": 8, "tp": 2, "sequence_parallel": 1}, "plan.zero", "2 or 3"),
        ({"dp": 8, "cp": 2}, "plan.zero", "3 with shard 2"),
        ({"dp": 8, "tp": 2, "zero": 3}, "plan.sequence_parallel", "1"),
        ({"dp": 8, "zero": 3, "pp": 2, "schedule": "zb-h1"}, "plan.schedule", "interleaved or 1f1b"),
        ({"dp": 8, "zero": 3, "pp": 4, "chunks": 7}, "plan.chunks", "5"),
        ({"dp": 8, "zero": 3, "gradients": "bf16"}, "gradients", "fp32"),
        ({"dp": 8, "zero": 3, "dtype": "fp16"}, "dtype", "bf16"),
        ({"dp": 8, "cp": 2, "zero": 3, "shard": 1}, "plan.zero", "3 with shard 2"),
    ],
)
def test_refusals_name_the_field_and_the_nearest(columns: dict[str, object], field: str, nearest: str) -> None:
    with pytest.raises(InfeasibleError, match=rf"\$\.{field}\n") as caught:
        FORMAT.write(job(LLAMA70, **columns))  # type: ignore[arg-type]
    assert caught.value.nearest.startswith(nearest)


def test_experts_take_their_ranks_from_the_shard_group() -> None:
    fits = job(MIXTRAL, tp=2, dp=16, ep=8, etp=1, zero=3, sequence_parallel=1)
    data = tomllib.loads(FORMAT.write(fits).text)["parallelism"]
    assert (data["expert_parallel_degree"], data["expert_tensor_parallel_degree"]) == (8, 1)
    with pytest.raises(InfeasibleError, match=r"plan\.etp 2") as caught:
        FORMAT.write(job(MIXTRAL, tp=4, dp=16, ep=4, etp=2, zero=3, sequence_parallel=1))
    assert caught.value.nearest == "1 or 4"
    with pytest.raises(InfeasibleError, match=r"plan\.ep 2") as caught:
        FORMAT.write(job(MIXTRAL, tp=4, dp=16, ep=2, etp=1, zero=3, sequence_parallel=1))
    assert "multiple of 4" in caught.value.nearest


def test_float8_is_a_converter() -> None:
    made = job(dp=64, zero=3, dtype="fp8")
    data = tomllib.loads(FORMAT.write(made).text)
    assert data["model"]["converters"] == ["quantize.linear.float8"]
