"""The padding gate: utilisation against the tolerated waste, and what it says beside."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.arithmetic.named import named
from ridgeline.core.errors import InputError
from ridgeline.gate.case import Decided, case_of
from ridgeline.gate.decision import Outcome
from ridgeline.gate.gates.padding import Setting, decide
from ridgeline.gate.padding.lengths import Lengths
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.slices import LOWEST

LLAMA, _ = named("llama-3-8b")


def decided(lengths: Any, setting: Setting | None = None, **keys: Any) -> Decided:
    plan = Plan(gate="padding", **{name: keys.pop(name) for name in ("margin", "slice_margin") if name in keys})
    found = replace(Lengths(np.asarray(lengths, dtype=np.int64)), **keys)
    return decide(found, setting or Setting(1024), plan)


def figure(found: Decided, name: str) -> float:
    return float(case_of(found).find(name).base)


def test_both_names_of_the_ratio() -> None:
    found = decided([512, 256, 1024, 0])
    assert figure(found, "gate.padding.utilisation") == pytest.approx(1792 / 4096)
    assert figure(found, "gate.padding.padding_ratio") == pytest.approx(1 - 1792 / 4096)


def test_below_six_tenths_up_to_half_of_attention_is_on_zeros() -> None:
    """Worked number I: half the sequences full, half at a sixth of the length: utilisation 0.59, attention 0.48."""
    found = decided([1024] * 50 + [184] * 50, Setting(1024, model=LLAMA))
    assert figure(found, "gate.padding.utilisation") == pytest.approx(0.59, abs=0.01)
    assert figure(found, "gate.padding.attention_on_zeros") == pytest.approx(0.48, abs=0.01)
    assert figure(found, "gate.padding.on_zeros.mlp") == pytest.approx(0.41, abs=0.01)


@given(st.lists(st.integers(1, 256), min_size=1, max_size=30))
def test_attention_wastes_at_least_what_the_slots_do(lengths: list[int]) -> None:
    """Between 1 - u, with full and empty sequences, and 1 - u^2, with all of one length (but for the diagonal)."""
    found = decided(lengths, Setting(256, model=LLAMA))
    use, waste = figure(found, "gate.padding.utilisation"), figure(found, "gate.padding.attention_on_zeros")
    assert 1 - use - 1e-12 <= waste <= 1 - use**2 + 1e-12


def test_outcomes() -> None:
    rng = np.random.default_rng(1)
    assert decided(rng.integers(800, 1024, 200)).outcome is Outcome.SHIP
    assert decided(rng.integers(100, 500, 200)).outcome is Outcome.NO_SHIP
    few = decided(rng.integers(100, 1024, 12))
    assert few.outcome is Outcome.INCONCLUSIVE
    assert few.checks[0].needed is not None
    assert few.checks[0].needed > 0


def test_every_slot_full_is_as_sure_as_there_are_sequences() -> None:
    few, many = decided([1024] * 3), decided([1024] * 60)
    assert few.checks[0].interval.low == pytest.approx(0.05 ** (1 / 3))
    assert few.outcome is Outcome.INCONCLUSIVE
    assert (many.checks[0].interval.high, many.outcome) == (1.0, Outcome.SHIP)


def test_equal_lengths_are_bounded_by_what_was_not_seen() -> None:
    many, one = decided([512] * 1000).checks[0], decided([512]).checks[0]
    assert many.interval.low == pytest.approx(0.5 * 0.05 ** (1 / 1000))
    assert many.outcome is Outcome.NO_SHIP
    assert one.outcome is Outcome.INCONCLUSIVE
    assert one.interval.degenerate == "fewer than two sequences"
    assert decided([900] * 3).outcome is Outcome.INCONCLUSIVE  # three equal lengths say little about the next


def test_coverage_over_sequences() -> None:
    rng, hits = np.random.default_rng(2), 0

    def draw(n: int) -> Any:
        return np.minimum(np.exp(rng.normal(5.5, 1, n)).astype(int) + 1, 1024)

    truth = float(draw(400_000).mean()) / 1024
    for _ in range(400):
        interval = decided(draw(60)).checks[0].interval
        hits += interval.low <= truth <= interval.high
    assert 0.87 <= hits / 400 <= 0.97  # a 90% interval


def test_slices_and_the_lowest_decile() -> None:
    lengths = [1000] * 300 + [980] * 5 + [60] * 12 + [70] * 13
    names = np.array(["chat"] * 305 + ["tool"] * 25, dtype=object)
    found = decided(lengths, slices=names)
    by_name = {check.name: check.outcome for check in found.checks}
    assert by_name == {
        "overall": Outcome.SHIP, "chat": Outcome.SHIP, "tool": Outcome.NO_SHIP, LOWEST: Outcome.NO_SHIP,
    }  # fmt: skip
    assert found.outcome is Outcome.NO_SHIP


def test_longer_and_empty_sequences_are_said() -> None:
    found = decided([2000, 512, 0])
    assert [(item.count, item.what) for item in found.lost] == [
        (1, "sequences above 1,024 tokens, counted as cut: 976 tokens lost"),
        (1, "sequences without a token, counted as padding alone"),
    ]
    assert figure(found, "gate.padding.utilisation") == pytest.approx(1536 / 3072)


def test_left_padding_is_a_position_gap() -> None:
    left, right = np.array([512, 0]), np.array([0, 24])
    keys: dict[str, Any] = {"width": 1024, "left": left, "right": right, "holes": np.zeros(2, dtype=np.int64)}
    words = " ".join(case_of(decided([512, 1000], Setting(), **keys)).sections[-1].paragraphs)
    assert "1 sequences are padded on the left" in words
    assert "Both sides occur" in words
    none = decided([1024, 1000], Setting(), **{**keys, "left": np.zeros(2)})
    assert case_of(none).sections[-1].paragraphs[0].startswith("Padding is on the right")


def test_batches_and_bucketing() -> None:
    found = decided([1000, 10, 1000, 10], Setting(1024, batch_size=2, model=LLAMA))
    table = found.tables["gate.padding.batches"]
    assert [row[:3] for row in table.rows] == [(1, 2, 1000), (2, 2, 1000)]
    assert [round(row[4], 2) for row in table.rows] == [50.5, 50.5]
    assert [row[5] for row in table.rows] == [100.0, 100.0]
    saved = {row[0]: row[5] for row in found.tables["gate.padding.layouts"].rows}
    assert saved["bucketed by length"] == pytest.approx(saved["no padding (varlen)"])
    assert saved["packed, borders respected"] > saved["packed, other sequences masked"]


def test_bad_input() -> None:
    with pytest.raises(InputError, match="--max-length"):
        decided([10], Setting())
    with pytest.raises(InputError, match="at least one token"):
        decided([0, 0])


def test_slots_that_are_full_because_texts_were_cut_do_not_ship() -> None:
    assert decided([2000] * 60).outcome is not Outcome.SHIP
    assert decided([1030] * 60).outcome is Outcome.SHIP
    with pytest.raises(InputError, match="below 100%"):
        decided([512] * 9, margin=1.0)
