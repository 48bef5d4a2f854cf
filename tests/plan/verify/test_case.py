"""The case: verdicts and tables of one comparison."""

from dataclasses import replace

import pytest

from ridgeline.plan.job import Plan
from ridgeline.plan.verify.case import verify_case
from ridgeline.plan.verify.compare import Comparison, compare
from ridgeline.plan.verify.compiled import Program


@pytest.mark.slow
def test_every_term_is_a_row(comparisons: dict[str, Comparison]) -> None:
    facts = comparisons["FSDP+TP+SP"]
    case = verify_case(facts)
    assert [finding.verdict for finding in case.findings] == ["pass"] * 3
    assert len(case.tables["verify.collectives"].rows) == len(facts.collectives)
    assert len(case.tables["verify.named"].rows) == 3
    assert "is the plan's" in case.decision
    assert case.to_json()["decision"]


@pytest.mark.slow
def test_a_refuted_plan_fails(programs: dict[str, Program]) -> None:
    program = programs["ZeRO-1"]
    case = verify_case(compare(replace(program, twin=replace(program.twin, plan=Plan.of(dp=2)))))
    failed = {finding.code: finding for finding in case.findings if finding.verdict == "fail"}
    assert list(failed) == ["P301"]
    assert "gradients (all_reduce)" in failed["P301"].sentence
    assert "is not the plan's" in case.decision
    remarks = [row[-1] for row in case.tables["verify.collectives"].rows]
    assert "in the program as reduce_scatter over shard" in remarks


@pytest.mark.slow
def test_a_layer_that_stays_whole_warns(comparisons: dict[str, Comparison]) -> None:
    facts = comparisons["DP"]
    heavy = replace(facts.program, memory={**facts.program.memory, "temporary": int(3 * facts.temporary_bytes)})
    (finding,) = [f for f in verify_case(replace(facts, program=heavy)).findings if f.code == "P303"]
    assert finding.verdict == "warn"
