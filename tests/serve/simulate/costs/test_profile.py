"""A kernel profile as a step table: the sum of its terms, its overheads, and groups that step together."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.serve.simulate.profiles import ENGINE, attention_us, deployment, write

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.costs.profile import Overheads, Wire, load
from ridgeline.serve.simulate.costs.table import Shape
from ridgeline.serve.simulate.engine.engine import Engine

NOTHING = Overheads()
LAYERS, WIDTH = 32, 4096
IN_LAYER = 8  # two norms and six other operations
MOE = "tokens,activated_experts,time_us\n" + "".join(
    f"{t},{e},{t + 2 * e}\n" for t in (1, 64, 256) for e in (8, 64, 128)
)
MOE_DENSE = "layer,tokens,time_us\n" + "".join(
    f"{name},{t},{10 + t}\n" for name in ("layernorm", "qkv_proj", "o_proj") for t in (1, 256)
)


def test_a_step_is_the_sum_of_its_terms(tmp_path: Path) -> None:
    table = load(write(tmp_path), deployment(), ENGINE, overheads=Overheads(1e-3, 1e-5))
    found = table.terms(Shape(66, 3, 3, 64, 64 * (128 + 32), 2, 600, 300))
    assert found["dense"] == pytest.approx((LAYERS * IN_LAYER + 2) * 76e-6)
    assert found["attention"] == pytest.approx(LAYERS * attention_us(64, 128, 2, 300) * 1e-6)
    assert found["head"] == pytest.approx((120 + 12) * 1e-6)
    assert found["experts"] == 0
    assert found["host"] == pytest.approx(1e-3 + 3e-5)


def test_tensor_parallelism_adds_two_reductions_a_layer(tmp_path: Path) -> None:
    wire = Wire(16e9, 20e-6)
    folder = write(tmp_path)
    table = load(folder, deployment(tp=2), ENGINE, overheads=Overheads(wire=wire))
    plain = load(folder, deployment(), ENGINE, overheads=NOTHING)
    added = table.dense(64) - plain.dense(64)
    # A ring of two sends each chip's half there and the sum of the other back.
    assert added == pytest.approx(2 * LAYERS * (20e-6 + 64 * WIDTH * 2 / 16e9))


def test_without_a_wire_the_device_has_its_own(tmp_path: Path) -> None:
    folder = write(tmp_path)
    plain = load(folder, deployment(), ENGINE, overheads=NOTHING)
    for layout in ({"tp": 2}, {"tp": 4}):
        assert load(folder, deployment("llama-3-8b", **layout), ENGINE, overheads=NOTHING).dense(64) > plain.dense(64)


def test_the_fitted_overheads_know_the_wire_of_one_device() -> None:
    known, other = Overheads.fitted("rtx-pro-6000-blackwell-server"), Overheads.fitted("h100-sxm-80gb")
    assert known.wire is not None
    assert other.wire is None
    assert known.host_sequence_s == other.host_sequence_s > 0


def test_experts_are_read_at_those_that_tokens_reach(tmp_path: Path) -> None:
    folder = write(tmp_path, dense=MOE_DENSE, moe=MOE)
    table = load(folder, deployment("qwen3-30b-a3b"), ENGINE, overheads=NOTHING)
    assert table.experts(1) == pytest.approx(48 * (1 + 2 * 8) * 1e-6)
    hit = 128 * (1 - (1 - 8 / 128) ** 64)
    assert table.experts(64) == pytest.approx(48 * (64 + 2 * hit) * 1e-6)


def test_a_group_shares_experts_and_decodes_and_waits_for_a_prompt(tmp_path: Path) -> None:
    folder = write(tmp_path, dense=MOE_DENSE, moe=MOE)
    wire = Overheads(host_sequence_s=1e-5, wire=Wire(16e9, 20e-6))
    engine = Engine(kv_blocks=1000, max_num_seqs=16, max_num_batched_tokens=512)
    group = load(folder, deployment("qwen3-30b-a3b", dp_attention=2, ep=2), engine, overheads=wire)
    alone = load(folder, deployment("qwen3-30b-a3b"), ENGINE, overheads=NOTHING)
    hit = 64 * (1 - (1 - 8 / 128) ** 128)
    exchange = 2 * 20e-6 + 128 * 2048 * 2 / 16e9
    assert group.experts(128) == pytest.approx(48 * ((64 + 2 * hit) * 1e-6 + exchange))
    assert group.dense(16) == pytest.approx(alone.dense(8))
    assert group.dense(200) == pytest.approx(alone.dense(200 - 8))
    assert group.dense(512) == pytest.approx(alone.dense(256))
    assert group.attention(256, 0, 8, 64) == pytest.approx(alone.attention(256, 0, 4, 64))
    assert group.attention(512, 0, 8, 64) == pytest.approx(alone.attention(256, 0, 4, 64))
    assert group.head(8) == pytest.approx(alone.head(4))
    assert group.host_sequence_s == pytest.approx(0.5e-5)


def test_skew_moves_a_step_towards_its_longest_context_by_its_weight(tmp_path: Path) -> None:
    rows = "n,pc,kv_big,kv_mean,t_mean_us,t_max_us,t_skew_us\n2,0,512,256,100,200,120\n8,0,512,256,100,200,140\n"
    folder = write(tmp_path, skew=rows)
    shape = Shape(2, 2, 2, 0, 0.0, 2, 512, 512)
    plain, half, whole = (load(folder, deployment(), ENGINE, overheads=Overheads(skew=w)).seconds(shape)
                          for w in (0.0, 0.5, 1.0))  # fmt: skip
    longest = LAYERS * (attention_us(0, 0, 2, 512) - attention_us(0, 0, 2, 256)) * 1e-6
    assert whole - plain == pytest.approx(0.2 * longest)
    assert half - plain == pytest.approx(0.1 * longest)


@pytest.mark.parametrize(
    ("model", "layout", "tables", "said"),
    [
        ("llama-3-8b", {"pp": 2}, {}, "one pipeline stage"),
        ("llama-3-8b", {"dp_attention": 2}, {}, "expert parallel over all"),
        ("qwen3-30b-a3b", {"tp": 2, "ep": 2}, {}, "ep 1 without"),
        ("gpt-oss-120b", {}, {}, "layers that are all alike"),
        ("qwen3-30b-a3b", {}, {}, "a table moe"),
        ("llama-3-8b", {}, {"dense": MOE_DENSE}, "rows of gate_up_proj"),
        ("llama-3-8b", {}, {"dense": MOE_DENSE + "rotor,1,2\n"}, "rotor"),
        ("llama-3-8b", {}, {"per_sequence": "layer,sequences,time_us\nlm_head,1,1\n"}, "lm_head and sampler"),
    ],
)
def test_what_no_profile_describes_is_refused(
    tmp_path: Path, model: str, layout: dict[str, int], tables: dict[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        load(write(tmp_path, **tables), deployment(model, **layout), ENGINE, overheads=NOTHING)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: Overheads(host_step_s=-1.0), "host_step_s"),
        (lambda: Overheads(host_sequence_s=-1.0), "host_sequence_s"),
        (lambda: Overheads(skew=-1.0), "skew"),
    ],
)
def test_negative_overheads_are_refused(made: Callable[[], Overheads], name: str) -> None:
    with pytest.raises(InputError, match=name):
        made()


@pytest.mark.parametrize(("bandwidth", "latency"), [(0.0, 0.0), (1e9, -1e-6), (1e9, float("nan"))])
def test_a_wire_that_cannot_be_is_refused(bandwidth: float, latency: float) -> None:
    with pytest.raises(InputError, match="the wire"):
        Wire(bandwidth, latency)
