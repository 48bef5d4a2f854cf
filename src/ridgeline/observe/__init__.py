"""Observe: an always-on step timer for a training loop, about a microsecond a phase, standard library only.

    from ridgeline.observe import StepTimer

    timer = StepTimer("steps.jsonl", flops_per_step=1.2e18, peak_flops=8 * 989e12)
    for batch in loader:
        with timer.phase("forward"):
            ...
        timer.step(loss=loss)

The file is what ``ridgeline trace`` reads: one JSON object a line with ``step``, ``t``, ``step_s``, ``phases``.
"""

from ridgeline.observe.timer import Phase, StepTimer, timed

__all__ = ["Phase", "StepTimer", "timed"]
