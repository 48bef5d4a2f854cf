"""Studies for the tests of the plan, and the machine of the worked numbers as a device file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ridgeline.core.finding import Finding, RuleConfig, run_rules
from ridgeline.core.plugins import rules
from ridgeline.core.quantity import Quantity
from ridgeline.core.specs import build
from ridgeline.plan.plan import Plan, make_plan
from ridgeline.plan.study import Study

BUDGET = {"chips": "1000xH100", "days": 30, "mfu": 0.40}
NEED = {"prefill": "8k", "decode": 128, "overhead": "0.25s", "budget": "1s", "chips_per_conversation": 4}
TRAFFIC = [
    {"name": name, "served": served} for name, served in (("pilot", 1e12), ("product", 1e14), ("platform", 1e16))
]
SIZES = ["70B", "30B", "17B", "8B"]

# The H100 as the worked numbers use it: 990e12 FLOP/s, where the catalog has the data sheet's 989.4e12.
WORKED_H100 = """
name = "Worked H100"
peak.bf16 = 990e12
[hbm]
bytes = 80e9
bandwidth = 3.35e12
[power.tdp]
value = 700
"""


def study(budget: Mapping[str, Any] | None = None, **rest: Any) -> Study:
    """A study on 1,000 H100 for 30 days at 40%, changed where given."""
    return build(Study, {"budget": BUDGET | dict(budget or {}), **rest})


def plan(budget: Mapping[str, Any] | None = None, **rest: Any) -> Plan:
    """The plan of such a study."""
    return make_plan(study(budget, **rest))


def product_plan(**rest: Any) -> Plan:
    """The story: an agent to serve, three scenarios, four smaller sizes."""
    return plan(**({"need": NEED, "traffic": TRAFFIC, "candidates": SIZES} | rest))


def worked_chips(folder: Path, count: int = 1000) -> str:
    """``chips`` of the device of the worked numbers."""
    file = folder / "worked-h100.toml"
    file.write_text(WORKED_H100)
    return f"{count}x{file}"


def findings(made: Plan, code: str, threshold: float | None = None) -> list[Finding]:
    """What one rule says of a plan, at its own threshold or another."""
    thresholds = {} if threshold is None else {code: threshold}
    return run_rules(rules().values(), made, RuleConfig(select=(code,), thresholds=thresholds))


def finding(made: Plan, code: str, threshold: float | None = None) -> Finding:
    """The one finding of a rule."""
    (found,) = findings(made, code, threshold)
    return found


def number(quantity: Quantity | None, unit: str | None = None) -> float:
    """The value of a quantity that is there."""
    assert quantity is not None
    return float(quantity.to(unit or quantity.unit))
