"""Tables: what was measured at the nodes, never falling between them, growing beyond them."""

import numpy as np
import pytest

from ridgeline.core.surfaces import Floats
from ridgeline.serve.steps.tables import TOKENS, Span, Table, zero


def of(measure: Floats) -> Span:
    return Span(measure, 0.9 * measure, 1.2 * measure)


def test_nodes_come_back_and_noise_does_not_fall() -> None:
    table = Table.of((TOKENS,), lambda tokens: of(1e-3 + 1e-6 * tokens + 2e-4 * np.sin(tokens)))
    at = table(TOKENS).seconds
    assert np.all(np.diff(at) >= -1e-18)
    assert at[-1] == pytest.approx(1e-3 + 1e-6 * TOKENS[-1] + 2e-4 * np.sin(TOKENS[-1]))


def test_between_and_beyond() -> None:
    table = Table.of((TOKENS,), lambda tokens: of(1e-6 * tokens))
    asked = np.array([3.5, 777.0, 3e5, 1e7])
    assert table(asked).seconds == pytest.approx(1e-6 * asked)
    assert table(asked).low == pytest.approx(0.9e-6 * asked)


def test_two_axes() -> None:
    table = Table.of((TOKENS, TOKENS), lambda one, two: of(1e-6 * one * two))
    assert table(np.array([3.0, 5.0]), np.array([7.0, 11.0])).seconds == pytest.approx([21e-6, 55e-6])


def test_spans() -> None:
    one = of(np.array([1.0, 4.0]))
    assert (one + one * 2.0).seconds.tolist() == [3.0, 12.0]
    assert one.larger(of(np.array([2.0, 3.0]))).seconds.tolist() == [2.0, 4.0]
    assert (zero((2,)) + one).high.tolist() == [1.2, 4.8]
