"""Every rule that a drill can plant: it fires with it, at the right cost, and is silent without it.

A sample of random drills beside them; `benchmarks/drills.py` grades two hundred.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.trace.drills.attempt import attempt
from ridgeline.trace.drills.generate import Drill, drill
from ridgeline.trace.drills.grade import Grade, grade, read_truth
from ridgeline.trace.drills.job import job_of
from ridgeline.trace.drills.pathologies import CATALOGUE
from ridgeline.trace.drills.render import write

SEED = 5001
SAMPLE = range(9000, 9012)


def graded(made: Drill, folder: Path) -> Grade:
    """The tool's grade, through the files."""
    path = write(made, folder / "drill")
    return grade(read_truth(path), attempt(path))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_planted_cause_is_found_alone(name: str, tmp_path: Path) -> None:
    job = job_of(SEED)
    found = graded(drill(SEED, [name], job=job), tmp_path)
    assert found.right, found


@pytest.mark.parametrize("seed", range(5101, 5107))
def test_a_healthy_run_has_no_cause(seed: int, tmp_path: Path) -> None:
    assert graded(drill(seed, []), tmp_path).false == ()


def test_random_drills(tmp_path: Path) -> None:
    grades = [graded(drill(seed), tmp_path / str(seed)) for seed in SAMPLE]
    causes = [cause for found in grades for cause in found.causes]
    answers = sum(found.found + len(found.false) for found in grades)
    assert sum(found.found for found in grades) >= 0.95 * len(causes)
    assert sum(len(found.false) for found in grades) <= 0.03 * answers
    assert sum(cause.close for cause in causes) >= 0.95 * len(causes)


def test_weights_that_are_a_multiple_of_the_vocabulary_are_no_logits(tmp_path: Path) -> None:
    job = replace(job_of(1), vocab=8192, d_model=4096, d_ff=14336)
    assert job.unit_params(1) % job.vocab == 0
    assert graded(drill(1, ["no_prefetch"], job=job), tmp_path).right
