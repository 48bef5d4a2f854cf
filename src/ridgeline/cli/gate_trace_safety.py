"""``ridgeline gate trace-safety``."""

from pathlib import Path
from typing import Annotated

import typer

from ridgeline.cli import _gate, _report, _talk

Traces = Annotated[Path, typer.Option("--traces", metavar="PATH", help="Traces to decide on: AgentDojo, tau-bench.")]
Policy = Annotated[Path, typer.Option("--policy", metavar="FILE", help="What agents may do, as TOML.")]
Baseline = Annotated[
    Path | None, typer.Option("--baseline", metavar="PATH", help="Traces of the trusted agent, for benign utility.")
]
Monitor = Annotated[
    list[str] | None, typer.Option("--monitor", help="Monitor to compare; all that are found if none. Repeatable.")
]
Cluster = Annotated[str, typer.Option("--cluster", help="task or injection; the wider of both if none.")]


def command(
    traces: Traces,
    policy: Policy,
    baseline: Baseline = None,
    monitor: Monitor = None,
    slices: _gate.Slices = "",
    cluster: Cluster = "",
    margin: _gate.Margin = "",
    registration: _gate.PlanFile = None,
    junit: _gate.JUnit = None,
    github: _gate.GitHub = False,
    output: _gate.Folder = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Agents judged on their actions against a policy, with the rationale-rewrite hold-out.

    Exit codes: 0 ship, 1 do not ship, 4 not enough evidence, 2 bad input.
    """
    from ridgeline.core.config import load
    from ridgeline.gate.gates.trace_safety import decide
    from ridgeline.gate.traces.monitors import chosen as monitors
    from ridgeline.gate.traces.policy import read_policy
    from ridgeline.gate.traces.trace import read_traces

    chosen = _gate.plan("trace-safety", registration, None, slices=slices, cluster=cluster, margin=margin)
    words = _report.words([
        ("--traces", traces), ("--policy", policy), ("--baseline", baseline), ("--monitor", monitor),
        ("--slices", slices), ("--cluster", cluster), ("--margin", margin), ("--registration", registration),
    ])  # fmt: skip
    other = read_traces(baseline) if baseline else None
    found = decide(read_traces(traces), read_policy(policy), chosen, monitors(tuple(monitor or ())), other, load())
    ci = _gate.CI(junit, github, registration)
    _gate.decided(found, f"ridgeline gate trace-safety {words}", output, as_json=as_json, ci=ci, chosen=chosen)
