"""The neutral job: its file, its checks, and the models that a few keys can say."""

from pathlib import Path

import pytest
from tests.arithmetic.models import deepseek2_16b
from tests.plan.formats.jobs import GPT3, LLAMA70, MIXED, MIXTRAL, job, same

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.described import LLAMA, decoder, described, shape_of
from ridgeline.plan.job import Job, Plan, dumps, read_job
from ridgeline.plan.steps.cluster import parse
from ridgeline.plan.steps.layout import Layout


def saved(tmp_path: Path, text: str) -> Path:
    """A job file."""
    file = tmp_path / "job.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "model", [LLAMA70, MIXTRAL, MIXED, GPT3, deepseek2_16b(), None], ids=lambda m: getattr(m, "name", "none")
)
def test_a_job_file_holds_the_whole_job(model: ModelSpec | None, tmp_path: Path) -> None:
    made = job(
        model, tp=8, pp=4, dp=16, zero=1, sequence_parallel=1, chunks=2, recompute="full", steps=7, gradients="bf16"
    )
    assert same(read_job(saved(tmp_path, dumps(made))), made)


def test_what_has_no_effect_is_neutral() -> None:
    assert Plan.of(tp=1, dp=1, zero=3, sequence_parallel=1, chunks=4, schedule="interleaved") == Plan.of()
    assert Plan.of(tp=4, dp=8, zero=0, shard=2, ep=1, etp=2) == Plan.of(tp=4, dp=8)
    assert Plan.of(dp=8, zero=1, shard=1) == Plan.of(dp=8)
    assert Plan.of(dp=8, zero=1, shard=4) != Plan.of(dp=8, zero=1)


def test_a_job_of_a_row_is_checked() -> None:
    rows = Layout.of(tp=8, pp=[4, 4], dp=[16, 8], zero=1, sequence_parallel=1)
    cluster = parse("512xH100")
    made = Job.of(LLAMA70, cluster, rows.row(0), 512, 8192, steps=10)
    assert (made.plan.chips, made.node_size, made.device, made.nodes) == (512, 8, "H100-SXM-80GB", 64)
    assert made.micro_batches == 32
    with pytest.raises(InputError, match="at most 256 ranks"):
        Job.of(LLAMA70, parse("256xH100"), rows.row(0), 512, 8192)
    with pytest.raises(InfeasibleError, match="heads over tp"):
        Job.of(LLAMA70, cluster, Layout.of(tp=48, dp=8).row(0), 512, 8192)


def test_dp_is_what_remains(tmp_path: Path) -> None:
    text = 'sequences = 64\n[cluster]\nchips = "64xH100"\n[plan]\ntp = 4\npp = 2\n'
    assert read_job(saved(tmp_path, text)).plan.dp == 8
    with pytest.raises(InfeasibleError, match=r"divide the chips, got 24 of 64, at \$\.plan") as caught:
        read_job(saved(tmp_path, text.replace("tp = 4", "tp = 12")))
    assert caught.value.nearest == "48 chips"


def test_tokens_become_steps(tmp_path: Path) -> None:
    text = 'sequences = 500\nseq = 2000\ntokens = "10M"\n[plan]\ndp = 4\n'
    assert read_job(saved(tmp_path, text)).steps == 10
    with pytest.raises(InputError, match="tokens with seq and without steps"):
        read_job(saved(tmp_path, text.replace("seq = 2000\n", "")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seq = 8", "Expected the sequences of a step, got none"),
        ("sequences = 0", r"at least 1, got 0, at .*\$\.sequences"),
        ("sequences = 8\ndtype = 'bf61'", r"a known dtype, got 'bf61'.*\n.*bf16"),
        ("sequences = 8\nbatch = 4", r"a known field, got 'batch'"),
        ("sequences = 8\n[plan]\ntpp = 4", "a column of a plan, got 'tpp'"),
        ("sequences = 8\n[plan]\ntp = 0", r"at least 1, got \[0\], at .*plan\.tp"),
        ("sequences = 8\n[plan]\ndp = 3", r"whole steps over dp.micro_batch, got 8 over 3, at .*\$\.sequences"),
        ("sequences = 8\n[model]\nspec = '{'", r"whole JSON document"),
        ("sequences = 8\n[model]\nconfig = 'none.json'", "readable model config"),
        ("sequences = 8\n[cluster]\nnode_size = 0", r"\$\.cluster\.node_size"),
        ("sequences = 8\nplan = 4", "Expected a table, got 4"),
        ("sequences = ", "a valid job file"),
    ],
)
def test_bad_jobs_are_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises((InputError, InfeasibleError), match=f"(?s){said}"):
        read_job(saved(tmp_path, text))


def test_a_shape_says_all_of_a_model_or_nothing() -> None:
    for model in (LLAMA70, MIXTRAL, MIXED):
        shape = shape_of(model)
        assert shape is not None
        assert shape_of(decoder(shape)) == shape
    assert shape_of(GPT3) is None
    assert shape_of(deepseek2_16b()) is None
    assert described(deepseek2_16b()) is None


def test_gpt3_is_a_shape_with_a_style() -> None:
    found = described(GPT3)
    assert found is not None
    shape, style = found
    assert (shape.layers, shape.d_ff, shape.gated, shape.qkv_bias) == (96, 49152, False, False)
    assert (style.layer_norm, style.bias, style.positions) == (True, True, 2048)
    assert style != LLAMA
    assert described(decoder(shape, style)) == found
