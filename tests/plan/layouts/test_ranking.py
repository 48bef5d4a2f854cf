"""Ranked plans, with intervals of published runs."""

import pytest
from tests.plan.search_cases import found

from ridgeline.plan.layouts.ranking import ranking
from ridgeline.plan.steps import expected
from ridgeline.plan.steps.expected import Residuals


def spread(low: float, high: float) -> Residuals:
    return Residuals("test", 10, {0.8: low, 0.95: low}, {0.8: high, 0.95: high})


def test_one_row_a_mesh_fastest_first() -> None:
    made = ranking(found(), top=6, finalists=2)
    meshes = [tuple(item.plan[name] for name in ("tp", "cp", "pp", "dp", "ep")) for item in made.ranked]
    assert len(set(meshes)) == len(meshes) == 6
    assert made.best.verdict == "fastest"
    assert [item.exact is not None for item in made.ranked] == [True, True, False, False, False, False]
    assert all(item.low_s < item.step_s < item.high_s for item in made.ranked)


def test_overlap_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "residuals", lambda spec, site="": spread(-1e-6, 1e-6))
    sharp = ranking(found(), finalists=0)
    assert sharp.alike == 0
    assert sharp.simplest is sharp.best
    monkeypatch.setattr(expected, "residuals", lambda spec, site="": spread(-5.0, 5.0))
    vague = ranking(found(), finalists=0)
    assert vague.alike == len(vague.ranked) - 1
    assert vague.simplest.knobs == min(item.knobs for item in vague.ranked)


def test_mfu_and_free_memory() -> None:
    best = ranking(found(), finalists=0).best
    assert 0.1 < best.mfu < 0.8
    assert best.free_bytes == pytest.approx(80e9 * float(found().headroom[0]))
