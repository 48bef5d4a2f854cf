"""Eviction in results: the window is found, the pattern named, and distance alone is no eviction."""

from pathlib import Path

import numpy as np
import pytest
from tests.gate.canary.simulated import Found, at_rate, canary, run

from ridgeline.gate.canary.eviction import BEYOND, COLLAPSE, Asked, audit, by_distance, sharpest, windows
from ridgeline.gate.canary.generate import Recipe
from ridgeline.gate.canary.results import FOUND, column, read_run
from ridgeline.gate.canary.sets import CanarySet

ALPHA = 0.05


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> CanarySet:
    return canary(tmp_path_factory.mktemp("set"), Recipe((1000, 4000), 40, 10))[0]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> CanarySet:
    """Six needles a context, as the probe of the public thread has them."""
    return canary(tmp_path_factory.mktemp("long"), Recipe((1000, 8000), 40, 6))[0]


def asked(held: CanarySet, found: Found, folder: Path, seed: int = 0) -> Asked:
    samples = read_run(run(held, folder / f"{seed}.jsonl", found, seed)).samples
    return Asked(
        samples.scores[FOUND], column(samples, "position"), column(samples, "length"), samples.labels["context"]
    )


def test_a_sliding_window_is_found_where_it_is(held: CanarySet, tmp_path: Path) -> None:
    window = 2048
    found = audit(
        asked(held, lambda c, n, r: bool(r.random() < 0.95) and c.length - n.position <= window, tmp_path), ALPHA
    )
    best = sharpest(found)
    assert best is not None
    assert (best.pattern, best.tokens) == (BEYOND, window)
    assert best.fell == 0.0
    assert best.held > 0.9
    assert best.p < 1e-5
    assert not best.spares_start
    assert best.where == "0% to 50% of the prompt"


def test_a_window_that_a_configuration_names_is_tried(held: CanarySet, tmp_path: Path) -> None:
    window = 2750
    run_ = asked(held, lambda c, n, r: c.length - n.position <= window, tmp_path)
    best = sharpest(audit(run_, ALPHA, extra=(window,)))
    assert best is not None
    assert best.tokens == window
    assert window not in windows(run_)


def test_collapse_when_eviction_begins_though_the_needle_is_kept(held: CanarySet, tmp_path: Path) -> None:
    """The public report: accuracy .90 falls to .00 as soon as the prompt is longer than the cache."""
    window = 2048
    found = audit(asked(held, lambda c, n, r: bool(r.random() < 0.9) and c.length <= window, tmp_path), ALPHA)
    best = sharpest(found)
    assert best is not None
    assert best.pattern == COLLAPSE
    assert best.held == pytest.approx(0.9, abs=0.05)
    assert best.fell == 0.0
    assert 1000 < best.tokens < 4000


def test_the_middle_is_lost_while_both_ends_pass(long: CanarySet, tmp_path: Path) -> None:
    """The public report: six needles, those at 25% to 72% of long prompts lost, start and end found."""
    middle = asked(long, lambda c, n, r: not (c.length > 4096 and 0.25 <= n.depth <= 0.72), tmp_path)
    best = sharpest(audit(middle, ALPHA))
    assert best is not None
    assert best.pattern == BEYOND
    assert best.spares_start
    assert best.where in ("20% to 70% of the prompt", "20% to 80% of the prompt", "30% to 70% of the prompt")


@pytest.mark.parametrize("rate", [0.99, 0.8, 0.5, 0.2])
def test_equal_hits_are_no_eviction(rate: float, held: CanarySet, tmp_path: Path) -> None:
    assert sharpest(audit(asked(held, at_rate(rate), tmp_path, 3), ALPHA)) is None


def test_what_distance_alone_costs_cancels_beside_the_baseline(held: CanarySet, tmp_path: Path) -> None:
    slope: Found = lambda c, n, r: bool(r.random() < 1 - 0.8 * (c.length - n.position) / 4000)  # noqa: E731
    base, cand = asked(held, slope, tmp_path, 1), asked(held, slope, tmp_path, 1)
    assert sharpest(audit(cand, ALPHA)) is not None
    assert sharpest(audit(cand, ALPHA, reference=base.hits)) is None


def test_a_paired_audit_sees_the_window(held: CanarySet, tmp_path: Path) -> None:
    base = asked(held, at_rate(0.95), tmp_path, 1)
    cand = asked(held, lambda c, n, r: bool(r.random() < 0.95) and c.length - n.position <= 1024, tmp_path, 2)
    best = sharpest(audit(cand, ALPHA, reference=base.hits))
    assert best is not None
    assert (best.pattern, best.tokens) == (BEYOND, 1024)


def test_false_alarms_are_rare() -> None:
    """A hundred runs without eviction, needles of a context alike: Holm keeps any alarm under alpha."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(100):
        length = np.repeat(np.where(np.arange(40) % 2, 4000.0, 1000.0), 8)
        contexts = np.repeat(np.arange(40).astype(str), 8).astype(object)
        position = rng.random(320) * length
        rate = np.clip(np.repeat(rng.normal(0.8, 0.15, 40), 8), 0, 1)
        hits = (rng.random(320) < rate).astype(np.float64)
        alarms += sharpest(audit(Asked(hits, position, length, contexts), ALPHA)) is not None
    assert alarms <= 9  # 5% and two standard errors


def test_too_few_contexts_are_not_tried() -> None:
    contexts = np.array([f"c{i}" for i in range(9)], dtype=object)
    few = Asked(np.ones(9), np.linspace(0, 3000, 9), np.full(9, 4000.0), contexts)
    assert audit(few, ALPHA) == []
    assert sharpest([]) is None


def test_hits_by_distance() -> None:
    contexts = np.array(list("abcd"), dtype=object)
    run_ = Asked(np.array([1.0, 0.0, 1.0, 0.0]), np.array([900.0, 0, 400, 0]), np.full(4, 1000.0), contexts)
    assert by_distance(run_) == [(256, 1.0, 1), (1024, 1 / 3, 3)]
