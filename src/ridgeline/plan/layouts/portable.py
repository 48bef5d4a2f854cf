"""Which plans other tools can run: for each format of `formats`, the fastest plan of a search that it can express."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.formats._common import Format, formats
from ridgeline.plan.job import Job
from ridgeline.plan.layouts.search import Found, explore

_TRIED = 150  # plans of a search that are offered to a format
_STAGES = (2, 3)  # ZeRO stages that some tools need and the fastest plans may not have


@dataclass(frozen=True)
class Portable:
    """A format, and the fastest plan that it can express; ``job`` None: none, for ``reason``."""

    format: str
    title: str
    job: Job | None
    step_s: float
    reason: str = ""


def portable(found: Found) -> tuple[Portable, ...]:
    """Every known format. The step times are those of the search, in the framework that it was asked for."""
    pools = [found, *_more(found)]
    return tuple(_first(form, pools) for form in formats().values())


def job_of(found: Found, row: int) -> Job:
    """One plan of a search as a job. Raises as `Job.of`."""
    request = found.request
    types = {"dtype": request.software.dtype, "gradients": request.software.gradients}
    plan, (sequences, seq) = found.layouts.row(row), request.batch
    return Job.of(request.spec, request.cluster, plan, sequences, seq, **types)


def _more(found: Found) -> Iterator[Found]:
    request = found.request
    if "zero" in request.space.fixed:
        return
    for stage in _STAGES:
        more, _ = explore(replace(request, space=replace(request.space, zero=(stage,))))
        if more is not None:
            yield more


def _first(form: Format, pools: list[Found]) -> Portable:
    best, reason = Portable(form.name, form.title, None, float("inf")), ""
    for pool in pools:
        for row in range(min(len(pool), _TRIED)):
            step_s = float(pool.steps.step_s[row])
            if step_s >= best.step_s:
                break
            try:
                job = job_of(pool, row)
                form.write(job)
            except (InfeasibleError, InputError) as error:
                reason = reason or error.message.partition("\n")[0]
                continue
            best = Portable(form.name, form.title, job, step_s)
            break
    return best if best.job is not None else replace(best, reason=reason)
