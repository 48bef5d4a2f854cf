"""FLOPs on zeros: by slots for matmuls, by pairs for attention, windows respected."""

import numpy as np
import pytest

from ridgeline.arithmetic.flops import Term, forward_parts
from ridgeline.arithmetic.named import named
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import Leaves
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.gate.padding.layouts import PADDED, VARLEN, layouts
from ridgeline.gate.padding.work import on_zeros, work

LENGTHS = np.array([512, 100, 30, 256])


def test_padded_work_is_that_of_the_step() -> None:
    spec, _ = named("llama-3-8b")
    padded = next(one for one in layouts(LENGTHS, 512, None) if one.name == PADDED)
    ours, step = work(spec, padded, "a").parts, forward_parts(Leaves(spec), Batch.of(512, 4), "exact")
    assert {term: part.base for term, part in ours.items()} == {term: part.base for term, part in step.items()}


def test_useful_work_is_the_sum_over_sequences() -> None:
    spec, _ = named("llama-3-8b")
    useful = next(one for one in layouts(LENGTHS, 512, None) if one.name == VARLEN)
    ours = work(spec, useful, "a").parts
    each = [forward_parts(Leaves(spec), Batch.of(int(length)), "exact") for length in LENGTHS]
    for term, part in ours.items():
        assert part.base == pytest.approx(sum(float(one[term].base) for one in each), rel=1e-12)


def test_a_window_bounds_what_padding_costs() -> None:
    shape = {"layers": 2, "d_model": 64, "d_ff": 128, "heads": 4, "vocab": 100}
    shares = {}
    for window in (None, 64):
        spec = model(Shape.model_validate({**shape, "window": window}))
        laid = {one.name: work(spec, one, one.name) for one in layouts(LENGTHS, 512, None)}
        zeros = on_zeros(laid[PADDED], laid[VARLEN], "zeros")
        shares[window] = float(zeros[Term.SCORES].base)
        assert float(zeros[Term.MLP].base) == pytest.approx(1 - LENGTHS.sum() / 2048)
    assert shares[None] > shares[64]
    # of a window W: W(W + 1)/2 + (T - W)W pairs for T of at least W
    pairs = sum(min(t, 64) * (min(t, 64) + 1) / 2 + max(t - 64, 0) * 64 for t in LENGTHS.tolist())
    assert shares[64] == pytest.approx(1 - pairs / (4 * (64 * 65 / 2 + 448 * 64)))
