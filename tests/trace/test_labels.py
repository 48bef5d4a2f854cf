"""What a finding costs is called by what is lost: the titles of rules say what holds where nothing is."""

import re
from pathlib import Path

import pytest
from tests.trace.kineto_job import write_job

from ridgeline.core.finding import Finding
from ridgeline.core.plugins import rules
from ridgeline.trace.analyse import analyse
from ridgeline.trace.case import judged
from ridgeline.trace.drills.generate import drill
from ridgeline.trace.drills.render import write
from ridgeline.trace.levels.l2_losses import LABELS


def misnamed(findings: list[Finding]) -> list[tuple[str, str]]:
    """Costs without a label, or with the title of their rule for one."""
    costs = [(finding, finding.cost.seconds) for finding in findings if finding.cost.seconds is not None]
    return [(f.code, q.label) for f, q in costs if not q.label or q.label == f.title]


@pytest.mark.parametrize("seed", [9000, 9003])
def test_costs_of_drills(seed: int, tmp_path: Path) -> None:
    findings = judged(analyse(write(drill(seed), tmp_path / "drill")))[1]
    assert any(finding.cost.seconds is not None for finding in findings)
    assert misnamed(findings) == []


def test_causes_of_a_job(tmp_path: Path) -> None:
    facts, findings, _ = judged(analyse(write_job(tmp_path / "job")))
    assert misnamed(findings) == []
    assert facts.bridge is not None
    assert {bar.cause.name for bar in facts.bridge.bars} & {rule.title for rule in rules().values()} == set()


def test_every_loss_of_an_operation_has_a_label() -> None:
    places = Path(__file__).parents[2] / "src" / "ridgeline" / "trace" / "rules"
    text = "".join(file.read_text() for file in sorted(places.glob("t20*.py")))
    used = re.findall(r'judged\(facts, this, "(\w+)"', text) + re.findall(r'shares\(ops, "(\w+)"', text)
    assert sorted(used) == sorted(LABELS)
    assert not set(LABELS.values()) & {rule.title for rule in rules().values()}


def test_buckets_are_called_by_what_is_lost(tmp_path: Path) -> None:
    findings = judged(analyse(write(drill(3, ["input"]), tmp_path / "drill")))[1]
    labels = {finding.code: finding.value.label for finding in findings if finding.value is not None}
    assert labels["T101"] == "Waiting for input per step, share of the step"
    assert labels["T102"] == "Kernel launches, framework and Python per step, share of the step"
