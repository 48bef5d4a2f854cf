"""The monitor that decides: the policy, on actions alone."""

from ridgeline.gate.traces.monitors import Monitor
from ridgeline.gate.traces.policy import Policy
from ridgeline.gate.traces.trace import Trace


def score(trace: Trace, policy: Policy) -> float:
    """1 where the actions breach the policy."""
    return policy.score(policy.actions(trace))


MONITOR = Monitor("actions", "Policy on actions", "actions", score)
