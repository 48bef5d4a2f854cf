"""The step table: interpolation, the equal chunk, and the compiled copy of the same arithmetic."""

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.serve.simulate.grids import a_table

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.costs.table import Curve, Grid, Shape, StepTable, equal_chunk
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.simulate.engine.state import costs

TABLE = a_table()
ENGINE = Engine(kv_blocks=10, max_num_seqs=12, max_num_batched_tokens=500)


def test_a_curve_is_held_below_and_continued_above() -> None:
    curve = Curve(np.array([2.0, 4.0]), np.array([1.0, 2.0]))
    assert [curve(x) for x in (0, 2, 3, 4, 8)] == [1.0, 1.0, 1.5, 2.0, 4.0]


def test_a_grid_of_products_is_read_exactly() -> None:
    axes: Any = tuple(np.array([0.0, 1.0 + i, 5.0]) for i in range(4))
    values = np.einsum("a,b,c,d->abcd", *axes)
    assert Grid(axes, values)(0.5, 3.0, 6.0, 2.0) == pytest.approx(0.5 * 3.0 * 6.0 * 2.0)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([(64, 100)], (64.0, 100.0)),
        ([(64, 0)], (64.0, 0.0)),
        ([(32, 0), (32, 32)], (64.0, 0.0)),  # the same prompt in two halves
        ([(8, 0)] * 4, (16.0, 0.0)),  # four of 8 do the work of one of 16
        ([], (0.0, 0.0)),
    ],
)
def test_chunks_of_equal_work(chunks: list[tuple[int, int]], expected: tuple[float, float]) -> None:
    work = sum(c * (past + c / 2) for c, past in chunks)
    assert equal_chunk(sum(c for c, _ in chunks), work) == pytest.approx(expected)


def test_terms_add_up() -> None:
    shape = Shape(20, 3, 2, 18, 18 * 20.0, 2, 60, 50)
    assert sum(TABLE.terms(shape).values()) == pytest.approx(TABLE.seconds(shape))
    assert TABLE.terms(shape)["host"] == pytest.approx(1e-3 + 3e-5)


def test_decodes_of_unequal_length_take_longer() -> None:
    even = Shape(4, 4, 4, 0, 0.0, 4, 200, 50)
    assert TABLE.seconds(even._replace(decode_max=150)) > TABLE.seconds(even)


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    prompts=st.lists(st.tuples(st.integers(1, 90), st.integers(0, 300)), max_size=4),
    contexts=st.lists(st.integers(1, 300), max_size=8),
)
def test_compiled_arithmetic_is_the_same(prompts: list[tuple[int, int]], contexts: list[int]) -> None:
    from ridgeline.serve.simulate.kernel.cost import step_s

    hypothesis.assume(prompts or contexts)
    chunk, work = sum(c for c, _ in prompts), sum(c * (past + c / 2) for c, past in prompts)
    sequences = len(prompts) + len(contexts)
    shape = Shape(
        chunk + len(contexts),
        sequences,
        len(contexts),
        chunk,
        work,
        len(contexts),
        sum(contexts),
        max(contexts, default=0),
    )
    counts, decodes = (shape.tokens, sequences, shape.samples), (shape.decodes, shape.decode_sum, shape.decode_max)
    assert step_s(costs(TABLE, ENGINE), counts, (chunk, float(work)), decodes) == TABLE.seconds(shape)


def test_refuses_bad_tables() -> None:
    good = TABLE.dense
    with pytest.raises(InputError, match="nodes that rise"):
        Curve(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    with pytest.raises(InputError, match="seconds of at least 0"):
        Curve(np.array([1.0]), np.array([-1.0]))
    with pytest.raises(InputError, match="as many nodes as seconds"):
        Curve(np.array([1.0]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="finite values"):
        Curve(np.array([1.0]), np.array([np.nan]))
    with pytest.raises(InputError, match="one value at each crossing"):
        Grid(TABLE.attention.axes, np.zeros((1, 1, 1, 1)))
    with pytest.raises(InputError, match="at host_step_s"):
        StepTable(good, good, TABLE.attention, host_step_s=-1.0)
    with pytest.raises(InputError, match="the attention of the step table"):
        StepTable(good, good, Grid(TABLE.attention.axes, -TABLE.attention.values))
