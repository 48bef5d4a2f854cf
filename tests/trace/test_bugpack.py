"""The package of one finding: its numbers, the slice around the worst instance, the HLO."""

import json
from pathlib import Path

import pytest
from tests.trace.kineto_job import write_job

from ridgeline.core.case import Case
from ridgeline.core.errors import InputError
from ridgeline.trace.analyse import analyse
from ridgeline.trace.bugpack import bug_package, worst_instance
from ridgeline.trace.case import trace_case
from ridgeline.trace.facts import TraceFacts

HLO = (
    "HloModule jit_step\n\nENTRY %main (a: f32[2]) -> f32[2] {\n"
    "  %a = f32[2]{0} parameter(0)\n  ROOT %r = f32[2]{0} add(%a, %a)\n}\n"
)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[TraceFacts, Case]:
    """Two ranks with a compiler dump beside them."""
    folder = write_job(tmp_path_factory.mktemp("job"))
    (folder / "step.txt").write_text(HLO)
    facts = analyse(folder)
    return facts, trace_case(facts, command="ridgeline trace job")


def test_what_is_in_it(job: tuple[TraceFacts, Case], tmp_path: Path) -> None:
    place = bug_package(*job, "t401", tmp_path)
    assert place == tmp_path / "bug-t401"
    finding = json.loads((place / "finding.json").read_text())
    assert finding["finding"]["code"] == "T401"
    assert finding["finding"]["cost"]["seconds"] in finding["quantities"]
    assert [file.read_text() for file in (place / "hlo").iterdir()] == [HLO]
    readme = (place / "README.md").read_text()
    assert "2.00 ms per step" in readme
    assert "`ridgeline trace job`" in readme
    part = json.loads((place / "slice.json").read_text())
    whole = sum(len(rank) for rank in job[0].run or ())
    assert 0 < sum(event.get("cat") == "kernel" for event in part["traceEvents"]) < whole / 10


def test_the_worst_instance_is_the_longest_event_that_is_named(job: tuple[TraceFacts, Case]) -> None:
    facts = job[0]
    part, where = worst_instance(facts, "the kernel sm90_gemm_bf16 is slow")
    assert where == "the longest `sm90_gemm_bf16`"
    assert part.high - part.low == 7_000_000 + 2_000_000
    part, where = worst_instance(facts, "nothing that is in the trace")
    assert where.startswith("step ")
    assert part.high - part.low == pytest.approx(10_000_000, rel=0.3)
    assert worst_instance(TraceFacts(), "anything")[1] == "no trace"


def test_a_code_that_has_not_run(job: tuple[TraceFacts, Case], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a finding of this run, got 'T301'"):
        bug_package(*job, "T301", tmp_path)
