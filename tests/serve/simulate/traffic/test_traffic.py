"""Traffic as people describe it, and what contradicts itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.simulate.formats import FORMATS, ROWS, write

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.serve.simulate.traffic.arrivals import rate_of
from ridgeline.serve.simulate.traffic.traffic import Limits, Made, Traffic, make, slos_of

LENGTHS: dict[str, Any] = {"input": {"p50": "1k"}, "output": {"p50": 256}}


def made(folder: Path | None = None, **fields: Any) -> Made:
    return make(build(Traffic, fields), folder)


def test_a_rate_and_lengths() -> None:
    found = made(rate=5, requests=2000, **LENGTHS)
    load = found.workload
    assert set(load.input_tokens.tolist()) == {1024}
    assert set(load.output_tokens.tolist()) == {256}
    assert rate_of(load.arrival_s) == pytest.approx(5, rel=0.06)
    assert found.arrivals == "Poisson, 5 requests/s"


def test_the_seed_decides() -> None:
    first, again, other = (made(rate=5, requests=50, seed=seed, **LENGTHS).workload for seed in (1, 1, 2))
    assert np.array_equal(first.arrival_s, again.arrival_s)
    assert not np.array_equal(first.arrival_s, other.arrival_s)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"arrivals": "gamma", "cv": 3}, "Gamma, 5 requests/s, gaps with a CV of 3"),
     ({"arrivals": "bursts"}, "on-off, 5 requests/s, 10 times the rate while on")],
)  # fmt: skip
def test_other_processes(fields: dict[str, Any], words: str) -> None:
    assert made(rate=5, requests=10, **fields, **LENGTHS).arrivals == words


def test_a_trace_as_it_is_and_at_a_rate(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", FORMATS["CSV"])
    plain, faster = made(tmp_path, trace="t.csv"), made(tmp_path, trace="t.csv", rate=15)
    assert plain.workload.arrival_s.tolist() == [t for t, _, _ in ROWS]
    assert faster.workload.arrival_s.tolist() == pytest.approx([t / 20 for t, _, _ in ROWS])
    assert faster.workload.input_tokens.tolist() == [i for _, i, _ in ROWS]
    assert "20 times as fast" in faster.arrivals


def test_block_hashes_come_along(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", FORMATS["Mooncake"])
    load = made(tmp_path, trace="t.jsonl", repeat=2).workload
    assert load.hash_tokens == 512
    assert load.hashes.tolist() == [0, 1, 0, 1, 2, 3, 0, 1, 4, 5] * 2
    assert len(load) == 2 * len(ROWS)


def test_lengths_of_a_trace_with_arrivals_of_a_process(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "num_prefill_tokens,num_decode_tokens\n10,5\n20,6\n")
    load = made(tmp_path, trace="t.csv", rate=1, requests=5).workload
    assert load.input_tokens.tolist() == [10, 20, 10, 20, 10]
    with pytest.raises(InputError, match="Expected requests per second, got 'none'"):
        made(tmp_path, trace="t.csv")


def test_a_closed_loop() -> None:
    found = made(concurrency=8, requests=20, think="2s", **LENGTHS)
    assert (found.workload.concurrency, found.workload.think_s) == (8, 2.0)
    assert found.arrivals == "a closed loop of 8 clients that think for 2 s"


def test_classes() -> None:
    classes = [{"name": "chat", "share": 0.75, "ttft": "1s"}, {"name": "batch", "share": 0.25, "priority": 5}]
    traffic = build(Traffic, {"rate": 5, "requests": 4000, "classes": classes, **LENGTHS})
    load = make(traffic).workload
    assert load.classes == ("chat", "batch")
    assert (load.service == 1).mean() == pytest.approx(0.25, abs=0.03)
    assert set(load.priority[load.service == 1].tolist()) == {5}
    slos = slos_of(traffic, Limits(tpot=0.05))
    assert {name: (slo.ttft_s, slo.tpot_s) for name, slo in slos.items()} == {
        "chat": (1.0, np.inf), "": (np.inf, 0.05),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "a trace, or lengths of prompts and answers"),
        (LENGTHS, "requests per second, or clients"),
        ({**LENGTHS, "rate": 5, "concurrency": 8}, "a rate or a number of clients, got 'both'"),
        ({**LENGTHS, "concurrency": 8, "arrivals": "poisson"}, "no arrival process"),
        ({**LENGTHS, "rate": 5, "arrivals": "trace"}, "Expected a trace"),
        ({**LENGTHS, "rate": float("nan")}, r"\$\.rate"),
        ({**LENGTHS, "rate": -1}, r"\$\.rate"),
        ({**LENGTHS, "rate": 5, "requests": 0}, r"\$\.requests"),
        ({**LENGTHS, "rate": 5, "speed": 2}, "a known field"),
        ({"input": {"p50": 100, "p99": 50}, "output": {"p50": 5}, "rate": 5}, "at least the median"),
        ({**LENGTHS, "rate": 5, "classes": [{"name": "a", "share": 0.4}]}, "shares that add up to 1"),
        ({**LENGTHS, "rate": 5, "classes": [{"name": "a", "share": 1.5}]}, "share"),
        ({**LENGTHS, "rate": 5, "classes": [{"name": "a", "share": 0.5}] * 2}, "different names"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(**fields)


def test_more_requests_than_the_trace_has(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", FORMATS["CSV"])
    with pytest.raises(InputError, match="at most the 4 requests of the trace, got 9"):
        made(tmp_path, trace="t.csv", requests=9)


def test_all_at_once_cannot_be_given_a_rate(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "arrival_s,input_tokens,output_tokens\n0,1,1\n0,2,2\n")
    with pytest.raises(InputError, match="arrivals at different times"):
        made(tmp_path, trace="t.csv", rate=3)
