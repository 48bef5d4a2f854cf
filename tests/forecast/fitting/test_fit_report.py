"""The report of a fit, as rows and as text."""

import numpy as np
from tests.forecast.fitting.test_profile import one_token_count
from tests.forecast.ladders import noisy

from ridgeline.forecast.fitting.bootstrap import bootstrap
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.fit_report import WIDTH, fit_report
from ridgeline.forecast.fitting.objective import objective
from ridgeline.forecast.fitting.profile import profile
from ridgeline.forecast.laws import chinchilla, coupled
from ridgeline.forecast.points import Points

FORM = chinchilla.FORM


def test_rows_hold_values_errors_and_intervals() -> None:
    found = fit(noisy(), FORM)
    plain, drawn = fit_report(found), fit_report(found, bootstrap(found, count=200))
    assert [row.symbol for row in plain.rows] == list(FORM.symbols)
    for one, other in zip(plain.rows, drawn.rows, strict=True):
        assert one.value == other.value == found.constants[one.symbol]
        assert one.error == found.standard_errors[one.symbol]
        assert one.low < one.value < one.high
        assert (one.basis, other.basis) == ("std. error", "bootstrap")
        assert one.identified
        assert not one.at_bound
    assert ("A", "alpha") in [(a, b) for a, b, _ in plain.correlated]
    assert "200 resamples" in drawn.text()


def test_what_is_not_identified_is_said() -> None:
    found = fit(one_token_count(), FORM)
    report = fit_report(found, None, {symbol: profile(found, symbol) for symbol in FORM.symbols})
    state = {row.symbol: row.identified for row in report.rows}
    assert state["alpha"]
    assert not state["beta"]
    assert not state["B"]
    assert "does not identify" in report.text()
    assert "profile is open" in report.text()


def test_a_bound_is_said() -> None:
    n, d = noisy()["N"], noisy()["D"]
    found = fit(Points({"N": n, "D": d, "loss": 50.0 / n**0.1 + 80.0 / d**0.15 - 0.3}), FORM)
    report = fit_report(found)
    assert [row.symbol for row in report.rows if row.at_bound] == ["E"]
    assert "on bound" in report.text()
    assert "degenerate: E on its bound" in report.text()


def test_text_fits_a_terminal() -> None:
    for form in (FORM, coupled.FORM):
        found = fit(noisy(noise=0.01), form, objective("mle", noise="size"))
        draws = bootstrap(found, count=100)
        report = fit_report(found, draws, {symbol: profile(found, symbol) for symbol in form.symbols})
        lines = report.lines()
        assert max(len(line) for line in lines) <= WIDTH
        assert "\n".join(lines) == report.text()
        assert any(line.strip().startswith("noise") for line in lines)


def test_failed_resamples_are_counted() -> None:
    n = np.geomspace(1e8, 1e10, 6)
    d = np.array([3e9, 1e11, 1e10, 2e9, 3e11, 2e10])
    found = fit(Points({"N": n, "D": d, "loss": 1.7 + 400 / n**0.34 + 410 / d**0.28}), FORM)
    assert "of 60 resamples failed" in fit_report(found, bootstrap(found, count=60)).text()
