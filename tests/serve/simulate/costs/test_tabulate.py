"""A step table says what the step model says, at its nodes and between them."""

from typing import Any

import numpy as np
import pytest

from ridgeline.arithmetic.named import find_model
from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.simulate.costs.table import Shape, StepTable
from ridgeline.serve.simulate.costs.tabulate import tabulate
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.steps.step import StepModel, steps

ENGINE = Engine(kv_blocks=10_000, max_num_batched_tokens=4096, max_num_seqs=128)


def made(model: str = "llama-3-8b", **sizes: Any) -> tuple[StepModel, StepTable]:
    spec, _ = find_model(model)
    found = steps(Deployment(spec, device("H100"), **sizes))
    return found, tabulate(found, ENGINE, 8192)


def shape(chunk: int = 0, past: int = 0, decodes: int = 0, context: int = 0) -> Shape:
    prompts = int(chunk > 0)
    return Shape(
        tokens=chunk + decodes, sequences=prompts + decodes, samples=prompts + decodes, prompt_tokens=chunk,
        prompt_work=chunk * (past + chunk / 2), decodes=decodes, decode_sum=decodes * context, decode_max=context,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "sizes"), [("llama-3-8b", {}), ("llama-3-70b", {"tp": 8}), ("mixtral-8x7b", {"tp": 2})]
)
def test_decode_steps(model: str, sizes: dict[str, int]) -> None:
    steps_, found = made(model, **sizes)
    for batch in (1, 3, 16, 50, 128):
        for context in (100, 1000, 3000, 8000):
            expected = float(steps_.decode(batch, context).seconds[0])
            assert found.seconds(shape(decodes=batch, context=context)) == pytest.approx(expected, rel=0.04)


def test_prompt_steps() -> None:
    steps_, found = made()
    for chunk in (32, 200, 1000, 4096):
        for past in (0, 300, 4000):
            expected = float(steps_.prefill(chunk, past).seconds[0])
            assert found.seconds(shape(chunk, past)) == pytest.approx(expected, rel=0.06)


def test_mixed_steps() -> None:
    steps_, found = made()
    for chunk, past, batch, context in ((64, 0, 4, 500), (1024, 2048, 64, 2000), (300, 1000, 100, 5000)):
        expected = float(steps_.mixed(chunk, past, batch, context).seconds[0])
        assert found.seconds(shape(chunk, past, batch, context)) == pytest.approx(expected, rel=0.06)


def test_a_step_never_gets_shorter_with_more_work() -> None:
    _, found = made()
    by_batch = [found.seconds(shape(decodes=b, context=2000)) for b in range(1, 129)]
    by_context = [found.seconds(shape(decodes=64, context=c)) for c in range(64, 8192, 64)]
    assert (np.diff(by_batch) >= -1e-9).all()
    assert (np.diff(by_context) >= -1e-9).all()


def test_a_pipeline_is_refused() -> None:
    with pytest.raises(InputError, match="Expected one pipeline stage, got 2"):
        made("llama-3-70b", tp=4, pp=2)
