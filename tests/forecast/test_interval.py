"""Intervals: what each kind is made of."""

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.forecast.forecast import Options, Study, study
from ridgeline.forecast.interval import KINDS, log_interval
from ridgeline.forecast.synthetic import AHEAD, ahead, simulate

MADE = simulate("isoflop", "gaussian", 0)
AT = ahead(float(MADE.points["C"].max()), MADE.theta)
FAR = np.array(AHEAD)


@pytest.fixture(scope="module")
def found() -> Study:
    """One ladder, studied."""
    return study(MADE.points, Options(draws=60))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_holds_the_forecast_and_widens_for_a_run(found: Study, kind: str) -> None:
    centre = np.log(found.predict(AT))
    low, high = log_interval(found.evidence, AT, FAR, kind=kind)
    assert np.all((low < centre) & (centre < high))
    law_low, law_high = log_interval(found.evidence, AT, FAR, kind=kind, run=False)
    assert np.all(high - low > law_high - law_low)


def test_the_calibrated_interval_grows_with_the_decades(found: Study) -> None:
    here = [np.ptp(log_interval(found.evidence, AT, np.full(2, d)), axis=0)[0] for d in (-1.0, 0.0, 1.0, 3.0)]
    assert here[0] == here[1] < here[2] < here[3]


def test_a_lower_level_is_narrower(found: Study) -> None:
    wide, narrow = (np.ptp(log_interval(found.evidence, AT, FAR, level), axis=0) for level in (0.95, 0.5))
    assert np.all(narrow < wide)


def test_parts_add_in_quadrature(found: Study) -> None:
    parts = found.evidence.parts(AT, FAR, 0.95)
    low, _ = log_interval(found.evidence, AT, FAR)
    expected = np.sqrt(parts.noise**2 + parts.growth**2 + parts.low**2)
    assert np.allclose(np.log(found.predict(AT)) - low, expected)


def test_unknown_kinds_and_levels_are_refused(found: Study) -> None:
    with pytest.raises(InputError, match="calibrated"):
        log_interval(found.evidence, AT, FAR, kind="calibratd")
    with pytest.raises(InputError, match="level"):
        log_interval(found.evidence, AT, FAR, 1.5)
