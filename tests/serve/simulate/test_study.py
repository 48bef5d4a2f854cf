"""A serving spec: its keys, the command line over it, the memory behind its blocks."""

from pathlib import Path
from typing import Any

import pytest
from tests.serve.simulate.studies import study_of

from ridgeline.arithmetic.named import find_model
from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.serve.capacity.admission import request_bytes
from ridgeline.serve.capacity.capacity import capacity
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.simulate.study import blocks_of, read_spec

POOLS = {"prefill": 1, "decode": 2, "bandwidth": "50GB/s"}


def test_the_command_line_goes_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('model = "llama-3-8b"\n[traffic]\nrate = 3\n[slo]\nttft = "2s"\n')
    found = read_spec(file, {"model": None, "traffic": {"rate": 7.0, "trace": None}, "slo": {"tpot": 0.05}})
    assert (found.model, found.traffic.rate, found.slo.ttft, found.slo.tpot) == ("llama-3-8b", 7.0, 2.0, 0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [("[trafic]\nrate = 1\n", "did you mean traffic"), ("[engine]\nscheduler = 3\n", r"\$\.engine\.scheduler"),
     ("[money]\ndollars_per_chip_hour = nan\n", "dollars_per_chip_hour"), ("warmup = 1.0\n", r"\$\.warmup"),
     ("traffic = 3\n", r"Expected a table, got 3")],
)  # fmt: skip
def test_a_bad_spec_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"serve\.toml") as caught:
        read_spec(file, {"traffic": {"rate": 2.0}})
    assert message.replace("\\", "") in str(caught.value)


def test_blocks_are_the_free_bytes_in_blocks() -> None:
    spec, _ = find_model("llama-3-8b")
    found = capacity(Deployment(spec, device("H100")), 1024)
    per_token = 2 * 32 * 8 * 128 * 2
    assert blocks_of(found, 16) == int(found.free_bytes / (16 * per_token))
    assert request_bytes(1024, found.kinds, 16) == 1024 * per_token


def test_the_memory_decides_where_the_spec_does_not() -> None:
    found = study_of(engine={"kv_blocks": None})
    assert found.capacity is not None
    assert found.engine.kv_blocks == blocks_of(found.capacity, 16)
    assert study_of(engine={"kv_blocks": 77}).engine.kv_blocks == 77


@pytest.mark.parametrize(("engine", "scheduler"), [("vllm", "vllm"), ("sglang", "sglang"), ("trtllm", "vllm")])
def test_the_engine_decides_the_scheduler(engine: str, scheduler: str) -> None:
    from dataclasses import replace

    from tests.serve.simulate.studies import spec_of

    from ridgeline.serve.simulate.study import study

    made = study_of()
    found = study(spec_of(), replace(made.deployment, engine=engine), made.inputs[0])
    assert found.engine.scheduler == scheduler


@pytest.mark.parametrize(("missing", "what"), [("decode", "writes an answer"), ("prefill", "reads a prompt")])
def test_a_pool_without_a_worker_is_refused(missing: str, what: str) -> None:
    with pytest.raises(InputError, match=f"at least one {missing} worker, got 0") as caught:
        study_of(engine={"pools": {**POOLS, missing: 0}})
    assert what in caught.value.hint


def test_pools_know_what_they_move() -> None:
    found = study_of(engine={"pools": POOLS})
    assert found.engine.workers == 3
    assert found.engine.kv_bytes_per_token == 2 * 32 * 8 * 128 * 2
    assert found.chips == 3


@pytest.mark.parametrize(
    ("engine", "message"),
    [({"scheduler": "fcfs"}, "a scheduler"), ({"pools": {**POOLS, "bandwidth": "fast"}}, "bandwidth"),
     ({"speculation": {"tokens": 3, "length": 5}}, "1 to 4 tokens per step"),
     ({"preemption": "swap"}, "swap_bytes_per_s")],
)  # fmt: skip
def test_options_that_contradict_are_refused(engine: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, ValueError), match=message):
        study_of(engine=engine)


def test_longest() -> None:
    assert study_of().longest == 1050
