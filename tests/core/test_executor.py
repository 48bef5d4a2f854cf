"""The same call on this process, on a local pool and on Ray."""

import importlib.util
import sys
import warnings
from functools import partial

import pytest

from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.core.executor import pmap


def square(number: int) -> int:
    return number * number


def fail_on_three(number: int) -> int:
    if number == 3:
        raise InputError("Expected anything but three", where="the test")
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_keep_the_order(workers: int) -> None:
    assert pmap(square, range(7), workers=workers) == [0, 1, 4, 9, 16, 25, 36]


def test_nothing_to_do() -> None:
    assert pmap(square, []) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_is_raised(workers: int) -> None:
    with pytest.raises(InputError, match="three"):
        pmap(fail_on_three, range(5), workers=workers)


def test_ray_absent_prints_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="ray") as caught:
        pmap(square, [1], address="auto")
    assert "ridgeline[cluster]" in caught.value.hint


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray (the `cluster` extra)")
def test_ray_gives_the_same_results() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own
        assert pmap(square, range(5), address="local") == pmap(square, range(5), workers=1)
        assert pmap(partial(pow, 2), range(5), address="local") == [1, 2, 4, 8, 16]
        with pytest.raises(InputError, match="a Ray cluster that answers"):
            pmap(square, [1], address="nowhere://x")
