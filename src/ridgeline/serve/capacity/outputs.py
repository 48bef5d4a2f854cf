"""What a scheduler and a monitor take from a capacity: the numbers of the equation as JSON, and Prometheus rules."""

import json
from pathlib import Path

from ridgeline.core.catalog import constant
from ridgeline.serve.capacity.capacity import Capacity


def rules_text(found: Capacity, model: str, file: Path) -> str:
    """What ``--rules`` writes: the equation for a ``.json`` file, Prometheus rules for any other."""
    if file.suffix == ".json":
        return json.dumps(equation(found), indent=1) + "\n"
    return prometheus(found, model)


def equation(found: Capacity) -> dict[str, object]:
    """The arguments of `admission` for one chip, as plain JSON: ``free_bytes``, ``page``, ``kinds``, ``groups``."""
    return {
        "free_bytes": int(found.free_bytes),
        "page": found.page_tokens,
        "groups": found.deployment.dp_attention,
        "kinds": [dict(kind._asdict()) for kind in found.kinds],
        "context": int(found.context.value),
        "sequences": int(found.sequences.value),
    }


def prometheus(found: Capacity, model: str) -> str:
    """Recording and alerting rules over the metrics that vLLM exports, as YAML.

    ``ridgeline_sequences_limit`` is what fits; the first alert fires while more requests run than fit at the planned
    length, the second while the cache is nearly full, the third while requests are preempted.
    """
    name = json.dumps(model)
    selector = "{model_name=" + name + "}"
    labels = f"{{ model_name: {name} }}"
    full = 1 - float(constant("admission.margin").value)
    limit = int(found.sequences.value)
    alerts = (
        ("RidgelineOverAdmitted", f"sum(vllm:num_requests_running{selector}) > {limit}",
         f"More requests run than the {limit} that fit at {int(found.context.value)} tokens each"),
        ("RidgelineCacheNearlyFull", f"max(vllm:kv_cache_usage_perc{selector}) > {full:g}",
         "The cache is nearly full: the next long answer preempts another"),
        ("RidgelinePreempting", f"sum(rate(vllm:num_preemptions_total{selector}[5m])) > 0",
         "Requests are preempted: more were let in than fit at their final length"),
    )  # fmt: skip
    records = (
        ("ridgeline_sequences_limit", f"vector({limit})"),
        ("ridgeline_cache_bytes_free", f"vector({int(found.free_bytes)})"),
        ("ridgeline_admission_load", f"sum(vllm:num_requests_running{selector}) / {max(limit, 1)}"),
    )
    lines = ["groups:", "  - name: ridgeline-capacity", "    rules:"]
    for record, expression in records:
        lines += [f"      - record: {record}", f"        expr: {_quoted(expression)}", f"        labels: {labels}"]
    for alert, expression, summary in alerts:
        lines += [f"      - alert: {alert}", f"        expr: {_quoted(expression)}", "        for: 5m"]
        lines += [f"        labels: {labels}", "        annotations:", f"          summary: {_quoted(summary)}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A YAML scalar in single quotes."""
    return "'" + text.replace("'", "''") + "'"
