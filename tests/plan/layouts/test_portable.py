"""Plans that other tools can run."""

from dataclasses import replace

import pytest
from tests.plan.search_cases import found, request

from ridgeline.plan.formats._common import formats
from ridgeline.plan.layouts.portable import job_of, portable
from ridgeline.plan.layouts.search import search
from ridgeline.plan.layouts.space import Space


def test_every_format_gets_a_plan_that_it_can_write() -> None:
    result = search(request())
    items = portable(result)
    assert [item.format for item in items] == list(formats())
    for item in items:
        assert item.job is not None, item.reason
        assert formats()[item.format].write(item.job).text
        assert item.step_s >= float(result.steps.step_s[0]) * 0.999


def test_a_format_that_can_run_none_says_why() -> None:
    asked = request(space=Space(fixed={"zero": 1}))
    items = {item.format: item for item in portable(search(asked))}
    assert items["megatron"].job is not None
    assert items["torchtitan"].job is None
    assert "got plan.zero 1" in items["torchtitan"].reason


@pytest.mark.parametrize("row", [0, 3])
def test_a_row_as_a_job(row: int) -> None:
    job = job_of(found(), row)
    plan = found().layouts.row(row)
    assert (job.plan.tp, job.plan.dp, job.plan.recompute) == (plan["tp"], plan["dp"], plan["recompute"])
    assert job.gradients == "fp32"
    assert replace(job, steps=3).plan.chips == 64
