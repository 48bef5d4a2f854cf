"""Four recorded runs of vLLM 0.19, 300 requests each, against the simulation from kernel profiles.

The constants are those of ``core/data/profiled.toml``, fitted on these very runs (benchmarks/real_vllm.py fits them and
says what is left when a run is left out): these tests hold the engine, the step table and the constants together.
"""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.real_vllm import BARS, RUNS, Case, Run

from ridgeline.serve.simulate.costs.profile import Overheads

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> dict[str, Case]:
    return {run.name: Case(run, data_dir) for run in RUNS}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_means_are_within_what_was_asked_for(run: Run, cases: dict[str, Case]) -> None:
    case = cases[run.name]
    result = case.simulate(Overheads.fitted(run.slug))
    errors = case.errors(result)
    for name, bar in BARS.items():
        assert abs(errors[name]) < bar, (name, errors)
    assert abs(errors["tpot_p99"]) < 0.03
    assert abs(errors["ttft_p99"]) < 0.05
    assert errors["tpot_mape"] < 0.025
    assert result.served.all()
    assert np.array_equal(result.emitted, result.workload.output_tokens)


def test_the_run_that_is_bound_by_memory_preempts_about_as_often(cases: dict[str, Case]) -> None:
    case = cases[RUNS[0].name]
    found = case.scheduling(case.simulate(Overheads.fitted(RUNS[0].slug)))
    assert found["preemptions"] == pytest.approx(189, rel=0.05)  # of 300 requests, as the recording counted
    assert found["places_off_max"] == 0
    assert abs(found["makespan_error"]) < 0.02


def test_without_a_prefix_cache_the_same_run_is_too_slow(cases: dict[str, Case]) -> None:
    case = cases[RUNS[0].name]
    table = Overheads.fitted(RUNS[0].slug)
    cached = case.errors(case.simulate(table))["ttft"]
    case.engine, kept = case.without_cache(), case.engine
    plain = case.errors(case.simulate(table))["ttft"]
    case.engine = kept
    assert plain > cached + 0.02
