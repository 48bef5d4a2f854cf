"""Two runs, paired by what an example is."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.pairing import pair, take
from ridgeline.gate.evidence.samples import Samples, lower_is_better


def run(scores: Sequence[float | None], *, name: str = "run", keys: list[str] | None = None, **more: Any) -> Samples:
    """A run of one metric ``acc``; a None score is NaN."""
    column = np.array([math.nan if value is None else value for value in scores])
    told = np.array(keys or [f"k{n}" for n in range(len(scores))], dtype=object)
    return Samples(name, told, {"acc": column}, np.zeros(len(scores), dtype=np.bool_), **more)


def texts(*values: str) -> Any:
    return np.array(values, dtype=object)


def test_duplicate_ids_are_refused_with_the_first() -> None:
    with pytest.raises(InputError, match="one row an example") as caught:
        pair(run([1, 0, 1], keys=["a", "b", "a"]), run([1, 0], keys=["a", "b"]))
    assert "'a'" in str(caught.value)


@given(st.permutations(range(12)), st.lists(st.sampled_from([0.0, 1.0]), min_size=12, max_size=12))
def test_shuffled_order_gives_the_same_pairs_as_aligned(order: list[int], scores: list[float]) -> None:
    base, cand = run(list(range(12))), run(list(scores))
    aligned, shuffled = pair(base, cand), pair(base, take(cand, np.array(order)))
    for one, other in zip(aligned.scores("acc"), shuffled.scores("acc"), strict=True):
        assert np.array_equal(one, other)


def test_missing_halves_are_listed() -> None:
    pairs = pair(run([1, 0, 1], keys=["a", "b", "c"]), run([0, 1], keys=["c", "d"]))
    assert len(pairs) == 1
    assert pairs.only_baseline == ("a", "b")
    assert pairs.only_candidate == ("d",)
    assert pairs.unmatched == 3
    assert pairs.alone[0].scores["acc"].tolist() == [1.0, 0.0]


def test_runs_that_share_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="same examples"):
        pair(run([1], keys=["a"]), run([1], keys=["b"]))
    other = replace(run([1]), scores={"f1": np.ones(1)})
    with pytest.raises(InputError, match="metric in both runs"):
        pair(run([1]), other)


def test_prompts_that_differ_between_runs_are_counted() -> None:
    base, cand = run([1, 0], prompts=texts("p", "q")), run([1, 0], prompts=texts("p", "r"))
    assert pair(base, cand).prompts_differ == 1
    assert pair(base, run([1, 0])).prompts_differ is None


def test_cached_identical_outputs_are_seen() -> None:
    """Issue 4063: a response cache that is not keyed by the model gives the candidate the baseline's outputs."""
    base = run([1, 0], outputs=texts("x", "y"))
    assert pair(base, run([1, 0], outputs=texts("x", "y"))).identical is True
    assert pair(base, run([1, 0], outputs=texts("x", "z"))).identical is False
    real = run([0.123, 4.5])
    assert pair(real, run([0.123, 4.5])).identical is True
    assert pair(real, run([0.123, 4.6])).identical is False


def test_equal_zeros_and_ones_tell_nothing() -> None:
    assert pair(run([1, 0]), run([1, 0])).identical is None


def test_failed_rows_stay_in_the_denominator_as_wrong() -> None:
    base = replace(run([1, None]), errors=np.array([False, True]))
    left, right, kept = pair(base, run([1, 1])).scores("acc")
    assert (left.tolist(), right.tolist(), kept.tolist()) == ([1.0, 0.0], [1.0, 1.0], [True, True])


def test_a_failed_row_of_an_error_rate_counts_as_an_error() -> None:
    base = replace(run([0, None]), errors=np.array([False, True]))
    base, cand = (replace(r, scores={"error": r.scores["acc"]}) for r in (base, run([0, 0])))
    left, right, _ = pair(base, cand).scores("error")
    assert left.tolist() == [0.0, -1.0]
    assert right.tolist() == [0.0, 0.0]


def test_failed_rows_of_a_real_valued_metric_have_no_value() -> None:
    base = replace(run([0.3, None]), errors=np.array([False, True]))
    pairs = pair(base, run([0.3, 0.4]))
    with pytest.raises(InputError, match="failed in either run"):
        pairs.scores("acc")
    assert pairs.scores("acc", "drop")[2].tolist() == [True, False]


def test_a_score_that_is_missing_without_an_error_is_refused() -> None:
    with pytest.raises(InputError, match="acc in every row"):
        pair(run([1, None]), run([1, 1])).scores("acc")


def test_an_unknown_metric_gives_those_there_are() -> None:
    with pytest.raises(InputError, match="metric of both runs"):
        pair(run([1]), run([1])).scores("accuracy")


def test_settings_of_one_task_stand_beside_those_of_all() -> None:
    base = run([1], settings={"limit": "none", "model": "a"})
    cand = run([1], settings={"limit of x": "none", "limit of y": "10", "model": "b"})
    assert [item.name for item in pair(base, cand).differences] == ["limit of y"]


@pytest.mark.parametrize("name", ["log_loss", "word_perplexity", "brier", "bits_per_byte", "kld", "error_rate", "wer"])
def test_less_is_better(name: str) -> None:
    assert lower_is_better(name)


@pytest.mark.parametrize("name", ["acc", "exact_match", "reward", "f1", "lossless", "winner"])
def test_more_is_better(name: str) -> None:
    assert not lower_is_better(name)


def test_the_direction_that_a_log_says_beats_the_name() -> None:
    base, cand = (replace(run(scores), directions={"acc": False}) for scores in ([0.2, 0.3], [0.4, 0.3]))
    left, right, _ = pair(base, cand).scores("acc")
    assert (right - left).tolist() == pytest.approx([-0.2, 0.0])


def test_runs_that_disagree_on_the_direction_are_refused() -> None:
    with pytest.raises(InputError, match="one direction"):
        pair(run([0.2]), replace(run([0.3]), directions={"acc": False})).scores("acc")
