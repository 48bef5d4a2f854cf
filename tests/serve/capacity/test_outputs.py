"""The equation as JSON, and the rules of a monitor."""

import json
import re
from pathlib import Path

from tests.serve.capacity.asked import llama, small

from ridgeline.serve.capacity.admission import Kind, max_sequences
from ridgeline.serve.capacity.outputs import equation, prometheus, rules_text


def test_the_equation_can_be_worked_out_again() -> None:
    found = small("windows", dp_attention=2)
    read = json.loads(json.dumps(equation(found)))
    kinds = [Kind(**kind) for kind in read["kinds"]]
    again = read["groups"] * max_sequences(read["free_bytes"], read["context"], kinds, read["page"])
    assert again == read["sequences"] == found.sequences.value


def _rules(text: str) -> list[dict[str, str]]:
    """The rules of a file in this plain form: keys of eight or more spaces, a dash begins a rule."""
    rules: list[dict[str, str]] = []
    for line in text.splitlines()[3:]:
        match = re.fullmatch(r" {6}(-| ) +(\w+):(?: (.*))?", line)
        assert match, line
        dash, key, value = match.groups()
        if dash == "-":
            rules.append({})
        assert key not in rules[-1], line
        rules[-1][key] = (value or "").strip()
    return rules


def test_prometheus_rules() -> None:
    found = llama()
    text = prometheus(found, 'a "quoted" name')
    assert text.splitlines()[:3] == ["groups:", "  - name: ridgeline-capacity", "    rules:"]
    assert "\t" not in text
    rules = _rules(text)
    records = {rule["record"]: rule for rule in rules if "record" in rule}
    alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
    assert len(rules) == len(records) + len(alerts) == 6
    limit = int(found.sequences.value)
    assert records["ridgeline_sequences_limit"]["expr"] == f"'vector({limit})'"
    assert alerts["RidgelineOverAdmitted"]["expr"].endswith(f"> {limit}'")
    assert "> 0.9" in alerts["RidgelineCacheNearlyFull"]["expr"]
    for rule in rules:
        assert re.fullmatch(r"'(?:[^']|'')*'", rule["expr"])
        assert json.loads(rule["labels"].removeprefix("{ model_name: ").removesuffix(" }")) == 'a "quoted" name'
    assert all(rule["summary"] and rule["for"] == "5m" for rule in alerts.values())


def test_the_name_of_the_file_chooses() -> None:
    found = llama()
    assert json.loads(rules_text(found, "m", Path("rules.json"))) == equation(found)
    assert rules_text(found, "m", Path("rules.yml")).startswith("groups:")
