"""Acceptance lengths: the closed form, the fit, the table."""

import csv
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InputError
from ridgeline.serve.levers.acceptance import (
    Acceptance,
    chance_for,
    expected_length,
    fit,
    measured,
    table,
    table_source,
    typical,
)


def test_closed_form_by_hand() -> None:
    assert expected_length(0.8, 3) == pytest.approx(1 + 0.8 + 0.64 + 0.512)
    assert expected_length(0.0, 5) == 1.0
    assert Acceptance(0.8, 0.5).length(3) == pytest.approx(1 + 0.8 + 0.8 * 0.4 + 0.8 * 0.4 * 0.2)


@given(st.floats(0, 0.999), st.integers(0, 40))
def test_the_sum_is_the_closed_form(chance: float, drafted: int) -> None:
    assert expected_length(chance, drafted) == pytest.approx((1 - chance ** (drafted + 1)) / (1 - chance), rel=1e-9)


@given(st.floats(0.01, 0.99), st.integers(1, 20))
def test_chance_for_is_the_inverse(chance: float, drafted: int) -> None:
    found = chance_for(expected_length(chance, drafted), drafted)
    assert found == pytest.approx(chance, abs=1e-6)


def test_no_chance_yields_more_than_all() -> None:
    assert chance_for(4.0, 3) is None
    assert chance_for(0.7, 3) == 0.0


@given(st.floats(0, 0.95), st.floats(0.1, 1.0))
def test_longer_drafts_yield_more_and_at_most_all(first: float, decay: float) -> None:
    lengths = Acceptance(first, decay).length(range(12))
    assert lengths[0] == 1.0
    assert all(before <= after <= count + 1 for count, (before, after) in enumerate(pairwise(lengths), 1))


def test_fit_finds_what_made_the_lengths() -> None:
    found = fit(Acceptance(0.8, 0.95).length(range(1, 9)).tolist())
    assert found.acceptance.first == pytest.approx(0.8, abs=2e-3)
    assert found.acceptance.decay == pytest.approx(0.95, abs=5e-3)
    assert found.worst < 2e-3


def test_every_row_leaving_one_out() -> None:
    """Left-out lengths are predicted within 1% at the median; the geometric law is three times as far off."""
    both = [abs(error) for row in table() for error in fit(row.lengths).errors]
    plain = [abs(error) for row in table() for error in fit(row.lengths, geometric=True).errors]
    assert len(both) == 112
    assert sorted(both)[56] < 0.01
    assert max(both) < 0.11
    assert 0.025 < sorted(plain)[56] < 0.04
    assert max(plain) < 0.2


@pytest.mark.data
def test_the_table_is_the_published_one(data_dir: Path) -> None:
    with (data_dir / "serve" / "spec_accept_length.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    published = sorted(
        (row["mode"], int(row["num_speculative_tokens"]), float(row["acceptance_length"])) for row in rows
    )
    held = sorted((row.mode, k, length) for row in table() for k, length in enumerate(row.lengths, 1))
    assert held == published


def test_a_row_by_name() -> None:
    (row,) = measured("deepseek-v4-pro", "mtp", "thinking_on")
    assert row.lengths[2] == 2.49
    assert "InferenceX" in table_source().title
    assert 2.7 < float(typical().length(3)) < 3.1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Acceptance(1.0), "below 1"),
        (lambda: Acceptance(float("nan")), "share"),
        (lambda: Acceptance(0.5, 1.2), "at most 1"),
        (lambda: Acceptance(0.5).length(-1), "zero drafted tokens"),
        (lambda: chance_for(float("nan"), 2), "finite"),
        (lambda: fit([1.5, 2.0]), "three or more"),
        (lambda: fit([1.5, 0.2, 2.0]), "at least 1"),
        (lambda: measured("kimi-k9"), "kimi-k3"),
        (lambda: measured("kimi-k3", "mtp"), "dspark"),
    ],
)
def test_refusals(call: object, said: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=said):
        call()
