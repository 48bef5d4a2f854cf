"""A form with some constants held at a value or tied to another: fewer to fit, the same formula."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.expansion import Expansion, Sums
from ridgeline.forecast.fitting.starts import basins, grid, settle
from ridgeline.forecast.form import Array, Columns, Form, Parameter

_GRIDDED = 2  # free constants up to which the basins are looked for on a grid of their own
_CELLS = 25  # of that grid, along each
_SETTLED = 40  # steps by which the inner form's starts adapt to what is held


@dataclass(frozen=True)
class Held(Form):
    """``inner`` with ``fixed`` constants (natural values) and ``ties`` (symbol -> the symbol whose value it takes).

    Make one with `hold`. ``theta`` holds the constants that stay free, in the order of ``inner``.
    """

    inner: Form | None = field(default=None)
    ties: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _form(self) -> Form:
        assert self.inner is not None, "made by hold()"
        return self.inner

    @cached_property
    def _spread(self) -> NDArray[np.float64]:
        """Full theta = base + theta @ spread; shape (P, all)."""
        places = {symbol: i for i, symbol in enumerate(self._form.symbols)}
        matrix = np.zeros((len(self.parameters), len(places)))
        for row, parameter in enumerate(self.parameters):
            matrix[row, places[parameter.symbol]] = 1
            for symbol, follows in self.ties.items():
                if follows == parameter.symbol:
                    matrix[row, places[symbol]] = 1
        return matrix

    @cached_property
    def _base(self) -> Array:
        return np.array(
            [float(p.internal(self.fixed[p.symbol])) if p.symbol in self.fixed else 0.0 for p in self._form.parameters]
        )

    def full(self, theta: Array) -> Array:
        """Every constant of the inner form, (..., all), from the free ones (..., P)."""
        found: Array = self._base + theta @ self._spread
        return found

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        return self._form.log_loss(self.full(theta), columns)

    def gradient(self, theta: Array, columns: Columns) -> tuple[Array, Array]:
        """See `Form`."""
        value, slopes = self._form.gradient(self.full(theta), columns)
        return value, slopes @ self._spread.T

    def curvature(self, theta: Array, columns: Columns, weights: Array) -> Array:
        """See `Form`."""
        found: Array = self._spread @ self._form.curvature(self.full(theta), columns, weights) @ self._spread.T
        return found

    def expand(self, theta: Array, columns: Columns) -> Expansion:
        """See `Form`."""
        return _Narrowed(self._form.expand(self.full(theta), columns), self._spread)

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        low, high = self.box
        if len(self.parameters) <= _GRIDDED and (np.isfinite(low) & np.isfinite(high)).all():
            cells, shape = grid([np.linspace(a, b, _CELLS) for a, b in zip(low, high, strict=True)])
            off = np.abs(self.log_loss(cells, columns) - log_y) @ weights
            return cells[basins(shape, off)]
        share = self._spread / self._spread.sum(axis=1, keepdims=True)  # a tie starts half way
        found: Array = np.clip(self._form.starts(columns, log_y, weights) @ share.T, low, high)
        return settle(self, found, range(len(self.parameters)), columns, log_y, weights, _SETTLED)

    def optimum(self, theta: Array, compute: Array) -> tuple[Array, Array] | None:
        """See `Form`."""
        return self._form.optimum(self.full(theta), compute)


@dataclass(frozen=True)
class _Narrowed:
    """An expansion in all constants, by the free ones: ``spread`` (P, all) is the derivative of one by the other."""

    inner: Expansion
    spread: NDArray[np.float64]

    @property
    def value(self) -> Array:
        """ln L, shape (B, n)."""
        return self.inner.value

    def sums(self, slope: Array, bend: Array, major: Array) -> Sums:
        """See `ridgeline.forecast.fitting.expansion.Expansion`."""
        found, turned = self.inner.sums(slope, bend, major), self.spread.T
        return Sums(
            found.gradient @ turned, self.spread @ found.hessian @ turned, self.spread @ found.majoriser @ turned
        )


def hold(form: Form, fixed: Mapping[str, float] | None = None, ties: Mapping[str, str] | None = None) -> Held:
    """The form with constants held at natural values, or tied to another constant of the same kind.

    Raises `InputError` for a symbol that the form does not have, for a tie to a constant that is not free, and where
    nothing is left to fit.
    """
    fixed, ties = dict(fixed or {}), dict(ties or {})
    known: dict[str, Parameter] = {p.symbol: p for p in form.parameters}
    for symbol in (*fixed, *ties, *ties.values()):
        if symbol not in known:
            raise InputError.expected("one of " + ", ".join(known), symbol, where=f"the constants of {form.slug}")
    free = tuple(p for p in form.parameters if p.symbol not in fixed and p.symbol not in ties)
    stray = [symbol for symbol in ties.values() if symbol not in {p.symbol for p in free}]
    if stray or not free:
        got = stray[0] if stray else "none"
        raise InputError.expected("a free constant", got, where=f"the constants of {form.slug}")
    plain = {f.name: getattr(form, f.name) for f in fields(Form)}
    return Held(**{**plain, "parameters": free, "fixed": {**form.fixed, **fixed}}, inner=form, ties=ties)
