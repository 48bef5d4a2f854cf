"""Small runs for the tests of figures and findings: a linear step table, short workloads."""

from dataclasses import replace
from typing import Any

import numpy as np

from ridgeline.arithmetic.named import find_model
from ridgeline.core.case import InputFile
from ridgeline.core.catalog import device
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.simulate.case import Wanted, simulated
from ridgeline.serve.simulate.costs.table import Curve, Grid, StepTable
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.simulate.facts import Simulated
from ridgeline.serve.simulate.study import ServeSpec, Study, study
from ridgeline.serve.simulate.traffic.workload import Workload

STEP_S, TOKEN_S, SEQUENCE_S = 10e-3, 50e-6, 0.1e-3
PREFILL_S = STEP_S + 1000 * TOKEN_S
DECODE_S = STEP_S + TOKEN_S + SEQUENCE_S
NOTHING = Wanted(highest=False, curve=False)


def table() -> StepTable:
    """10 ms a step, 50 us a token, 0.1 ms a decode: a prompt of 1,000 takes 60 ms."""
    tokens = np.array([0.0, 8192.0])
    zero = np.zeros(1)
    decodes = np.array([0.0, 1024.0])
    attention = Grid((zero, zero, decodes, zero), (SEQUENCE_S * decodes).reshape(1, 1, 2, 1))
    return StepTable(Curve(tokens, TOKEN_S * tokens), Curve(zero, zero), attention, host_step_s=STEP_S)


def engine(**changes: Any) -> Engine:
    """A vLLM-like engine with room for 160,000 tokens."""
    return replace(Engine(kv_blocks=10_000, max_num_batched_tokens=2048, max_num_seqs=64), **changes)


def load(arrival_s: Any, given: int = 1000, made: int = 50, **changes: Any) -> Workload:
    """Requests of one size at those times."""
    times = np.asarray(arrival_s, dtype=np.float64)
    return Workload(times, np.full(len(times), given), np.full(len(times), made), **changes)


def spec_of(**tables: Any) -> ServeSpec:
    """A spec of Llama-3-8B on one H100: 2 requests a second of 1,000 + 50 tokens unless told otherwise."""
    traffic = {"rate": 2.0, "requests": 300, "input": {"p50": 1000}, "output": {"p50": 50}} | tables.pop("traffic", {})
    given = {"kv_blocks": 10_000, "max_num_batched_tokens": 2048, "max_num_seqs": 64} | tables.pop("engine", {})
    return ServeSpec.model_validate({"traffic": traffic, "engine": given, **tables})


def study_of(**tables: Any) -> Study:
    """The study of that spec."""
    model, file = find_model("llama-3-8b")
    return study(spec_of(**tables), Deployment(model, device("H100")), InputFile(file.path, file.sha256, file.size))


def facts_of(wanted: Wanted = NOTHING, **tables: Any) -> Simulated:
    """The run of that spec on the linear table."""
    return simulated(study_of(**tables), table(), wanted)
