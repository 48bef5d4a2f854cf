"""Rows of published tables: read, noted, or refused with a sentence."""

from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.serve.steps.published import OFFLINE, SERVER, STATIC, Refused, Row, parse, read_rows

BASE = {
    "row_id": "7", "hw": "h100_sxm", "model": "meta-llama/Llama-3.1-70B", "engine": "vllm", "precision": "fp8",
    "mode": "agg", "scenario": "closed-loop", "isl": "1024.0", "osl": "1024.0", "concurrency": "16.0", "tp": "8.0",
    "pp": "1.0", "dp_attn": "1.0", "moe_tp": "8.0", "moe_ep": "1.0", "n_accel": "8.0", "tpot_ms": "12.5",
}  # fmt: skip


def row(**changes: str) -> Row:
    found = parse({**BASE, **changes})
    assert isinstance(found, Row), found
    return found


def reason(**changes: str) -> str:
    found = parse({**BASE, **changes})
    assert isinstance(found, Refused)
    return found.reason


def test_a_plain_row() -> None:
    found = row()
    laid = found.deployment
    assert (laid.spec.name, laid.device.slug, laid.tp, laid.chips, laid.weights) == (
        "llama-3-70b", "h100-sxm-80gb", 8, 8, "fp8")  # fmt: skip
    assert (found.prompt, found.answer, found.sequences, found.context) == (1024, 1024, 16, 1536)
    assert found.truth == {"tpot_ms": 12.5}
    assert found.notes == ()


def test_chips_named_twice_are_read_once() -> None:
    found = row(model="deepseek-ai/DeepSeek-V3", tp="64", moe_tp="8", moe_ep="8", n_accel="64")
    assert (found.deployment.chips, found.deployment.tp, found.deployment.ep) == (8, 8, 8)
    assert "named twice" in found.notes[0]


def test_pools_with_and_without_workers() -> None:
    told = row(model="deepseek-ai/DeepSeek-R1", mode="disagg", prefill_cfg="1.0|2.0|1.0|8.0",
               decode_cfg="64.0|7.0|1.0|8.0", concurrency="3584", tp="")  # fmt: skip
    assert told.pools is not None
    assert (told.pools.prefill, told.pools.workers, told.sequences) == (16, 7, 512)
    assert (told.deployment.tp, told.deployment.dp_attention, told.deployment.ep) == (1, 8, 8)
    bare = row(model="deepseek-ai/DeepSeek-R1", mode="disagg", prefill_cfg="nan|nan|4.0|4.0",
               decode_cfg="nan|nan|32.0|4.0", concurrency="64", tp="")  # fmt: skip
    assert bare.deployment.chips == 32
    assert any("not given" in note for note in bare.notes)


def test_missing_types_follow_the_name() -> None:
    assert row(precision="", model="nvidia/Qwen3-32B-NVFP4").deployment.weights == "fp4"
    found = row(precision="")
    assert found.deployment.weights == "bf16"
    assert "taken as bf16" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "kind"), [("MLPerf Offline", OFFLINE), ("MLPerf Interactive", SERVER), ("static", STATIC)]
)
def test_scenarios(text: str, kind: str) -> None:
    assert row(scenario=text, target_qps="8").scenario == kind


def test_a_benchmark_brings_its_lengths_and_splits_its_rate() -> None:
    found = row(hw="NVIDIA H200-SXM-141GB", model="llama2-70b-99", scenario="MLPerf Server", isl="", osl="", tp="",
                concurrency="", target_qps="80", precision="")  # fmt: skip
    assert found.answer == pytest.approx(294.45)
    assert found.replicas * found.deployment.chips == 8
    assert found.rate * found.replicas == pytest.approx(80)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"hw": ""}, "accelerator"), ({"hw": "Potato 9"}, "accelerator"), ({"model": "unheard-of"}, "model"),
        ({"concurrency": ""}, "concurrency"), ({"isl": "-4"}, "at least 0"), ({"isl": "many"}, "at least 0"),
        ({"osl": ""}, "tokens"), ({"precision": "int3"}, "precision"), ({"tpot_ms": "nope"}, "tpot_ms"),
        ({"mode": "disagg", "prefill_cfg": "1|2", "decode_cfg": "x"}, "batch|workers|tp|ep"),
    ],
)  # fmt: skip
def test_refusals_say_why(changes: dict[str, str], word: str) -> None:
    assert word in reason(**changes)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="column hw"):
        read_rows(path)
    path.write_text("hw,model\n", encoding="utf-8")
    with pytest.raises(InputError, match="at least one row"):
        read_rows(path)
    with pytest.raises(InputError, match="readable CSV"):
        read_rows(tmp_path / "missing.csv")
