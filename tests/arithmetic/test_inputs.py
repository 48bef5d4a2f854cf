"""Names under a prefix, and the refusals that every formula module shares."""

from dataclasses import replace

import numpy as np
import pytest
from tests.arithmetic.worked import q

from ridgeline.arithmetic.inputs import (
    known,
    place,
    require_at_least,
    require_fraction,
    require_not_negative,
    require_positive,
    under,
)
from ridgeline.core.errors import InputError


def test_under() -> None:
    assert under("", "turn.total") == "turn.total"
    assert under("v5e", "turn.total") == "v5e.turn.total"


def test_place_is_the_flag_else_the_name() -> None:
    assert place(q(1, "s", "x")) == "the test"
    assert place(replace(q(1, "s", "x"), source=None)) == "x"


@pytest.mark.parametrize("value", [0, -1, np.array([1.0, 0.0]), np.array([1.0, np.nan])])
def test_not_positive_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"Expected a value above zero, got .* s for wait.*at the test"):
        require_positive(q(1, "s"), q(value, "s", "wait"))


def test_zero_is_not_negative() -> None:
    require_not_negative(q(0, "s"))
    with pytest.raises(InputError, match="zero or more"):
        require_not_negative(q(-1e-9, "s"))


@pytest.mark.parametrize(("value", "unit"), [(101, "%"), (1.01, "1"), (0, "%"), (np.array([0.5, 1.5]), "1")])
def test_share_outside_is_refused(value: object, unit: str) -> None:
    with pytest.raises(InputError, match="at most 1"):
        require_fraction(q(value, unit, "mfu"))


def test_share_above_one_is_the_one_that_is_named() -> None:
    with pytest.raises(InputError, match=r"got '1\.5 1 for mfu'"):
        require_fraction(q(np.array([0.5, 1.5]), "1", "mfu"))


def test_whole_share_is_fine() -> None:
    require_fraction(q(100, "%"), q(1, "1"), q(0.01, "1"))


def test_at_least() -> None:
    require_at_least(q(1, "1"), 1)
    with pytest.raises(InputError, match="at least 1"):
        require_at_least(q(0.9, "1", "pue"), 1)


def test_unknown_figure_is_named() -> None:
    assert known(q(3, "s", "x"), "x").value == 3
    with pytest.raises(InputError, match="the fp4 peak of A100"):
        known(None, "the fp4 peak of A100")
