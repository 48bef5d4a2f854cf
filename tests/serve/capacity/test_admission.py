"""The equation that a scheduler may copy: it imports nothing, and it is the one that the case prints."""

import ast
import sys
from pathlib import Path

import pytest
from hypothesis import given as forall
from hypothesis import strategies as st
from tests.serve.capacity.asked import SPECS, small

from ridgeline.core.catalog import device
from ridgeline.serve.capacity import admission
from ridgeline.serve.capacity.admission import Kind, admit, max_context, max_sequences, request_bytes
from ridgeline.serve.capacity.capacity import capacity
from ridgeline.serve.capacity.settings import Settings
from ridgeline.serve.deployment import Deployment

KINDS = st.lists(
    st.builds(Kind, st.sampled_from([0.0, 0.5, 7.0, 512.0]), st.sampled_from([0, 1, 100, 1024]),
              st.sampled_from([0.0, 1000.0])),
    min_size=1, max_size=4,
)  # fmt: skip


def test_it_needs_the_standard_library_alone() -> None:
    tree = ast.parse(Path(admission.__file__).read_text(encoding="utf-8"))
    roots = {
        node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    roots |= {
        name.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert roots
    assert roots <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("context", [1, 15, 16, 17, 999, 1000, 1017, 4096, 100_000])
@pytest.mark.parametrize("page", [1, 16, 64])
def test_the_case_prints_the_same(name: str, context: int, page: int) -> None:
    for sizes in ({"tp": 1}, {"tp": 8}, {"tp": 2, "pp": 2}, {"tp": 1, "dp_attention": 4}):
        found = small(name, context, Settings(page=page), **sizes)
        kinds, free, step = found.kinds, found.free_bytes, found.page_tokens
        assert found.paged.per_sequence.value == pytest.approx(request_bytes(context, kinds, step), rel=1e-12)
        groups = found.deployment.dp_attention
        assert found.sequences.value == groups * max_sequences(free, context, kinds, step)
        longest = max_context(free, kinds, step)
        if longest == 2**40:
            assert found.max_context is None
        else:
            assert found.max_context is not None
            assert found.max_context.value == longest


@pytest.mark.parametrize(("kv_heads", "expected"), [(64, 22), (8, 182)])
def test_worked_numbers(kv_heads: int, expected: int) -> None:
    """640 GB, 70e9 parameters in bf16, 10 GB of workspace, requests of 8,192 tokens."""
    kind = Kind(2 * 2 * 80 * kv_heads * 128)
    assert max_sequences(640e9 - 140e9 - 10e9, 8192, [kind]) == expected


@forall(KINDS, st.integers(0, 5000), st.sampled_from([0, 1, 16, 100]))
def test_bytes_grow_with_the_length(kinds: list[Kind], tokens: int, page: int) -> None:
    now, later = (request_bytes(count, kinds, page) for count in (tokens, tokens + 1))
    assert 0 <= now <= later
    assert request_bytes(tokens, kinds, page) >= request_bytes(tokens, kinds, 0)


@forall(KINDS, st.floats(0, 1e7), st.sampled_from([0, 1, 16, 100]))
def test_the_longest_request_is_the_last_that_fits(kinds: list[Kind], free: float, page: int) -> None:
    longest = max_context(free, kinds, page, limit=10**6)
    assert longest == 0 or request_bytes(longest, kinds, page) <= free
    assert longest == 10**6 or request_bytes(longest + 1, kinds, page) > free


@forall(KINDS, st.lists(st.integers(1, 3000), max_size=20), st.floats(0, 1e7))
def test_what_is_admitted_fits_and_the_next_does_not(kinds: list[Kind], requests: list[int], free: float) -> None:
    count = admit(free, requests, kinds)
    assert sum(request_bytes(tokens, kinds) for tokens in requests[:count]) <= free * (1 + 1e-9)
    if count < len(requests):
        assert sum(request_bytes(tokens, kinds) for tokens in requests[: count + 1]) > free * (1 - 1e-9)


def test_equal_requests_are_admitted_to_the_limit() -> None:
    kinds = [Kind(100.0), Kind(50.0, 64)]
    assert admit(1e6, [500] * 100, kinds) == max_sequences(1e6, 500, kinds)


def test_a_long_request_is_not_overtaken() -> None:
    assert admit(1000, [10, 10_000, 10], [Kind(1.0)], page=0) == 1


def test_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        request_bytes(-1, [Kind(1.0)])
    with pytest.raises(ValueError, match="no limit"):
        max_sequences(1e9, 10, [Kind(0.0)])


def test_windows_make_the_curve_bend() -> None:
    """The longest context is no line through one token: that would be eight times too short."""
    full = capacity(Deployment(SPECS["only windows"], device("H100")), 100_000)
    line = full.free_bytes / request_bytes(1, full.kinds, 0)
    assert full.max_context is None
    mixed = small("windows", 100_000)
    assert mixed.max_context is not None
    assert float(mixed.max_context.value) > 1.9 * line
