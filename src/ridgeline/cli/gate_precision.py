"""``ridgeline gate precision``."""

from ridgeline.cli import _gate, _talk


def command(
    baseline: _gate.Baseline,
    candidate: _gate.Candidate,
    slices: _gate.Slices = "",
    metric: _gate.Metric = None,
    margin: _gate.Margin = "",
    slice_margin: _gate.SliceMargin = "",
    column: _gate.Columns = None,
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """A cheaper numeric format against the trusted one: ship, do not ship, or not enough evidence.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.gate.gates.precision import decide

    asked = _gate.Asked(baseline, candidate, slices, metric, margin, slice_margin, column)
    _gate.compare("precision", decide, asked, _gate.CI(junit, github, registration), output, as_json=as_json)
