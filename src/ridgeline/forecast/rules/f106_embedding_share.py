"""F106: is the smallest model more than its embedding table."""

from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.points import Array, Points


@rule("F106", "Models are more than their embeddings", threshold=50, unit="%", at_least=True,
      why="below half, the vocabulary sets the size, and the size says little about the loss")  # fmt: skip
def check(facts: Facts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of parameters outside the embedding table, in the model where it is smallest. From two columns of N
    (total and non-embedding), or from the shapes (d_model and vocab) and what N counts.

    ## Why it matters
    A small model is mostly vocabulary. Its total count then hardly moves while its depth does, and a power law in the
    total bends at the small end: the exponent depends on the count, and on how far down the ladder goes.

    ## How to confirm
    Fit with N counted both ways. Exponents that differ are the embeddings'.

    ## What to do, cheapest first
    1. Count non-embedding parameters, and say so: `--params non-embedding`.
    2. Leave the smallest sizes out.
    3. Use a smaller vocabulary in the ladder.

    ## Sources
    Kaplan et al. 2020 (arXiv 2001.08361), figure 6; Pearce and Song 2024 (arXiv 2406.12907).
    """
    shares = _shares(facts.points)
    if shares is None:
        yield this.found(
            Verdict.UNKNOWN, "Neither shapes nor a second count of N are given: the share of embeddings is not known.",
            "Give d_model and vocab, or total and non-embedding parameters.",
        )  # fmt: skip
        return
    worst = int(np.argmin(shares))
    value = facts.measured("ladder.non_embedding", 100 * shares[worst], "%", "Least share outside the embeddings")
    holds = this.holds(value)
    few = int((shares < float(this.threshold.value) / 100).sum()) if this.threshold else 0
    sentence = (
        "In every model at least {ladder.non_embedding} of the parameters are outside the embedding table."
        if holds
        else f"In {few} of {len(shares)} runs the embedding table is most of the model: {{ladder.non_embedding}} is "
        f"outside it in {facts.points.place(worst)}."
    )
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN, sentence,
        "" if holds else "Count non-embedding parameters, or leave the smallest sizes out.", value=value,
    )  # fmt: skip


def _shares(points: Points) -> Array | None:
    """The share outside the embeddings of each run; None where it cannot be told."""
    counts = {points.params: "N", "total": "N_total", "non-embedding": "N_non_embedding"}
    counts = {stated: name for stated, name in counts.items() if name in points} | {points.params: "N"}
    if {"total", "non-embedding"} <= set(counts):
        return points[counts["non-embedding"]] / points[counts["total"]]
    if not {"N", "d_model", "vocab"} <= set(points.columns):
        return None
    table = points["d_model"] * points["vocab"]
    size = points["N"]
    return size / (size + table) if points.params == "non-embedding" else np.clip((size - table) / size, 0.0, 1.0)
