"""The rules of the family S0."""

from typing import Any

import pytest
from tests.serve.capacity.asked import llama, small

from ridgeline.core import plugins
from ridgeline.core.finding import Finding, run_rules
from ridgeline.serve.capacity.facts import CapacityFacts, facts_of
from ridgeline.serve.capacity.settings import Settings


def found(facts: CapacityFacts) -> dict[str, Finding]:
    """Findings by code."""
    return {item.code: item for item in run_rules(plugins.rules().values(), facts, family="S0")}


def verdicts(facts: CapacityFacts) -> dict[str, str]:
    return {code: str(item.verdict) for code, item in found(facts).items()}


def test_a_deployment_without_faults() -> None:
    assert set(verdicts(facts_of(llama())).values()) == {"pass"}


@pytest.mark.parametrize(
    ("name", "asked", "code", "verdict"),
    [
        pytest.param("full", {"tp": 8}, "S002", "warn", id="heads are copied"),
        pytest.param("full", {"tp": 4}, "S002", "pass", id="heads are divided"),
        pytest.param("latents", {"tp": 8}, "S003", "warn", id="latents are copied"),
        pytest.param("latents", {"dp_attention": 8}, "S003", "pass", id="latents are not"),
        pytest.param("windows", {"settings": Settings(windows=False)}, "S004", "warn", id="windows ignored"),
        pytest.param("windows", {}, "S004", "pass", id="windows respected"),
        pytest.param("windows", {"context": 900, "settings": Settings(windows=False)}, "S004", "pass", id="not full"),
        pytest.param("states", {"context": 512}, "S005", "warn", id="a large page"),
        pytest.param("states", {"settings": Settings(aligned=False)}, "S005", "pass", id="states to the byte"),
        pytest.param("full", {}, "S006", "unknown", id="no limit is stated"),
        pytest.param("full", {"kv": "fp8"}, "S007", "pass", id="fp8 on a device that computes in it"),
        pytest.param("full", {"kv": "int4"}, "S007", "warn", id="four bits"),
    ],
)  # fmt: skip
def test_verdicts(name: str, asked: dict[str, Any], code: str, verdict: str) -> None:
    assert verdicts(facts_of(small(name, **asked)))[code] == verdict


def test_a_context_beyond_the_model() -> None:
    findings = found(facts_of(llama(16_384)))
    assert findings["S006"].verdict == "fail"
    assert findings["S006"].value is not None
    assert findings["S006"].value.value == 2


def test_no_request_fits() -> None:
    tight = found(facts_of(llama(8192, Settings(memory=21.4e9, utilisation=1.0))))
    assert tight["S001"].verdict == "fail"
    assert "No request" in tight["S001"].sentence
    roomy = found(facts_of(llama(8192, Settings(memory=22e9, utilisation=1.0))))
    assert roomy["S001"].verdict == "pass"


def test_rules_that_do_not_apply_say_nothing() -> None:
    assert {"S003", "S004"}.isdisjoint(verdicts(facts_of(small())))
    assert "S002" not in verdicts(facts_of(small("latents")))
