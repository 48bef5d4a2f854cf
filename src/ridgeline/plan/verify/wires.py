"""Collectives with their gradients, as a plan prescribes them: each names its own backward pass.

Automatic differentiation of a bare ``psum`` depends on what the framework knows of its argument; with a written
gradient the compiled program holds what is written here and nothing else. ``axes`` empty: no collective. ``term`` is
the scope that the compiler carries into its instructions.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax

Wire = Callable[[Any], Any]


def _pair(forward: Wire, backward: Wire, term: str) -> Wire:
    """A function with this forward and this backward pass, both under the scope of the term."""

    @jax.custom_vjp
    def wire(x: Any) -> Any:
        with jax.named_scope(term):
            return forward(x)

    def there(x: Any) -> tuple[Any, None]:
        return wire(x), None

    def back(_: None, grad: Any) -> tuple[Any]:
        with jax.named_scope(term):
            return (backward(grad),)

    wire.defvjp(there, back)
    return wire


def _same(x: Any) -> Any:
    return x


def _sum(axes: tuple[str, ...]) -> Wire:
    return lambda x: lax.psum(x, axes)


def _join(axes: tuple[str, ...], dim: int) -> Wire:
    return lambda x: lax.all_gather(x, axes, axis=dim, tiled=True)


def _split(axes: tuple[str, ...], dim: int) -> Wire:
    return lambda x: lax.psum_scatter(x, axes, scatter_dimension=dim, tiled=True)


def copy(axes: tuple[str, ...], term: str) -> Wire:
    """The same on every rank; gradients are summed."""
    return _pair(_same, _sum(axes), term) if axes else _same


def total(axes: tuple[str, ...], term: str) -> Wire:
    """The sum over ranks; the gradient is everybody's."""
    return _pair(_sum(axes), _same, term) if axes else _same


def gather(axes: tuple[str, ...], term: str, dim: int = 0) -> Wire:
    """The parts of all ranks side by side; gradients are summed and scattered."""
    return _pair(_join(axes, dim), _split(axes, dim), term) if axes else _same


def scatter(axes: tuple[str, ...], term: str, dim: int = 0) -> Wire:
    """The sum over ranks, one part each; gradients are gathered."""
    return _pair(_split(axes, dim), _join(axes, dim), term) if axes else _same


def exchange(axes: tuple[str, ...], term: str) -> Wire:
    """One part for every rank, the first dimension by rank; gradients travel the same way back."""

    def swap(x: Any) -> Any:
        return lax.all_to_all(x, axes, split_axis=0, concat_axis=0, tiled=True)

    return _pair(swap, swap, term) if axes else _same


def joined(axes: tuple[str, ...], term: str, x: Any) -> Any:
    """`gather` in the open, where the framework may run it again: its transpose is a reduce-scatter by definition."""
    if not axes:
        return x
    with jax.named_scope(term):
        return lax.all_gather(x, axes, tiled=True)
