"""``ridgeline plan verify``."""

from typing import Any

import pytest

from ridgeline.plan.job import Plan
from ridgeline.plan.verify.case import spelled


@pytest.mark.slow
def test_a_plan_that_holds(ridgeline: Any) -> None:
    pytest.importorskip("jax", reason="needs JAX (the `lab` extra)")
    done = ridgeline("plan", "verify", "--plan", "dp=2,ep=2", "--json")
    assert done.code == 0
    case = done.json
    assert {finding["code"]: finding["verdict"] for finding in case["findings"]} == dict.fromkeys(
        ("P301", "P302", "P303"), "pass"
    )
    rows = case["tables"]["verify.collectives"]["rows"]
    assert ["expert tokens", "all-to-all", "ep", 8, 0, 8] in [row[:6] for row in rows]
    assert case["command"] == "ridgeline plan verify --plan dp=2,ep=2"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--plan", "dp=2,pp=2"), "pp=1"),
        (("--plan", "dp=2,tq=2"), "did you mean"),
        (("--plan", "dp"), "a plan such as"),
        (("--plan", "dp=2", "--micro-batches", "0"), "at least 1"),
        (("--plan", "dp=2", "--model", "llama-9"), "a known model"),
        (("--plan", "dp=0"), "at least 1"),
        (("--plan", "dp=128"), "at most 64 virtual devices"),
    ],
)
def test_what_it_refuses(ridgeline: Any, options: tuple[str, ...], part: str) -> None:
    done = ridgeline("plan", "verify", *options)
    assert done.code == 2
    assert part in done.err


def test_plans_are_spelled_without_their_defaults() -> None:
    assert spelled(Plan.of()) == "one device"
    assert spelled(Plan.of(dp=4, zero=3)) == "dp=4,zero=3"
    assert spelled(Plan.of(dp=4, zero=3, shard=2, recompute="full")) == "dp=4,zero=3,shard=2,recompute=full"
